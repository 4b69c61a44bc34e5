#include "client/ctl/board/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "client/ctl/board/doctor_libraries.h"
#include "client/image/temporary_folder.h"
#include "rknnd.h"

namespace rknnd::client {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Error;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kSocket[] = "unix:/nowhere/session.sock";

wire::Welcome DaemonOf(std::string_view version) {
  wire::Welcome welcome{};
  welcome.protocol = 1;
  wire::SetText(welcome.daemon_version, version);
  return welcome;
}

TEST(DoctorTest, TheWorstComesFirstWithItsRemedyUnderIt) {
  Diagnosis diagnosis;
  diagnosis.findings = {{"npu-driver", Severity::kError, "no NPU driver",
                         "load the module rknpu"},
                        {"clock", Severity::kOk, "1 GHz", ""}};

  const Output output = DiagnosisOutput(diagnosis, /*color=*/false);

  EXPECT_EQ(output.text,
            "ERROR    no NPU driver\n"
            "         -> load the module rknpu\n"
            "ok       1 GHz\n"
            "\n1 error, 0 warnings, 0 notes, 1 ok\n");
  EXPECT_EQ(output.json["worst"], "error");
  EXPECT_EQ(output.json["findings"][0].dump(),
            R"({"check":"npu-driver","severity":"error",)"
            R"("text":"no NPU driver","remedy":"load the module rknpu"})");
}

TEST(DoctorTest, WhatADaemonSaysCannotSpeakToTheTerminal) {
  Diagnosis diagnosis;
  diagnosis.findings = {{"x", Severity::kNote, "a\x1b[2Jb", "c\nd"}};
  EXPECT_THAT(DiagnosisOutput(diagnosis, false).text,
              HasSubstr("NOTE     a?[2Jb\n         -> c?d\n"));
}

TEST(DoctorTest, SaysWhyThereIsNoDaemon) {
  EXPECT_THAT(WhyNoDaemon(kSocket, {Code::kNotFound, "x"}).text,
              HasSubstr("'/nowhere/session.sock' does not exist"));
  EXPECT_THAT(WhyNoDaemon(kSocket, {Code::kUnavailable, "x"}).remedy,
              HasSubstr("systemctl status rknnd"));
  const Finding remote =
      WhyNoDaemon("tcp://board:1", {Code::kUnavailable, "refused"});
  EXPECT_EQ(remote.text, "refused");
  EXPECT_THAT(remote.remedy, HasSubstr("grpc.listen"));
  EXPECT_THAT(
      WhyNoDaemon("tcp://board:1", {Code::kUnauthenticated, "no token"}).remedy,
      HasSubstr("RKNND_TOKEN"));
  for (const char* const target : {kSocket, "tcp://board:1"}) {
    const Finding draining = WhyNoDaemon(
        target, {Code::kUnavailable, "the daemon is draining and takes ..."});
    EXPECT_THAT(draining.text, HasSubstr("draining"));
    EXPECT_THAT(draining.remedy, HasSubstr("systemctl restart rknnd"));
  }
  const Finding versions =
      WhyNoDaemon(kSocket, {Code::kFailedPrecondition, "update the client"});
  EXPECT_EQ(versions.check, "client-versions");
  EXPECT_EQ(versions.severity, Severity::kError);
}

TEST(DoctorTest, NamesTheGroupThatMayUseTheSocket) {
  const TemporaryFolder folder;
  const std::string path = folder.File("s");
  std::ofstream(path) << "";
  const Finding finding =
      WhyNoDaemon("unix:" + path, {Code::kPermissionDenied, "x"});
  struct stat status = {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  if (status.st_gid == 0) {
    EXPECT_THAT(finding.remedy, HasSubstr("socket.group"));
  } else {
    EXPECT_THAT(finding.remedy, HasSubstr("usermod -aG"));
  }
}

TEST(DoctorTest, SaysWhichSideIsToBeUpdated) {
  EXPECT_EQ(CompareVersions("1.2.0", DaemonOf("1.2.9")).severity,
            Severity::kOk);
  const Finding next = CompareVersions("1.2.0", DaemonOf("1.3.0"));
  EXPECT_EQ(next.severity, Severity::kNote);
  EXPECT_THAT(next.remedy, HasSubstr("client library to 1.3.0"));
  const Finding far = CompareVersions("1.4.0", DaemonOf("1.2.0"));
  EXPECT_EQ(far.severity, Severity::kWarning);
  EXPECT_THAT(far.remedy, HasSubstr("daemon to 1.4.0"));
  EXPECT_THAT(far.text, HasSubstr("client library 1.4.0, daemon 1.2.0"));
}

class DoctorLibrariesTest : public testing::Test {
 protected:
  DoctorLibrariesTest() {
    places_.root = folder_.File("root");
    places_.own = OwnPlaces().own;
    for (const char* name : {"/etc/ld.so.conf.d", "/opt/npu", "/usr/lib"}) {
      fs::create_directories(places_.root + name);
    }
    std::ofstream(places_.root + "/etc/ld.so.conf")
        << "# comment\ninclude ld.so.conf.d/*.conf\n";
    std::ofstream(places_.root + "/etc/ld.so.conf.d/npu.conf") << "/opt/npu\n";
  }

  // A library as the vendor's, on this machine.
  void WriteVendor(const std::string& path, const std::string& version) const {
    std::ifstream own(places_.own, std::ios::binary);
    std::string bytes(64, '\0');
    own.read(bytes.data(), 64);
    std::ofstream(path, std::ios::binary)
        << bytes << std::string("x\0librknnrt version: ", 21) << version
        << " (c949ad889d@2024-11-07)";
  }

  TemporaryFolder folder_;
  LibraryPlaces places_;
};

TEST_F(DoctorLibrariesTest, FoldersAreThoseOfTheLoaderInItsOrder) {
  places_.library_path = "/first::/second";
  const std::string& root = places_.root;
  EXPECT_THAT(
      LoaderFolders(places_),
      ElementsAre("/first", "/second", root + "/opt/npu", root + "/lib",
                  root + "/usr/lib", root + "/lib64", root + "/usr/lib64"));
}

TEST_F(DoctorLibrariesTest, ConfigurationThatIncludesItselfEnds) {
  std::ofstream(places_.root + "/etc/ld.so.conf") << "include ld.so.conf\n/a\n";
  EXPECT_THAT(LoaderFolders(places_), testing::Contains(places_.root + "/a"));
}

TEST_F(DoctorLibrariesTest, TheVendorsLibraryBeforeOursIsAWarning) {
  WriteVendor(places_.root + "/opt/npu/librknnrt.so", "2.3.0");
  fs::copy(places_.own, places_.root + "/usr/lib/librknnrt.so");

  const std::vector<Finding> findings = CheckLibraries(places_);

  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_THAT(findings[0].text,
              HasSubstr("librknnrt.so' (the vendor's 2.3.0)"));
  EXPECT_THAT(findings[0].remedy, HasSubstr("rknnd-run COMMAND"));
  EXPECT_EQ(findings[1].severity, Severity::kNote);
  EXPECT_THAT(findings[1].text,
              HasSubstr("(rknnd's " + std::string(rknnd_version_string())));
}

TEST_F(DoctorLibrariesTest, OursFirstIsWell) {
  fs::create_symlink(places_.own, places_.root + "/opt/npu/librknnrt.so");
  const std::vector<Finding> findings = CheckLibraries(places_);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::kOk) << findings[0].text;
}

TEST_F(DoctorLibrariesTest, BrokenAndForeignLibrariesAreNamed) {
  std::ofstream(places_.root + "/opt/npu/librknnrt.so")
      << "version https://git-lfs.github.com/spec/v1\n";
  std::string header(64, '\0');
  header.replace(0, 6,
                 "\x7f"
                 "ELF\x02\x01");
  header[18] = 8;  // MIPS
  std::ofstream(places_.root + "/usr/lib/librknnrt.so", std::ios::binary)
      << header;

  const std::vector<Finding> findings = CheckLibraries(places_);

  ASSERT_EQ(findings.size(), 3U);
  EXPECT_THAT(findings[0].text, HasSubstr("no library"));
  EXPECT_THAT(findings[1].text, HasSubstr("for machine 8"));
  EXPECT_THAT(findings[2].text, HasSubstr("the loader finds no librknnrt.so"));
  EXPECT_THAT(findings[2].remedy, HasSubstr("rknnd-divert enable"));
}

TEST_F(DoctorLibrariesTest, RunningVendorServerIsFound) {
  EXPECT_TRUE(CheckVendorServer(places_.root).empty());
  fs::create_directories(places_.root + "/proc/812");
  std::ofstream(places_.root + "/proc/812/comm") << "rknn_server\n";
  const std::vector<Finding> findings = CheckVendorServer(places_.root);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].text, HasSubstr("(pid 812)"));
}

}  // namespace
}  // namespace rknnd::client
