// The timeline of a known run, and the one that is left when a job hangs: read
// by a JSON parser, as Perfetto does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/harness/faults.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class TraceTest : public IntegrationTest {
 protected:
  std::unique_ptr<ClientProcess> StartWith(const TestModel& model) {
    auto client = StartClient();
    EXPECT_TRUE(Done(client->Do("init v " + model.path + " 0")));
    EXPECT_TRUE(Done(client->Do("bind_all v")));
    return client;
  }
  json Take(std::vector<std::string> more = {}) {
    const std::string file = folder() + "/trace.json";
    std::vector<std::string> arguments = {"trace", "--output", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    said_ = AskRknnctl(folder(), daemon().target(), arguments);
    EXPECT_EQ(said_["file"], file);
    return Read(file);
  }
  static json Read(const std::string& file) {
    json trace = json::parse(ReadText(file), nullptr, false);
    EXPECT_FALSE(trace.is_discarded()) << file;
    return trace;
  }
  static std::vector<json> Events(const json& trace, const std::string& kind) {
    std::vector<json> events;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] == kind) events.push_back(event);
    }
    return events;
  }
  static std::string NameOf(const json& trace, const char* what,
                            const json& event) {
    for (const json& name : Events(trace, "M")) {
      if (name["name"] != what || name["pid"] != event["pid"]) continue;
      if (std::string(what) == "process_name" || name["tid"] == event["tid"]) {
        return name["args"]["name"];
      }
    }
    return "";
  }
  static bool IsOnACore(const json& trace, const json& event) {
    return NameOf(trace, "thread_name", event).starts_with("core ");
  }

  json said_;
};

TEST_F(TraceTest, KnownRunIsThereWithAllItsJobs) {
  StartDaemon();
  const auto client = StartWith(MakeConvNet(folder()));
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(Done(client->Do("run v")));

  const json trace = Take();

  EXPECT_EQ(said_["jobs"], 12);
  EXPECT_EQ(said_["lost"], 0);
  std::map<std::pair<uint64_t, uint64_t>,
           std::vector<std::pair<int64_t, int64_t>>>
      tracks;
  int on_cores = 0;
  int on_context = 0;
  for (const json& slice : Events(trace, "X")) {
    EXPECT_EQ(slice["name"], "conv_net.onnx");
    if (IsOnACore(trace, slice)) {
      ++on_cores;
      EXPECT_EQ(slice["args"]["pid"], client->pid());
    } else {
      ++on_context;
      EXPECT_EQ(slice["pid"], client->pid());
      EXPECT_THAT(NameOf(trace, "process_name", slice),
                  HasSubstr("integration"));
    }
    const int64_t begin = std::llround(slice["ts"].get<double>() * 1000);
    const int64_t time = std::llround(slice["dur"].get<double>() * 1000);
    EXPECT_GT(time, 0);
    tracks[{slice["pid"], slice["tid"]}].push_back({begin, begin + time});
  }
  EXPECT_EQ(on_cores, 12);
  EXPECT_EQ(on_context, 12);
  for (auto& [track, slices] : tracks) {
    std::sort(slices.begin(), slices.end());
    for (size_t i = 1; i < slices.size(); ++i) {
      EXPECT_GE(slices[i].first, slices[i - 1].second);
    }
  }
  EXPECT_EQ(Events(trace, "b").size(), 12U);
  EXPECT_EQ(Events(trace, "e").size(), 12U);
  EXPECT_TRUE(Events(trace, "B").empty());
}

TEST_F(TraceTest, SecondsLeaveOutWhatWasBefore) {
  StartDaemon();
  const auto client = StartWith(MakeConvNet(folder()));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Done(client->Do("run v")));

  const json trace = Take({"--seconds", "0.05"});

  EXPECT_EQ(said_["jobs"], 0);
  EXPECT_EQ(said_["lost"], 0);
  EXPECT_TRUE(Events(trace, "X").empty());
}

TEST_F(TraceTest, FailedJobIsAMomentOfItsContext) {
  StartDaemon(WithFaults(folder()));
  const auto client = StartWith(MakeConvNet(folder()));
  SetFault(folder(), daemon().target(),
           {.kind = driver::FaultKind::kWrongStatus, .times = 1});
  EXPECT_FALSE(Done(client->Do("run v")));

  const auto moments = Events(Take(), "i");

  ASSERT_EQ(moments.size(), 1U);
  EXPECT_THAT(moments[0]["name"].get<std::string>(), HasSubstr("failed: "));
  EXPECT_EQ(moments[0]["pid"], client->pid());
}

TEST_F(TraceTest, JobThatHangsLeavesATimelineWithAnOpenSlice) {
  const std::string state = folder() + "/state";
  StartDaemon(WithFaults(folder(), {.give_up = 0, .hang = base::kSecond / 2},
                         {.more = {"--state-dir", state}}));
  const auto client = StartWith(MakeConvNet(folder()));
  ASSERT_TRUE(Done(client->Do("run v")));
  SetFault(folder(), daemon().target(),
           {.kind = driver::FaultKind::kHang, .times = 1});
  EXPECT_FALSE(Done(client->Do("run v")));

  // Named in the log once it is whole.
  ASSERT_TRUE(Eventually([this] {
    return daemon().log().find("the timeline is in '") != std::string::npos;
  }));
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(state)) {
    files.push_back(entry.path());
  }
  ASSERT_EQ(files.size(), 1U);
  EXPECT_THAT(daemon().log(), HasSubstr(files[0]));
  const json trace = Read(files[0]);
  const auto open = Events(trace, "B");
  ASSERT_EQ(open.size(), 2U);
  EXPECT_TRUE(IsOnACore(trace, open[0]));
  EXPECT_EQ(open[0]["name"], "conv_net.onnx");
  EXPECT_GE(open[0]["args"]["running_us"], 400'000);
  EXPECT_EQ(open[1]["pid"], client->pid());

  // And is over in the one that is taken when its core is back.
  ClearFault(folder(), daemon().target());
  ASSERT_TRUE(Done(client->Do("run v")));
  const json after = Take();
  EXPECT_TRUE(Events(after, "B").empty());
  const auto moments = Events(after, "i");
  ASSERT_EQ(moments.size(), 1U);
  EXPECT_EQ(moments[0]["name"], "failed: DEADLINE_EXCEEDED");
}

TEST_F(TraceTest, ClientThatNeverReadsItsTracesIsToldSoAndCostsNobodyElse) {
  StartDaemon();
  StartNeighbour();
  RawClient hoarder(daemon().socket());
  hoarder.SayHello();
  // Asks for more than the daemon makes at once, and reads nothing meanwhile.
  for (uint32_t request = 100; request < 140; ++request) {
    wire::Frame frame;
    frame.verb = wire::Verb::kTrace;
    frame.request = request;
    frame.body = *wire::Encode(wire::TraceRequest{});
    ASSERT_TRUE(
        wire::SendFrame(hoarder.socket(), frame, base::Block::kYes).ok());
    if (request % 20 == 0) {
      EXPECT_TRUE(NeighbourIsWell());
    }
  }

  EXPECT_TRUE(NeighbourIsWell());
  EXPECT_EQ(Take()["traceEvents"].is_array(), true);
}

TEST_F(TraceTest, FolderThatCannotBeWrittenIsAnErrorWithItsName) {
  StartDaemon();
  const RknnctlResult result =
      RunRknnctl(folder(), {"--target", daemon().target(), "trace", "--output",
                            "/nowhere/trace.json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("/nowhere/trace.json"));
}

}  // namespace
}  // namespace rknnd::integration
