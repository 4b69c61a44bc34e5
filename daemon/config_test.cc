#include "daemon/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace rknnd {
namespace {

using ::testing::HasSubstr;

TEST(ConfigTest, EveryKeyIsTakenOver) {
  Config config;
  const absl::Status status = ReadToml(R"(
socket = "/run/x/session.sock"
device = "soft"
soc = "rk3566"
pace = true
state_dir = "/var/lib/x"
cache_dir = ""
log_level = 4
grace = 2.5
[limits]
sessions = 10
contexts = 11
buffers = 12
memory = 1048576
model_bytes = 1000
jobs_per_context = 3
)",
                                       "test.toml", config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.socket, "/run/x/session.sock");
  EXPECT_EQ(config.device, "soft");
  EXPECT_EQ(config.soc, "rk3566");
  EXPECT_TRUE(config.pace);
  EXPECT_EQ(config.state_dir, "/var/lib/x");
  EXPECT_EQ(config.cache_dir, "");
  EXPECT_EQ(config.log_level, 4U);
  EXPECT_EQ(config.grace, 2'500 * base::kMillisecond);
  EXPECT_EQ(config.server_limits.sessions, 10U);
  EXPECT_EQ(config.limits.contexts, 11U);
  EXPECT_EQ(config.limits.buffers, 12U);
  EXPECT_EQ(config.limits.memory, 1'048'576U);
  EXPECT_EQ(config.limits.model_bytes, 1000U);
  EXPECT_EQ(config.limits.jobs_per_context, 3U);
}

TEST(ConfigTest, FaultsCanBePreset) {
  Config config;
  const absl::Status status = ReadToml(R"(
[faults]
enabled = true
give_up_ms = 300
[[faults.preset]]
kind = "hang"
core = 1
model = "face.onnx"
after = 2
every = 3
times = 4
ms = 50
[[faults.preset]]
kind = "slow"
factor = 2.5
[[faults.preset]]
kind = "wrong-status"
status = 0
[[faults.preset]]
kind = "out-of-memory"
bytes = 4096
)",
                                       "test.toml", config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(CheckConfig(config).ok()) << CheckConfig(config);
  EXPECT_TRUE(config.faults.enabled);
  EXPECT_EQ(config.faults.give_up, 300 * base::kMillisecond);
  ASSERT_EQ(config.faults.preset.size(), 4U);
  EXPECT_EQ(driver::Describe(config.faults.preset[0]),
            "hang, for 50 ms, core 1, model 'face.onnx', after 2, each 3rd, 4 "
            "times");
  EXPECT_EQ(config.faults.preset[1].factor, 2.5);
  EXPECT_EQ(config.faults.preset[2].status, 0U);
  EXPECT_EQ(config.faults.preset[3].bytes, 4096U);
}

// What is wrong with a text; "" if nothing is.
std::string Complaint(const std::string& text) {
  Config config;
  absl::Status status = ReadToml(text, "test.toml", config);
  if (status.ok()) status = CheckConfig(config);
  return std::string(status.message());
}

TEST(ConfigTest, FaultsAreOffUnlessEnabled) {
  EXPECT_FALSE(Config().faults.enabled);
  EXPECT_THAT(Complaint("[[faults.preset]]\nkind = \"hang\"\n"),
              HasSubstr("faults are not enabled"));
}

TEST(ConfigTest, WrongFieldOfAPresetFaultIsNamed) {
  const std::string on = "[faults]\nenabled = true\n[[faults.preset]]\n";
  EXPECT_THAT(Complaint(on + "kind = \"hangs\"\n"),
              HasSubstr("line 4: key 'faults.preset.kind' is wrong: 'kind' is "
                        "'hangs'"));
  EXPECT_THAT(Complaint(on + "core = 1\n"),
              HasSubstr("key 'faults.preset.kind' is missing"));
  EXPECT_THAT(Complaint(on + "kind = \"hang\"\ncpu = 1\n"),
              HasSubstr("key 'faults.preset.cpu' is unknown"));
  EXPECT_THAT(Complaint(on + "kind = \"hang\"\nevery = 0\n"),
              HasSubstr("key 'faults.preset.every' is 0"));
  EXPECT_THAT(Complaint(on + "kind = \"throttle\"\nfactor = 0.5\n"),
              HasSubstr("faults.preset 'throttle': 'factor' is 0.5"));
}

TEST(ConfigTest, UnknownKeyIsNamedWithItsLine) {
  Config config;
  const absl::Status status =
      ReadToml("device = \"soft\"\nsockett = \"/x\"\n", "test.toml", config);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'test.toml' line 2: key 'sockett'"));
}

TEST(ConfigTest, UnknownLimitIsNamedWithItsTable) {
  Config config;
  const absl::Status status =
      ReadToml("[limits]\nmemori = 1\n", "test.toml", config);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'limits.memori'"));
}

TEST(ConfigTest, WrongTypeIsRefused) {
  Config config;
  EXPECT_THAT(std::string(ReadToml("socket = 3\n", "t", config).message()),
              HasSubstr("must be a text"));
  EXPECT_THAT(
      std::string(ReadToml("[limits]\nbuffers = -1\n", "t", config).message()),
      HasSubstr("is -1, must be 1 to"));
  EXPECT_THAT(std::string(ReadToml("grace = \"x\"\n", "t", config).message()),
              HasSubstr("seconds"));
}

TEST(ConfigTest, BrokenFileSaysWhere) {
  Config config;
  const absl::Status status = ReadToml("device = \n", "test.toml", config);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'test.toml' line 1"));
}

TEST(ConfigTest, MissingFileIsNamed) {
  Config config;
  const absl::Status status = ReadTomlFile("/nowhere/x.toml", config);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/x.toml"));
}

TEST(ConfigTest, UnknownDeviceIsRefused) {
  Config config;
  config.device = "hard";
  EXPECT_THAT(std::string(CheckConfig(config).message()), HasSubstr("'hard'"));
}

TEST(ConfigTest, RelativeSocketIsRefused) {
  Config config;
  config.socket = "session.sock";
  EXPECT_TRUE(absl::IsInvalidArgument(CheckConfig(config)));
}

TEST(ConfigTest, ServiceManagersCacheFolderComesFirst) {
  setenv("CACHE_DIRECTORY", "/var/cache/one:/var/cache/two", 1);
  EXPECT_EQ(DefaultCacheDir(), "/var/cache/one");
  unsetenv("CACHE_DIRECTORY");
}

TEST(ConfigTest, AdminSocketIsBesideTheSessionSocket) {
  EXPECT_EQ(AdminSocketFor("/run/rknnd/session.sock"), "/run/rknnd/admin.sock");
}

}  // namespace
}  // namespace rknnd
