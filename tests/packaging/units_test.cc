// Tests of the units: that systemd takes every line of them, how much the
// service is still open to, and that each bit of it has its reason beside it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/packaging/staging.h"

namespace rknnd::packaging {
namespace {

using integration::FindProgram;
using testing::Contains;
using testing::HasSubstr;

// What `systemd-analyze security` may say of the service, in tenths.
constexpr char kMostExposure[] = "20";

// "[Socket] SocketMode=0660" of a unit, continued lines left out: we have none.
std::multiset<std::string> Settings(const std::string& unit) {
  std::multiset<std::string> settings;
  std::string section;
  for (const std::string& line : Lines(Source(unit))) {
    if (line.starts_with("[")) {
      section = line;
    } else if (!line.empty() && !line.starts_with("#")) {
      settings.insert(section + " " + line);
    }
  }
  return settings;
}

std::string Comments(const std::string& unit) {
  std::string text;
  for (const std::string& line : Lines(Source(unit))) {
    if (line.starts_with("#")) text += line.substr(1);
  }
  return text;
}

class UnitsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (FindProgram("systemd-analyze").empty()) {
      GTEST_SKIP() << "systemd-analyze is not installed (package systemd)";
    }
  }

  const Staging staging_;
};

TEST_F(UnitsTest, SystemdTakesEveryLine) {
  std::vector<std::string> command = {"systemd-analyze", "verify", "--man=no",
                                      "--root=ROOT"};
  size_t units = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           staging_.Path("/usr/lib/systemd/system"))) {
    if (entry.path().extension() == ".target") continue;
    command.push_back(entry.path().filename());
    ++units;
  }
  EXPECT_GE(units, 6U);
  const Ended ended = staging_.Run(command);
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.errors, "");
}

// The check above would be silent about everything if it saw nothing.
TEST_F(UnitsTest, SystemdSeesAWrongLine) {
  const std::string unit =
      staging_.Path("/usr/lib/systemd/system/rknnd.service");
  integration::WriteFile(unit,
                         Source("rknnd.service") + "[Service]\nRestrat=1\n");
  EXPECT_THAT(staging_
                  .Run({"systemd-analyze", "verify", "--man=no", "--root=ROOT",
                        "rknnd.service"})
                  .errors,
              HasSubstr("Restrat"));
}

TEST_F(UnitsTest, SystemdTakesEveryLineOfTheUsersInstance) {
  // The tool has no --root for these, and wants programs of this machine.
  const std::string folder = staging_.scratch() + "/user";
  std::filesystem::create_directory(folder);
  const std::string truth = FindProgram("true");
  for (const auto& entry :
       std::filesystem::directory_iterator(SourceFolder() + "/user")) {
    std::string text = integration::ReadText(entry.path());
    const std::string program = "/usr/sbin/rknnd";
    for (size_t at = 0; (at = text.find(program, at)) != std::string::npos;) {
      text.replace(at, program.size(), truth);
    }
    integration::WriteFile(folder / entry.path().filename(), text);
  }
  const Ended ended = staging_.Run(
      {"systemd-analyze", "--user", "verify", "--man=no",
       folder + "/rknnd@rk3588.service", folder + "/rknnd@rk3588.socket",
       folder + "/rknnd-admin@rk3588.socket"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.errors, "");
}

TEST_F(UnitsTest, PresetsEnableTheSocketsAndNoService) {
  if (FindProgram("systemctl").empty()) {
    GTEST_SKIP() << "systemctl is not installed (package systemd)";
  }
  const Ended preset = staging_.Run({"systemctl", "--root=ROOT", "preset-all"});
  EXPECT_EQ(preset.code, 0) << preset.errors;
  for (const auto& [unit, state] : std::map<std::string, std::string>{
           {"rknnd.socket", "enabled\n"},
           {"rknnd-admin.socket", "enabled\n"},
           {"rknnd.service", "disabled\n"},
           {"rknnd-k8s.service", "disabled\n"}}) {
    EXPECT_EQ(
        staging_.Run({"systemctl", "--root=ROOT", "is-enabled", unit}).output,
        state)
        << unit;
  }
}

TEST_F(UnitsTest, ExposureIsAtMostTwo) {
  for (const char* unit : {"rknnd.service", "rknnd-k8s.service"}) {
    const Ended ended = staging_.Run(
        {"systemd-analyze", "security", "--offline=yes", "--no-pager",
         std::string("--threshold=") + kMostExposure, "--root=ROOT", unit});
    EXPECT_EQ(ended.code, 0) << ended.output << ended.errors;
    const size_t figure = ended.output.find("Overall exposure level");
    ASSERT_NE(figure, std::string::npos) << ended.output << ended.errors;
    std::printf("%s", ended.output.substr(figure).c_str());
  }
}

TEST_F(UnitsTest, EachRelaxationHasItsReason) {
  const Ended ended =
      staging_.Run({"systemd-analyze", "security", "--offline=yes",
                    "--json=short", "--root=ROOT", "rknnd.service"});
  const auto rows = nlohmann::json::parse(ended.output, nullptr, false);
  ASSERT_TRUE(rows.is_array()) << ended.output << ended.errors;
  const std::string comments = Comments("rknnd.service");
  size_t open = 0;
  for (const auto& row : rows) {
    // What does not count is null.
    if (row.value("set", true) || row["exposure"].is_null()) continue;
    ++open;
    // "PrivateDevices=", "SystemCallFilter=~@resources",
    // "RestrictAddressFamilies=~AF_(INET|INET6)".
    const std::string name = row["name"];
    const size_t value = name.find("=~");
    std::string word = value == std::string::npos
                           ? name.substr(0, name.find('=') + 1)
                           : name.substr(value + 2);
    if (const size_t list = word.find('('); list != std::string::npos) {
      word = word.substr(0, list) +
             word.substr(list + 1, word.find('|') - list - 1);
    }
    EXPECT_THAT(comments, HasSubstr(word))
        << "no comment of rknnd.service says why '" << name << "' is open";
  }
  // If nothing is open the tool's answer has changed.
  EXPECT_GT(open, 0U);
}

TEST(UnitFilesTest, ProgramsReachOneSocketAndOperatorsTheOther) {
  const auto session = Settings("rknnd.socket");
  EXPECT_THAT(session, Contains("[Socket] ListenSequentialPacket="
                                "/run/rknnd/session.sock"));
  EXPECT_THAT(session, Contains("[Socket] SocketUser=root"));
  EXPECT_THAT(session, Contains("[Socket] SocketGroup=rknnd"));
  EXPECT_THAT(session, Contains("[Socket] SocketMode=0660"));
  const auto admin = Settings("rknnd-admin.socket");
  EXPECT_THAT(admin, Contains("[Socket] ListenSequentialPacket="
                              "/run/rknnd/admin.sock"));
  // What the daemon knows it by.
  EXPECT_THAT(admin, Contains("[Socket] FileDescriptorName=admin"));
  EXPECT_THAT(admin, Contains("[Socket] SocketMode=0600"));
}

TEST(UnitFilesTest, TheServiceStartsWithoutRootAndWithoutCapabilities) {
  const auto service = Settings("rknnd.service");
  EXPECT_THAT(service, Contains("[Service] User=rknnd"));
  EXPECT_THAT(service, Contains("[Service] CapabilityBoundingSet="));
  EXPECT_THAT(service, Contains("[Service] AmbientCapabilities="));
  EXPECT_THAT(service, Contains("[Service] NoNewPrivileges=yes"));
}

// A user namespace, or a /proc without others, would take the clients' names.
TEST(UnitFilesTest, ClientsCanBeTold) {
  const auto service = Settings("rknnd.service");
  EXPECT_THAT(service, Contains("[Service] PrivateUsers=no"));
  EXPECT_THAT(service, Contains("[Service] ProtectProc=default"));
}

}  // namespace
}  // namespace rknnd::packaging
