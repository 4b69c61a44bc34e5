// The text is read by a JSON parser, and looked at as its readers do.

#include "daemon/core/reports/trace_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/testing/words.h"
#include "nlohmann/json.hpp"

namespace rknnd::core {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

JobRecord Job(SessionId session, uint32_t context, base::Nanoseconds submitted,
              base::Nanoseconds started, base::Nanoseconds ended,
              uint32_t cores) {
  JobRecord job;
  job.submitted = submitted;
  job.started = started;
  job.ended = ended;
  job.answered = ended + 1000;
  job.session = session;
  job.pid = 4000 + static_cast<int32_t>(session);
  job.context = context;
  job.cores = cores;
  job.model = 1;
  return job;
}

TraceSource Source() {
  TraceSource source;
  source.names.models = {"other models", "face.onnx", "pose.onnx"};
  source.names.programs = {{1, "camera"}, {2, "door \"bell\"\n\xff"}};
  source.cores = 3;
  source.device = "soft, rk3588";
  source.taken = 1000 * kMs;
  return source;
}

std::string Text(const TraceSource& source) {
  std::string text;
  const absl::Status written =
      WriteTrace(source, [&text](std::string_view piece) {
        text += piece;
        return absl::OkStatus();
      });
  EXPECT_TRUE(written.ok());
  return text;
}

json Parse(const TraceSource& source) {
  json trace = json::parse(Text(source), nullptr, false);
  EXPECT_FALSE(trace.is_discarded());
  return trace;
}

std::vector<json> EventsOf(const json& trace, const std::string& kind) {
  std::vector<json> events;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == kind) events.push_back(event);
  }
  return events;
}

int64_t Ns(const json& us) { return std::llround(us.get<double>() * 1000); }

// Slices of each track that begin before the one before has ended.
int Overlaps(const json& trace) {
  std::map<std::pair<uint64_t, uint64_t>,
           std::vector<std::pair<int64_t, int64_t>>>
      tracks;
  for (const json& event : EventsOf(trace, "X")) {
    const int64_t begin = Ns(event["ts"]);
    tracks[{event["pid"], event["tid"]}].push_back(
        {begin, begin + Ns(event["dur"])});
  }
  for (const json& event : EventsOf(trace, "B")) {
    tracks[{event["pid"], event["tid"]}].push_back(
        {Ns(event["ts"]), INT64_MAX});
  }
  int overlaps = 0;
  for (auto& [track, slices] : tracks) {
    std::sort(slices.begin(), slices.end());
    for (size_t i = 1; i < slices.size(); ++i) {
      if (slices[i].first < slices[i - 1].second) ++overlaps;
    }
  }
  return overlaps;
}

std::string ThreadName(const json& trace, const json& event) {
  for (const json& name : EventsOf(trace, "M")) {
    if (name["name"] == "thread_name" && name["tid"] == event["tid"]) {
      return name["args"]["name"];
    }
  }
  return "";
}

TEST(TraceTextTest, RunIsASliceOnItsCoreAndOneOnItsContext) {
  TraceSource source = Source();
  source.jobs.jobs = {Job(1, 3, 10 * kMs, 12 * kMs, 20 * kMs, 0b010)};

  const json trace = Parse(source);

  const auto slices = EventsOf(trace, "X");
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(ThreadName(trace, slices[0]), "core 1");
  EXPECT_EQ(slices[0]["name"], "face.onnx");
  EXPECT_EQ(slices[0]["ts"], 12'000.0);
  EXPECT_EQ(slices[0]["dur"], 8'000.0);
  EXPECT_EQ(slices[0]["args"]["session"], 1);
  EXPECT_EQ(slices[0]["args"]["context"], 3);
  EXPECT_EQ(slices[0]["args"]["program"], "camera");
  EXPECT_EQ(slices[0]["args"]["queue_us"], 2'000.0);
  EXPECT_EQ(slices[1]["pid"], 4001);
  EXPECT_EQ(ThreadName(trace, slices[1]), "context 3 of session 1: face.onnx");
  EXPECT_EQ(slices[1]["args"]["cores"], "1");
}

TEST(TraceTextTest, GangIsOnAllItsCores) {
  TraceSource source = Source();
  source.jobs.jobs = {Job(1, 3, 10 * kMs, 12 * kMs, 20 * kMs, 0b111)};

  const auto slices = EventsOf(Parse(source), "X");

  EXPECT_EQ(slices.size(), 4U);
}

TEST(TraceTextTest, WhatWaitedIsAnEventWithBothItsEnds) {
  TraceSource source = Source();
  source.jobs.jobs = {Job(1, 3, 10 * kMs, 12 * kMs, 20 * kMs, 1),
                      Job(1, 3, 11 * kMs, 20 * kMs, 28 * kMs, 1)};

  const json trace = Parse(source);

  const auto begins = EventsOf(trace, "b");
  const auto ends = EventsOf(trace, "e");
  ASSERT_EQ(begins.size(), 2U);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(begins[1]["ts"], 11'000.0);
  EXPECT_EQ(ends[1]["ts"], 20'000.0);
  EXPECT_EQ(begins[1]["id"], ends[1]["id"]);
  EXPECT_NE(begins[0]["id"], begins[1]["id"]);
  EXPECT_EQ(begins[0]["pid"], 4001);
}

TEST(TraceTextTest, SlicesOfOneTrackNeverOverlap) {
  TraceSource source = Source();
  // As a device might stamp them: each a bit into the one before.
  for (int i = 0; i < 200; ++i) {
    const base::Nanoseconds begin = i * 10 * kMs + 1;
    source.jobs.jobs.push_back(Job(1 + i % 2, i % 5, begin, begin + 3,
                                   begin + 10 * kMs + 7,
                                   i % 3 == 0 ? 0b111U : 1U << i % 3));
  }
  JobRecord running = Job(1, 9, 3000 * kMs, 3001 * kMs, 0, 0b1);
  running.answered = 0;
  source.jobs.running = {running};

  EXPECT_EQ(Overlaps(Parse(source)), 0);
}

TEST(TraceTextTest, JobThatRunsIsASliceWithoutAnEnd) {
  TraceSource source = Source();
  JobRecord hung = Job(1, 3, 10 * kMs, 12 * kMs, 0, 0b100);
  hung.answered = 0;
  source.jobs.running = {hung};

  const json trace = Parse(source);

  const auto open = EventsOf(trace, "B");
  ASSERT_EQ(open.size(), 2U);
  EXPECT_EQ(ThreadName(trace, open[0]), "core 2");
  EXPECT_EQ(open[0]["args"]["running_us"], 988'000.0);
  EXPECT_TRUE(EventsOf(trace, "E").empty());
  EXPECT_TRUE(EventsOf(trace, "X").empty());
}

TEST(TraceTextTest, DropsAndFailuresAreMomentsOfTheirContext) {
  TraceSource source = Source();
  JobRecord dropped = Job(1, 3, 10 * kMs, 0, 0, 0);
  dropped.answered = 15 * kMs;
  dropped.code = absl::StatusCode::kAborted;
  JobRecord failed = Job(1, 3, 10 * kMs, 12 * kMs, 20 * kMs, 1);
  failed.code = absl::StatusCode::kDeadlineExceeded;
  JobRecord after = Job(1, 3, 20 * kMs, 21 * kMs, 22 * kMs, 1);
  after.drops = 2;
  source.jobs.jobs = {dropped, failed, after};

  const json trace = Parse(source);

  const auto moments = EventsOf(trace, "i");
  ASSERT_EQ(moments.size(), 3U);
  EXPECT_EQ(moments[0]["name"], "not run: ABORTED");
  EXPECT_EQ(moments[0]["ts"], 15'000.0);
  EXPECT_EQ(moments[1]["name"], "failed: DEADLINE_EXCEEDED");
  EXPECT_EQ(moments[2]["name"], "2 frames dropped before this one");
  EXPECT_EQ(ThreadName(trace, moments[0]), "context 3 of session 1: face.onnx");
}

TEST(TraceTextTest, CountersGoUpAndEndWhereTheyBegan) {
  TraceSource source = Source();
  for (int i = 0; i < 10; ++i) {
    source.jobs.jobs.push_back(
        Job(1, 3, i * kMs, (10 + i) * kMs, (11 + i) * kMs, 1));
  }

  int64_t most = 0;
  int64_t queued = -1;
  int64_t running = -1;
  for (const json& event : EventsOf(Parse(source), "C")) {
    const int64_t jobs = event["args"]["jobs"];
    EXPECT_GE(jobs, 0);
    (event["name"] == "jobs queued" ? queued : running) = jobs;
    most = std::max(most, jobs);
  }
  EXPECT_EQ(most, 10);
  EXPECT_EQ(queued, 0);
  EXPECT_EQ(running, 0);
}

TEST(TraceTextTest, NamesOfClientsCannotBreakTheText) {
  TraceSource source = Source();
  source.jobs.jobs = {Job(2, 1, 10 * kMs, 12 * kMs, 20 * kMs, 1)};

  const json trace = Parse(source);

  EXPECT_EQ(EventsOf(trace, "X")[0]["args"]["program"], "door \"bell\"\n?");
}

TEST(TraceTextTest, ProgramsOfOtherNamespacesAreApart) {
  TraceSource source = Source();
  for (const SessionId session : {1, 2}) {
    source.jobs.jobs.push_back(
        Job(session, 1, 10 * kMs, 12 * kMs, 20 * kMs, 1));
    source.jobs.jobs.back().pid = 0;
  }

  const auto slices = EventsOf(Parse(source), "X");

  ASSERT_EQ(slices.size(), 4U);
  EXPECT_NE(slices[2]["pid"], slices[3]["pid"]);
  EXPECT_GT(slices[2]["pid"], 4'194'304);  // no process of Linux
}

TEST(TraceTextTest, NumbersThatReadersOfJsonRoundAreText) {
  TraceSource source = Source();
  source.jobs.jobs = {Job(1, 1, 10 * kMs, 12 * kMs, 20 * kMs, 1)};
  source.jobs.jobs[0].frame = UINT64_MAX;

  EXPECT_EQ(EventsOf(Parse(source), "X")[0]["args"]["frame"],
            "18446744073709551615");
}

TEST(TraceTextTest, CutLeavesWhatEndedSince) {
  Recorder::Snapshot jobs;
  jobs.jobs = {Job(1, 1, 1 * kMs, 2 * kMs, 3 * kMs, 1),
               Job(1, 1, 2 * kMs, 3 * kMs, 9 * kMs, 1)};

  CutTrace(5 * kMs, &jobs);

  ASSERT_EQ(jobs.jobs.size(), 1U);
  EXPECT_EQ(jobs.jobs[0].ended, 9 * kMs);
}

TEST(TraceTextTest, SinkThatFailsEndsTheWriting) {
  TraceSource source = Source();
  for (int i = 0; i < 5000; ++i) {
    source.jobs.jobs.push_back(Job(1, 1, i * kMs, i * kMs, i * kMs + 1, 1));
  }
  int pieces = 0;

  const absl::Status status = WriteTrace(source, [&pieces](std::string_view) {
    ++pieces;
    return absl::ResourceExhaustedError("the disk is full");
  });

  EXPECT_THAT(std::string(status.message()), HasSubstr("full"));
  EXPECT_EQ(pieces, 1);
}

TEST(TraceTextTest, NothingRecordedIsATraceToo) {
  const json trace = Parse(Source());
  EXPECT_EQ(trace["otherData"]["jobs"], 0);
  EXPECT_EQ(trace["otherData"]["device"], "soft, rk3588");
}

}  // namespace
}  // namespace rknnd::core
