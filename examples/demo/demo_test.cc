// The demo as ./dev demo runs it, but short: its last line, its pictures, that
// each row of its memory table is what that kind of sharing costs, and that a
// slow detector lowers the rate, not only when it was slow from the beginning.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "client/image/image.h"
#include "client/launch/memory_rows.h"

namespace rknnd::demo {
namespace {

constexpr int kStreams = 4, kContexts = 3;
constexpr double kAll = kStreams * kContexts;
constexpr double kCores = 3;  // of the daemon's default SoC
constexpr double kOnePercent = 0.01;
constexpr double kOwnBytes = 8192;
constexpr base::Nanoseconds kPatience = 400 * base::kSecond;

class DemoTest : public testing::Test {
 protected:
  // Once: it takes its seconds.
  static void SetUpTestSuite() {
    auto made = base::TemporaryFolder::Make();
    ASSERT_TRUE(made.ok());
    folder.emplace(*std::move(made));
    base::ChildProcess demo =
        Start({"--seconds", "1", "--json", "--output-dir", folder->path()});
    ASSERT_TRUE(demo.running());
    const auto text = demo.ReadAll(kPatience);
    ASSERT_TRUE(text.ok()) << text.error().message;
    const auto exit_code = demo.Wait(kPatience);
    ASSERT_TRUE(exit_code.ok());
    ASSERT_EQ(*exit_code, 0);
    std::istringstream lines(*text);
    std::string last;
    for (std::string line; std::getline(lines, line);) last = line;
    summary = nlohmann::ordered_json::parse(last, nullptr, false);
    ASSERT_TRUE(summary.is_object()) << *text;
  }
  static void TearDownTestSuite() { folder.reset(); }

  static base::ChildProcess Start(
      std::vector<std::string> arguments,
      std::vector<std::pair<std::string, std::string>> environment = {},
      const std::string& program = "rknnd-demo") {
    base::ChildProcess::Options options;
    arguments.insert(arguments.begin(), RKNND_BINARY_ROOT "/bin/" + program);
    options.arguments = std::move(arguments);
    options.environment = std::move(environment);
    options.dies_with_parent = true;
    auto child = base::ChildProcess::Start(options);
    EXPECT_TRUE(child.ok()) << child.error().message;
    return child.ok() ? *std::move(child) : base::ChildProcess();
  }

  // Lines up to the one that has `part` in it; the test fails where none has.
  static void ReadTo(base::ChildProcess& demo, const std::string& part) {
    for (std::string line; line.find(part) == line.npos;) {
      auto next = demo.ReadLine(kPatience);
      ASSERT_TRUE(next.ok()) << next.error().message;
      line = *std::move(next);
    }
  }

  // The configuration of a daemon, in `folder`: its path.
  static std::string WriteConfig(const std::string& folder,
                                 const std::string& text) {
    const std::string path = folder + "/rknnd.toml";
    std::ofstream file(path);
    file << text;
    EXPECT_TRUE(file.flush().good());
    return path;
  }

  static std::vector<std::string> Keys(const nlohmann::ordered_json& object) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    return keys;
  }

  static double Row(const std::string& key) {
    return summary["memory"][key].get<double>();
  }
  static void ExpectNear(double measured, double expected) {
    EXPECT_NEAR(measured, expected, expected * kOnePercent);
  }

  static std::optional<base::TemporaryFolder> folder;
  static nlohmann::ordered_json summary;
};

std::optional<base::TemporaryFolder> DemoTest::folder;
nlohmann::ordered_json DemoTest::summary;

TEST_F(DemoTest, TheLastLineHasTheAgreedKeys) {
  EXPECT_EQ(Keys(summary),
            (std::vector<std::string>{
                "streams", "contexts", "fps", "latency_us",
                "tensor_bytes_copied_per_frame", "memory", "rate"}));
  EXPECT_EQ(Keys(summary["latency_us"]),
            (std::vector<std::string>{"p50", "p99"}));
  EXPECT_EQ(Keys(summary["memory"]),
            (std::vector<std::string>{"no_reuse", "dup_per_stream", "dup_all",
                                      "four_models", "rknnd"}));
}

TEST_F(DemoTest, CamerasFilmWithoutACopy) {
  EXPECT_EQ(summary["streams"], kStreams);
  EXPECT_EQ(summary["contexts"], kContexts);
  EXPECT_GT(summary["fps"].get<double>(), 0);
  EXPECT_GT(summary["latency_us"]["p50"].get<double>(), 0);
  EXPECT_GE(summary["latency_us"]["p99"].get<double>(),
            summary["latency_us"]["p50"].get<double>());
  EXPECT_EQ(summary["tensor_bytes_copied_per_frame"], 0);
  EXPECT_GT(summary["rate"].get<double>(), 0);
  EXPECT_LE(summary["rate"].get<double>(), 30);
}

TEST_F(DemoTest, SlowDetectorIsFilmedForAtALowerRate) {
  auto made = base::TemporaryFolder::Make();
  ASSERT_TRUE(made.ok());
  // No machine computes more than ten frames a second then.
  base::ChildProcess demo =
      Start({"--seconds", "3", "--json", "--output-dir", made->path(),
             "--config", WriteConfig(made->path(), R"([faults]
enabled = true
[[faults.preset]]
kind = "slow"
ms = 300
)")});
  const auto text = demo.ReadAll(kPatience);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_NE(text->find("each films at"), text->npos) << *text;
  EXPECT_NE(text->find("a second instead of 30."), text->npos) << *text;
  const auto ended = demo.Wait(kPatience);
  ASSERT_TRUE(ended.ok());
  ASSERT_EQ(*ended, 0);

  std::istringstream lines(*text);
  std::string last;
  for (std::string line; std::getline(lines, line);) last = line;
  const auto slow = nlohmann::ordered_json::parse(last, nullptr, false);
  ASSERT_TRUE(slow.is_object()) << *text;
  const auto rate = slow["rate"].get<double>();
  EXPECT_LE(rate * kStreams, kCores / 0.3);
  // However slow the machine is beside that: two frame times.
  EXPECT_LE(slow["latency_us"]["p50"].get<double>(), 2e6 / rate);
}

TEST_F(DemoTest, DetectorThatBecomesSlowLowersTheRateOfTheFilm) {
  auto made = base::TemporaryFolder::Make();
  ASSERT_TRUE(made.ok());
  const std::string temporary = made->path() + "/tmp";
  std::filesystem::create_directory(temporary);
  base::ChildProcess demo = Start(
      {"--seconds", "600", "--rate", "5", "--output-dir", made->path(),
       "--config", WriteConfig(made->path(), "[faults]\nenabled = true\n")},
      {{"TMPDIR", temporary}});
  // It has measured by then.
  ReadTo(demo, "camera processes");
  std::string socket;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(temporary)) {
    if (entry.path().filename() == "session.sock") socket = entry.path();
  }
  ASSERT_FALSE(socket.empty());
  base::ChildProcess tool = Start(
      {"--target", "unix:" + socket, "fault", "set", "slow", "--ms", "2000"},
      {}, "rknnctl");
  const auto set = tool.Wait(kPatience);
  ASSERT_TRUE(set.ok());
  ASSERT_EQ(*set, 0);

  ReadTo(demo, "The machine has become slower, so each camera films at");

  demo.Signal(SIGINT);
  EXPECT_TRUE(demo.ReadAll(kPatience).ok());
  EXPECT_TRUE(demo.Wait(kPatience).ok());
}

TEST_F(DemoTest, EveryStreamLeavesAPicture) {
  for (int i = 0; i < kStreams; ++i) {
    const std::string path =
        folder->path() + "/stream-" + std::to_string(i) + ".png";
    const auto image = client::ReadImage(path);
    ASSERT_TRUE(image.ok()) << image.error().message;
    EXPECT_EQ(image->width(), 1920);
    EXPECT_EQ(image->height(), 1080);
  }
}

TEST_F(DemoTest, EachRowIsWhatItsKindOfSharingCosts) {
  // One context alone tells the price of weights and of internal memory.
  base::ChildProcess holder =
      Start({"--contexts", "1", "--model",
             RKNND_SOURCE_ROOT "/examples/detector/detector.onnx"},
            {{"RKNND_TARGET", "local:"}, {"RKNND_SHARING", "vendor"}},
            "rknnd-holder");
  ASSERT_TRUE(holder.running());
  const auto line = holder.ReadLine(kPatience);
  ASSERT_TRUE(line.ok()) << line.error().message;
  const auto one = client::ToMemory(*line);
  ASSERT_TRUE(one.has_value());
  const auto weight = static_cast<double>(one->weight);
  const auto internal = static_cast<double>(one->internal);
  ASSERT_GT(weight, 0);
  ASSERT_GT(internal, 0);
  ExpectNear(Row("no_reuse"), kAll * (weight + internal));
  ExpectNear(Row("dup_per_stream"), kStreams * weight + kAll * internal);
  ExpectNear(Row("dup_all"), weight + kAll * internal);
  // Their weights are alike, and each model has a page or two of its own.
  EXPECT_NEAR(Row("four_models"), weight + kCores * internal,
              kStreams * kOwnBytes);
  ExpectNear(Row("rknnd"), weight + kCores * internal);
}

TEST_F(DemoTest, FailureAndSignalLeaveNothingBehind) {
  auto made = base::TemporaryFolder::Make();
  ASSERT_TRUE(made.ok());
  const std::string temporary = made->path() + "/tmp";
  std::filesystem::create_directory(temporary);
  const std::vector<std::pair<std::string, std::string>> environment = {
      {"TMPDIR", temporary}};

  // No detector at all: it fails when its first child does.
  const std::string wrong = RKNND_SOURCE_ROOT "/examples/demo/demo_test.cc";
  base::ChildProcess failing =
      Start({"--model", wrong, "--output-dir", made->path()}, environment);
  const auto failed = failing.Wait(kPatience);
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(*failed, 1);
  EXPECT_TRUE(std::filesystem::is_empty(temporary));

  base::ChildProcess filming =
      Start({"--seconds", "600", "--output-dir", made->path()}, environment);
  // Its table begins when daemon and cameras are there.
  ReadTo(filming, "camera processes");
  EXPECT_FALSE(std::filesystem::is_empty(temporary));
  filming.Signal(SIGINT);
  // Its children end first: they have its output open too.
  EXPECT_TRUE(filming.ReadAll(kPatience).ok());
  const auto ended = filming.Wait(kPatience);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(*ended, 128 + SIGINT);
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

TEST_F(DemoTest, FolderThatCannotBeWrittenIsSaidBeforeTheFilm) {
  // It would film for longer than is waited for.
  base::ChildProcess demo = Start({"--seconds", "600", "--output-dir",
                                   RKNND_SOURCE_ROOT "/README.md/pictures"});
  const auto ended = demo.Wait(kPatience);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(*ended, 1);
}

TEST_F(DemoTest, MoreSharingIsLessMemory) {
  EXPECT_GT(Row("no_reuse"), Row("dup_per_stream"));
  EXPECT_GT(Row("dup_per_stream"), Row("dup_all"));
  EXPECT_GT(Row("dup_per_stream"), Row("four_models"));
  EXPECT_GT(Row("dup_all"), Row("rknnd"));
  EXPECT_GE(Row("four_models"), Row("rknnd"));
}

}  // namespace
}  // namespace rknnd::demo
