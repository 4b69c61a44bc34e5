#include "daemon/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace rknnd {
namespace {

using ::testing::AllOf;
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
fences = 16
[models]
cache_bytes = 5000
preload = ["/models/a.onnx", "/models/b.onnx"]
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
  EXPECT_EQ(config.cache_bytes, 5000U);
  EXPECT_EQ(config.preload,
            (std::vector<std::string>{"/models/a.onnx", "/models/b.onnx"}));
  EXPECT_EQ(config.server_limits.sessions, 10U);
  EXPECT_EQ(config.limits.contexts, 11U);
  EXPECT_EQ(config.limits.buffers, 12U);
  EXPECT_EQ(config.limits.memory, 1'048'576U);
  EXPECT_EQ(config.limits.model_bytes, 1000U);
  EXPECT_EQ(config.limits.jobs_per_context, 3U);
  EXPECT_EQ(config.limits.fences, 16U);
}

TEST(ConfigTest, CacheAndHeapsAreTakenOver) {
  Config config;
  const absl::Status status = ReadToml(R"(
cache = "incoherent"
[memory]
heaps = ["dma_heap:cma", "udmabuf", "memfd"]
dma32 = true
contiguous = true
)",
                                       "test.toml", config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(CheckConfig(config).ok()) << CheckConfig(config);
  EXPECT_EQ(config.cache, "incoherent");
  EXPECT_EQ(config.heaps.order,
            (std::vector<std::string>{"dma_heap:cma", "udmabuf", "memfd"}));
  EXPECT_TRUE(config.heaps.dma32);
  EXPECT_TRUE(config.heaps.contiguous);
}

TEST(ConfigTest, WhatIsNoHeapIsNamedWithItsLine) {
  const auto complaint = [](const char* text) {
    Config config;
    return std::string(ReadToml(text, "t.toml", config).message());
  };
  EXPECT_THAT(complaint("[memory]\nheaps = [\"../null\"]"),
              AllOf(HasSubstr("line 2"), HasSubstr("'memory.heaps'"),
                    HasSubstr("'../null' is not the name of a heap")));
  EXPECT_THAT(complaint("[memory]\nheaps = \"memfd\""),
              HasSubstr("a list of texts"));
  EXPECT_THAT(complaint("[memory]\nheaps = [1]"), HasSubstr("in quotes"));
  EXPECT_THAT(complaint("[memory]\nheaps = [\"memfd\", \"memfd\"]"),
              HasSubstr("twice"));
  EXPECT_THAT(complaint("[memory]\ndma_32 = true"),
              HasSubstr("'memory.dma_32' is unknown"));
  EXPECT_THAT(complaint("memory = 4096"), HasSubstr("a table: [memory]"));
}

TEST(ConfigTest, UnknownKindsOfCacheAreRefused) {
  Config config;
  config.cache = "write-through";
  EXPECT_THAT(std::string(CheckConfig(config).message()),
              AllOf(HasSubstr("'write-through'"), HasSubstr("'incoherent'")));
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

TEST(ConfigTest, AllThatIsWrongIsSaidAtOnce) {
  EXPECT_EQ(Complaint("sockett = 1\n"
                      "log_level = 6\n"
                      "[limits]\n"
                      "memori = 1\n"
                      "buffers = \"many\"\n"
                      "[limits.user]\n"
                      "weight = 0\n"
                      "[[limits.users]]\n"
                      "user = \"no such user\"\n"
                      "[grpc]\n"
                      "message_bytes = 5\n"
                      "[modells]\n"),
            "'test.toml' line 1: key 'sockett' is unknown to this version; did "
            "you mean 'socket'?\n"
            "'test.toml' line 2: key 'log_level' is 6, must be 0 to 5\n"
            "'test.toml' line 4: key 'limits.memori' is unknown to this "
            "version; did you mean 'limits.memory'?\n"
            "'test.toml' line 5: key 'limits.buffers' must be a whole number\n"
            "'test.toml' line 7: key 'limits.user.weight' is 0, must be 1 to "
            "1000\n"
            "'test.toml' line 9: key 'limits.users.user' is 'no such user': "
            "this machine has no user of that name\n"
            "'test.toml' line 11: key 'grpc.message_bytes' is 5, must be 65536 "
            "to 2147483647 bytes\n"
            "'test.toml' line 12: key 'modells' is unknown to this version; "
            "did you mean 'models'?");
}

TEST(ConfigTest, WhatDoesNotGoTogetherIsSaidAtOnceToo) {
  Config config;
  config.device = "hard";
  config.socket = "here";
  config.preload = {"a.onnx"};
  EXPECT_THAT(std::string(CheckConfig(config).message()),
              AllOf(HasSubstr("'hard'"), HasSubstr("\n"), HasSubstr("'here'"),
                    HasSubstr("'a.onnx'")));
}

TEST(ConfigTest, KeyGivenTwiceIsRefused) {
  EXPECT_THAT(Complaint("grace = 1\ngrace = 2\n"),
              HasSubstr("'test.toml' line 2"));
  EXPECT_THAT(Complaint("[limits]\n[limits]\n"),
              HasSubstr("'test.toml' line 2"));
}

TEST(ConfigTest, SocketsAndUserAreTakenOver) {
  Config config;
  const absl::Status status = ReadToml(R"(
socket_mode = 0o666
socket_group = "root"
admin_mode = 0o660
admin_group = 5
[service]
user = "nobody"
)",
                                       "test.toml", config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.socket_mode, 0666U);
  EXPECT_EQ(config.socket_group, 0U);
  EXPECT_EQ(config.admin_mode, 0660U);
  EXPECT_EQ(config.admin_group, 5U);
  EXPECT_EQ(config.run_as, "nobody");
  EXPECT_THAT(Complaint("socket_mode = 660\n"),
              HasSubstr("is 0o1224, must be 0o600 to 0o666"));
  EXPECT_THAT(Complaint("socket_mode = 0o060\n"), HasSubstr("is 0o60"));
  EXPECT_THAT(Complaint("socket_mode = \"0660\"\n"), HasSubstr("a mode"));
  EXPECT_THAT(Complaint("admin_group = \"no such group\"\n"),
              HasSubstr("no group of that name"));
  EXPECT_THAT(Complaint("admin_group = true\n"),
              HasSubstr("a group's name or number"));
}

TEST(ConfigTest, UserThatTheDaemonCannotBecomeIsRefused) {
  const auto complaint = [](const std::string& user) {
    return Complaint("[service]\nuser = \"" + user + "\"\n");
  };
  EXPECT_EQ(complaint("nobody"), "");
  EXPECT_EQ(complaint("65534"), "");
  EXPECT_EQ(complaint(""), "") << "it stays who it is";
  EXPECT_THAT(complaint("no such user"),
              AllOf(HasSubstr("'test.toml' line 2: key 'service.user'"),
                    HasSubstr("no user of that name")));
  EXPECT_THAT(complaint("4123456789"), HasSubstr("no user of that name"));
  EXPECT_THAT(complaint("root"), HasSubstr("which is root"));
  EXPECT_THAT(complaint("0"), HasSubstr("which is root"));
}

TEST(ConfigTest, SocketThatCannotBeMadeIsRefused) {
  const auto complaint = [](const std::string& path, const char* more = "") {
    return Complaint("socket = \"" + path + "\"\n" + more);
  };
  EXPECT_THAT(complaint("/run/x/"), HasSubstr("path of a file"));
  EXPECT_THAT(complaint("/run/x/admin.sock"), HasSubstr("the operators'"));
  const std::string longest(107, 'x');
  EXPECT_EQ(complaint("/" + longest.substr(1)), "");
  EXPECT_THAT(complaint("/" + longest), HasSubstr("at most 107"));
  EXPECT_THAT(complaint("/" + longest.substr(1), "socket_group = 0\n"),
              HasSubstr("at most 107"));
  EXPECT_THAT(complaint("/" + longest.substr(9) + "/s"),
              HasSubstr("(110 bytes)"))
      << "the operators' beside it";
  EXPECT_THAT(complaint("/x", "socket_group = 4294967295\n"),
              HasSubstr("'socket_group' is 4294967295"));
}

TEST(ConfigTest, FileThatEverybodyMayChangeIsWarnedOf) {
  const std::string path =
      ::testing::TempDir() + "/config-" + std::to_string(getpid()) + ".toml";
  std::ofstream(path) << "grace = 1\n";
  ASSERT_EQ(chmod(path.c_str(), 0664), 0);
  EXPECT_EQ(WarningOfFile(path), "");
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_THAT(WarningOfFile(path),
              AllOf(HasSubstr(path), HasSubstr("every user")));
  unlink(path.c_str());
  EXPECT_EQ(WarningOfFile(path), "") << "there is none";
}

TEST(ConfigTest, WhatIsNoFileIsRefused) {
  Config config;
  EXPECT_THAT(std::string(ReadTomlFile("/dev/null", config).message()),
              HasSubstr("'/dev/null' is no regular file"));
  EXPECT_THAT(std::string(ReadTomlFile("/tmp", config).message()),
              HasSubstr("'/tmp' is no regular file"));
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

TEST(ConfigTest, PhysicalMemoryIsAllowedByUserAndRange) {
  Config config;
  const std::string text =
      "[[physical_memory]]\nuid = 1000\nbegin = 0x10000000\n"
      "size = 0x1000000\n"
      "[[physical_memory]]\nuid = 33\nbegin = 0\nsize = 4096\n"
      "device = \"/dev/other\"\n";
  ASSERT_TRUE(ReadToml(text, "f.toml", config).ok());
  ASSERT_TRUE(CheckConfig(config).ok());
  ASSERT_EQ(config.physical_memory.size(), 2U);
  EXPECT_EQ(config.physical_memory[0].uid, 1000U);
  EXPECT_EQ(config.physical_memory[0].begin, 0x10000000U);
  EXPECT_EQ(config.physical_memory[0].size, 0x1000000U);
  EXPECT_EQ(config.physical_memory[0].device, "/dev/mem");
  EXPECT_EQ(config.physical_memory[1].device, "/dev/other");
}

TEST(ConfigTest, PhysicalMemoryWithoutItsRangeIsRefused) {
  Config config;
  const absl::Status lacks =
      ReadToml("[[physical_memory]]\nuid = 1\nsize = 4096\n", "f", config);
  EXPECT_NE(lacks.message().find("key 'physical_memory.begin' is missing"),
            std::string::npos)
      << lacks;
  EXPECT_FALSE(ReadToml("[physical_memory]\nuid = 1\n", "f", config).ok());
  Config other;
  ASSERT_TRUE(ReadToml("[[physical_memory]]\nuid = 1\nbegin = 1\nsize = 1\n"
                       "device = \"mem\"\n",
                       "f", other)
                  .ok());
  EXPECT_FALSE(CheckConfig(other).ok());
}

TEST(ConfigTest, IsolationIsStrictUnlessSwitchedOff) {
  Config config;
  EXPECT_TRUE(config.isolate);
  ASSERT_TRUE(ReadToml("[memory]\nisolate = \"off\"\n", "f.toml", config).ok());
  EXPECT_FALSE(config.isolate);
  ASSERT_TRUE(
      ReadToml("[memory]\nisolate = \"strict\"\n", "f.toml", config).ok());
  EXPECT_TRUE(config.isolate);
  const absl::Status refused =
      ReadToml("[memory]\nisolate = \"a bit\"\n", "f.toml", config);
  EXPECT_NE(refused.message().find("is 'a bit', must be \"strict\""),
            std::string::npos)
      << refused;
}

TEST(ConfigTest, SchedulerIsTakenOver) {
  Config config;
  EXPECT_EQ(config.scheduling.starvation_bound, base::kSecond);
  EXPECT_FALSE(config.spin.has_value());
  const absl::Status status = ReadToml(R"(
[scheduler]
starvation_bound = 0.5
hang = 20
fence_timeout = 1.5
spin = 20
)",
                                       "f.toml", config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.scheduling.starvation_bound, 500 * base::kMillisecond);
  EXPECT_EQ(config.scheduling.hang, 20 * base::kSecond);
  EXPECT_EQ(config.scheduling.fence_timeout, 1'500 * base::kMillisecond);
  EXPECT_EQ(config.spin, 20 * base::kMicrosecond);
}

TEST(ConfigTest, SpinIsAutomaticOffOrMicroseconds) {
  Config config;
  ASSERT_TRUE(ReadToml("[scheduler]\nspin = \"off\"\n", "f.toml", config).ok());
  EXPECT_EQ(config.spin, 0);
  ASSERT_TRUE(
      ReadToml("[scheduler]\nspin = \"auto\"\n", "f.toml", config).ok());
  EXPECT_FALSE(config.spin.has_value());
  for (const char* wrong : {"\"on\"", "-1", "1.5", "20000", "true"}) {
    const absl::Status refused =
        ReadToml(std::string("[scheduler]\nspin = ") + wrong, "f.toml", config);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("line 2: key 'scheduler.spin'"));
  }
}

TEST(ConfigTest, WrongKeyOfATableIsPlacedOnce) {
  Config config;
  EXPECT_EQ(
      ReadToml("[scheduler]\nspin = \"on\"\n", "f.toml", config).message(),
      "'f.toml' line 2: key 'scheduler.spin' is 'on', must be \"auto\", "
      "\"off\" or microseconds");
}

TEST(ConfigTest, SchedulersBoundsMustBeOfUse) {
  for (const char* wrong :
       {"starvation_bound = 0", "hang = 0.01", "hang = 100000", "hang = nan",
        "fence_timeout = -1", "fence_timeout = \"1\"", "slices = 1"}) {
    Config config;
    EXPECT_FALSE(
        ReadToml(std::string("[scheduler]\n") + wrong, "f.toml", config).ok())
        << wrong;
  }
}

}  // namespace
}  // namespace rknnd
