#include "daemon/core/reports/recorder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace rknnd::core {
namespace {

// All of it follows from one number, so that half a record shows.
JobRecord Make(uint64_t n) {
  JobRecord job;
  job.submitted = static_cast<base::Nanoseconds>(n * 10 + 1);
  job.started = job.submitted + 1;
  job.ended = job.submitted + 2;
  job.answered = job.submitted + 3;
  job.frame = n;
  job.session = n * 3;
  job.pid = static_cast<int32_t>(n % 4'000'000);
  job.context = static_cast<uint32_t>(n * 5);
  job.cores = static_cast<uint32_t>(n * 7);
  job.drops = static_cast<uint32_t>(n * 11);
  job.model = static_cast<uint32_t>(n * 13);
  job.code = static_cast<absl::StatusCode>(n % 17);
  return job;
}

bool IsWhole(const JobRecord& job) {
  const JobRecord wanted = Make(job.frame);
  return job.submitted == wanted.submitted && job.started == wanted.started &&
         job.ended == wanted.ended && job.answered == wanted.answered &&
         job.session == wanted.session && job.pid == wanted.pid &&
         job.context == wanted.context && job.cores == wanted.cores &&
         job.drops == wanted.drops && job.model == wanted.model &&
         job.code == wanted.code;
}

TEST(RecorderTest, JobsAreReadAsTheyWereWrittenTheOldestFirst) {
  Recorder recorder(8);
  for (uint64_t n = 1; n <= 5; ++n) recorder.Add(Make(n));

  const Recorder::Snapshot snapshot = recorder.Read();

  ASSERT_EQ(snapshot.jobs.size(), 5U);
  EXPECT_EQ(snapshot.lost, 0U);
  for (uint64_t n = 1; n <= 5; ++n) {
    EXPECT_EQ(snapshot.jobs[n - 1].frame, n);
    EXPECT_TRUE(IsWhole(snapshot.jobs[n - 1]));
  }
}

TEST(RecorderTest, NewJobsTakeThePlaceOfTheOldestWhichAreCounted) {
  Recorder recorder(8);
  for (uint64_t n = 1; n <= 20; ++n) recorder.Add(Make(n));

  const Recorder::Snapshot snapshot = recorder.Read();

  ASSERT_EQ(snapshot.jobs.size(), 8U);
  EXPECT_EQ(snapshot.jobs.front().frame, 13U);
  EXPECT_EQ(snapshot.jobs.back().frame, 20U);
  EXPECT_EQ(snapshot.lost, 12U);
}

TEST(RecorderTest, JobOnACoreIsShownUntilItLeaves) {
  Recorder recorder(8);
  recorder.Begin(2, Make(4));

  ASSERT_EQ(recorder.Read().running.size(), 1U);
  EXPECT_TRUE(IsWhole(recorder.Read().running[0]));

  recorder.Leave(2);
  EXPECT_TRUE(recorder.Read().running.empty());
  EXPECT_EQ(recorder.LastOf(2).frame, 4U);
  EXPECT_EQ(recorder.LastOf(1).session, 0U);
}

TEST(RecorderTest, JobIsShownOnceWhileItEnds) {
  Recorder recorder(8);
  recorder.Begin(0, Make(4));
  recorder.Add(Make(4));

  const Recorder::Snapshot snapshot = recorder.Read();

  EXPECT_EQ(snapshot.jobs.size(), 1U);
  EXPECT_TRUE(snapshot.running.empty());
}

TEST(RecorderTest, NobodyEverReadsHalfARecord) {
  Recorder recorder(64);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> numbers{0};
  std::vector<std::thread> writers;
  for (uint32_t core = 0; core < 3; ++core) {
    writers.emplace_back([&, core] {
      for (uint32_t i = 0; i < 30'000; ++i) {
        const JobRecord job = Make(numbers.fetch_add(1) + 1);
        recorder.Begin(core, job);
        recorder.Leave(core);
        recorder.Add(job);
      }
      stop = true;
    });
  }

  uint64_t read = 0;
  uint64_t broken = 0;
  do {
    const Recorder::Snapshot snapshot = recorder.Read();
    for (const auto* list : {&snapshot.jobs, &snapshot.running}) {
      for (const JobRecord& job : *list) {
        ++read;
        broken += IsWhole(job) ? 0 : 1;
      }
    }
  } while (!stop || read == 0);
  for (std::thread& writer : writers) writer.join();

  EXPECT_GT(read, 0U);
  EXPECT_EQ(broken, 0U);
  EXPECT_EQ(recorder.Read().jobs.size() + recorder.Read().lost, 90'000U);
}

TEST(RecorderTest, ModelsOfOneNameShareANumberAndTooManyShareAnother) {
  Recorder recorder(8);
  const uint32_t face = recorder.NameModel("face.onnx");

  EXPECT_EQ(recorder.NameModel("face.onnx"), face);
  EXPECT_EQ(recorder.ModelName(face), "face.onnx");
  uint32_t last = 0;
  for (int i = 0; i < 5000; ++i) {
    last = recorder.NameModel("model " + std::to_string(i));
  }
  EXPECT_EQ(last, 0U);
  EXPECT_EQ(recorder.ModelName(last), "other models");
  EXPECT_EQ(recorder.ModelName(123'456), "other models");
}

TEST(RecorderTest, NamesOfSessionsThatEndedLongAgoAreForgotten) {
  Recorder recorder(8);
  SessionPeer peer;
  peer.comm = "camera";
  for (SessionId id = 1; id <= 5000; ++id) {
    recorder.NameSession(id, peer);
    recorder.EndSession(id);
  }

  const Recorder::Names names = recorder.names();

  EXPECT_EQ(names.programs.count(1), 0U);
  EXPECT_EQ(names.programs.at(5000), "camera");
  EXPECT_LE(names.programs.size(), 4096U);
}

}  // namespace
}  // namespace rknnd::core
