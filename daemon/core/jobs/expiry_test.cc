// Tests of the heap of times and of the alarm, which is set as seldom as can
// be.

#include "daemon/core/jobs/expiry.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

class ExpiryTest : public ::testing::Test {
 protected:
  void Add(Job* job, base::Nanoseconds when) {
    if (expiry_.Add(job, when)) expiry_.Arm();
  }
  // The slots of those that are due, in the order in which they come.
  std::vector<uint32_t> Expire(base::Nanoseconds now) {
    waker_.alarm = kNever;
    expiry_.BeginExpiring();
    std::vector<uint32_t> slots;
    while (const auto due = expiry_.TakeDue(now)) slots.push_back(due->slot);
    expiry_.Arm();
    return slots;
  }

  testing::CountingWaker waker_;
  Expiry expiry_{&waker_};
};

TEST_F(ExpiryTest, TimesBeyondTheClockAreNever) {
  EXPECT_EQ(After(1000, 0), kNever);
  EXPECT_EQ(After(1000, -1), kNever);
  EXPECT_EQ(After(1000, kNever), kNever);
  EXPECT_EQ(After(1000, kNever - 1000), kNever);
  EXPECT_EQ(After(1000, kNever - 1001), kNever - 1);
  EXPECT_EQ(After(1000, 5), 1005);
}

TEST_F(ExpiryTest, WithoutJobsThereIsNoAlarm) {
  EXPECT_TRUE(Expire(1'000'000).empty());
  EXPECT_EQ(waker_.alarms, 0U);
}

TEST_F(ExpiryTest, AlarmIsSetOnlyForAnEarlierTimeThanItIsSetFor) {
  std::vector<Job> jobs(3);
  Add(&jobs[0], 50);
  Add(&jobs[1], 70);
  EXPECT_EQ(waker_.alarms, 1U);
  Add(&jobs[2], 30);
  EXPECT_EQ(waker_.alarms, 2U);
  EXPECT_EQ(waker_.alarm, 30);
}

TEST_F(ExpiryTest, StreamOfFramesSetsTheAlarmOnceInATimeoutAndNotForEach) {
  // A minute of 50 frames a second, each of which may take 100 ms and takes 10.
  std::vector<Job> jobs(1);
  uint32_t frames = 0;
  for (base::Nanoseconds now = 0; now < 60 * base::kSecond; now += 20 * kMs) {
    if (waker_.alarm <= now) {
      EXPECT_TRUE(Expire(now).empty());
    }
    Add(jobs.data(), now + 100 * kMs);
    if (waker_.alarm <= now + 10 * kMs) {
      EXPECT_TRUE(Expire(now + 10 * kMs).empty());
    }
    expiry_.Remove(jobs.data());
    ++frames;
  }
  EXPECT_EQ(frames, 3000U);
  EXPECT_LE(waker_.alarms, 601U);
}

TEST_F(ExpiryTest, AlarmThatWentOffForNothingIsSetForWhoIsFirstThen) {
  std::vector<Job> jobs(2);
  Add(&jobs[0], 50);
  Add(&jobs[1], 90);
  expiry_.Remove(&jobs[0]);
  EXPECT_EQ(waker_.alarm, 50);
  EXPECT_TRUE(Expire(50).empty());
  EXPECT_EQ(waker_.alarm, 90);
  expiry_.Remove(&jobs[1]);
  EXPECT_TRUE(Expire(90).empty());
  EXPECT_EQ(waker_.alarm, kNever);
}

TEST_F(ExpiryTest, LookOfTheHangWatchSharesTheAlarm) {
  std::vector<Job> jobs(1);
  if (expiry_.WatchAt(500)) expiry_.Arm();
  Add(jobs.data(), 600);
  EXPECT_EQ(waker_.alarms, 1U);
  EXPECT_EQ(waker_.alarm, 500);
  expiry_.BeginExpiring();
  expiry_.Arm();
  EXPECT_EQ(waker_.alarm, 500);  // an earlier call stays in force
  EXPECT_EQ(Expire(600), std::vector<uint32_t>{0});
}

TEST_F(ExpiryTest, AnyOrderOfAddsAndRemovesGivesThemByTime) {
  std::mt19937 random(17);
  constexpr uint32_t kJobs = 300;
  std::vector<Job> jobs(kJobs);
  std::multimap<base::Nanoseconds, Job*> model;
  for (uint32_t i = 0; i < kJobs; ++i) jobs[i].submission.slot = i;
  base::Nanoseconds now = 0;
  for (int step = 0; step < 40'000; ++step) {
    Job* const job = &jobs[random() % kJobs];
    const auto known =
        std::find_if(model.begin(), model.end(),
                     [job](const auto& one) { return one.second == job; });
    if (known == model.end()) {
      const base::Nanoseconds when = now + 1 + random() % 500;
      Add(job, when);
      model.emplace(when, job);
    } else {
      expiry_.Remove(job);
      model.erase(known);
    }
    if (random() % 40 != 0) continue;
    now += random() % 200;
    std::vector<uint32_t> due = Expire(now);
    base::Nanoseconds last = 0;
    for (const uint32_t slot : due) {
      const auto found = std::find_if(
          model.begin(), model.end(),
          [&](const auto& one) { return one.second == &jobs[slot]; });
      ASSERT_NE(found, model.end());
      ASSERT_LE(found->first, now);
      ASSERT_GE(found->first, last);
      last = found->first;
      model.erase(found);
    }
    ASSERT_TRUE(model.empty() || model.begin()->first > now);
    ASSERT_EQ(waker_.alarm, model.empty() ? kNever : model.begin()->first);
  }
}

TEST_F(ExpiryTest, JobThatIsTakenOutTwiceIsOut) {
  std::vector<Job> jobs(2);
  Add(&jobs[0], 10);
  Add(&jobs[1], 20);
  expiry_.Remove(&jobs[0]);
  expiry_.Remove(&jobs[0]);
  EXPECT_EQ(Expire(100).size(), 1U);
  expiry_.Remove(&jobs[1]);
}

}  // namespace
}  // namespace rknnd::core
