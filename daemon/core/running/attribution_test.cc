// Sums of what jobs cost: by session, context, model and core, with gangs and
// with failures.

#include "daemon/core/running/attribution.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/posix/latency_buckets.h"
#include "daemon/core/testing/core_fixture.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

class AttributionTest : public testing::CoreTest {
 protected:
  AttributionTest() { device.HoldJobs(true); }

  // The oldest job leaves its cores after 7 ms.
  void EndJob() {
    clock.Advance(7 * base::kMillisecond);
    ASSERT_TRUE(device.Release());
    RunReady();
  }

  // Microseconds that all of `reports` had of the NPU.
  template <class Report>
  static uint64_t Sum(const std::vector<Report>& reports) {
    uint64_t sum = 0;
    for (const Report& report : reports) sum += report.npu_us;
    return sum;
  }
  uint64_t CoreSum() {
    uint64_t sum = 0;
    for (const CoreReport& core : service->Status().cores) {
      sum += static_cast<uint64_t>(core.busy) / 1000;
    }
    return sum;
  }
  void RunJobs(const TestSession& session, uint32_t context, uint32_t jobs) {
    for (uint32_t i = 0; i < jobs; ++i) {
      ASSERT_TRUE(Submit(session, context, i, ++sequence_).ok());
      RunReady();
      EndJob();
    }
  }

  uint32_t sequence_ = 0;
};

TEST_F(AttributionTest, TimesOfSessionsContextsModelsAndCoresAddUp) {
  const auto camera = Open(100);
  const auto door = Open(101);
  MakeReady(camera, 1, "name=face");
  MakeReady(camera, 2, "name=pose", 0, /*core_mask=*/7);
  MakeReady(door, 1, "name=face", 0, /*core_mask=*/2);
  RunJobs(camera, 1, 5);
  RunJobs(camera, 2, 3);  // a gang: three cores each
  RunJobs(door, 1, 4);

  EXPECT_EQ(CoreSum(), (5 + 3 * 3 + 4) * 7'000U);
  EXPECT_EQ(Sum(service->Sessions()), CoreSum());
  EXPECT_EQ(Sum(service->Contexts()), CoreSum());
  EXPECT_EQ(Sum(service->Models()), CoreSum());
  EXPECT_EQ(service->Sessions()[1].npu_us, 4 * 7'000U);
  std::map<ModelId, uint64_t> jobs;
  for (const ModelReport& model : service->Models())
    jobs[model.id] = model.jobs;
  EXPECT_EQ(jobs[Id("name=face")], 9U);
  EXPECT_EQ(jobs[Id("name=pose")], 3U);
}

TEST_F(AttributionTest, FailedJobsCostTimeToo) {
  const auto camera = Open();
  MakeReady(camera, 1, "name=face");
  RunJobs(camera, 1, 2);
  device.FailJobs(absl::InternalError("broken"));
  RunJobs(camera, 1, 3);

  const SessionReport report = service->Sessions()[0];
  EXPECT_EQ(report.jobs, 2U);
  EXPECT_EQ(report.npu_us, 5 * 7'000U);
  EXPECT_EQ(Sum(service->Contexts()), CoreSum());
  EXPECT_EQ(Sum(service->Models()), CoreSum());
}

TEST_F(AttributionTest, JobThatWasGivenUpCostsItsCoreUntilItIsBack) {
  const auto camera = Open();
  MakeReady(camera, 1, "name=face");
  ASSERT_TRUE(Submit(camera, 1, 0).ok());
  RunReady();
  Advance(options.scheduling.hang + base::kMillisecond);
  service->runner().Expire();
  ASSERT_TRUE(absl::IsDeadlineExceeded(camera.sink->last().status));
  EndJob();

  const uint64_t all =
      static_cast<uint64_t>(options.scheduling.hang) / 1000 + 8'000U;
  EXPECT_EQ(CoreSum(), all);
  EXPECT_EQ(Sum(service->Sessions()), all);
  EXPECT_EQ(Sum(service->Contexts()), all);
  EXPECT_EQ(service->Sessions()[0].jobs, 0U);
  EXPECT_EQ(service->Models()[0].jobs, 0U);
}

TEST_F(AttributionTest, DropsAreCountedForSessionContextModelAndInAll) {
  const auto camera = Open();
  MakeReady(camera, 1, "name=face");
  QueueRequest newest;
  newest.context = 1;
  newest.policy = QueuePolicy::kNewest;
  ASSERT_TRUE(camera->SetQueue(newest).ok());
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(Submit(camera, 1, i, i + 1).ok());
    RunReady();
  }

  // One runs, one waits.
  EXPECT_EQ(service->Sessions()[0].drops, 2U);
  EXPECT_EQ(service->Contexts()[0].drops, 2U);
  EXPECT_EQ(service->Models()[0].drops, 2U);
  EXPECT_EQ(service->Status().jobs_dropped, 2U);
  EndJob();
  EndJob();
}

TEST_F(AttributionTest, WaitingIsCountedForSessionContextAndModel) {
  const auto camera = Open();
  MakeReady(camera, 1, "name=face");
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(Submit(camera, 1, i, i + 1).ok());
  }
  RunReady();
  for (int i = 0; i < 3; ++i) EndJob();

  // This device stamps a job's start at its end: 7, 14 and 21 ms.
  EXPECT_EQ(service->Sessions()[0].queue_us, 6 * 7'000U);
  EXPECT_EQ(service->Contexts()[0].queue_us, 6 * 7'000U);
  EXPECT_EQ(service->Models()[0].queue_us, 6 * 7'000U);
}

TEST_F(AttributionTest, LatencyIsCountedByItsLength) {
  const auto camera = Open();
  MakeReady(camera, 1, "name=face");
  EXPECT_TRUE(service->Sessions()[0].latency.empty());
  RunJobs(camera, 1, 4);

  const std::vector<uint32_t> latency = service->Sessions()[0].latency;
  const size_t bucket = base::LatencyBucketOf(7 * base::kMillisecond);
  ASSERT_EQ(latency.size(), bucket + 1);
  EXPECT_EQ(latency[bucket], 4U);
  EXPECT_EQ(std::accumulate(latency.begin(), latency.end(), 0U), 4U);
}

TEST_F(AttributionTest, CoreTellsWhoseJobItHas) {
  const auto camera = Open();
  MakeReady(camera, 1, "name=face", 0, /*core_mask=*/2);
  EXPECT_EQ(service->Status().cores[1].session, 0U);
  RunJobs(camera, 1, 1);

  const StatusReport status = service->Status();
  EXPECT_EQ(status.cores[1].model, service->Models()[0].name);
  EXPECT_EQ(status.cores[1].session, service->Sessions()[0].id);
  EXPECT_EQ(status.cores[0].model, "");
}

TEST_F(AttributionTest, TraceHasTheJobsThatRanAndTheOneThatRuns) {
  const auto camera = Open();
  MakeReady(camera, 1, "name=face");
  RunJobs(camera, 1, 2);
  ASSERT_TRUE(Submit(camera, 1, 9, 9).ok());
  RunReady();
  uint64_t jobs = 0;
  service->TakeTrace(0, [&jobs](absl::StatusOr<Service::Trace> trace) {
    ASSERT_TRUE(trace.ok());
    jobs = trace->jobs;
  });
  RunLoops();
  EXPECT_EQ(jobs, 3U);
  device.Release();
}

}  // namespace
}  // namespace rknnd::core
