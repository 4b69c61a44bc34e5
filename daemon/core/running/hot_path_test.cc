// One test: from Submit to completion nothing is allocated, in slots that have
// had a job. A program of its own, as it replaces operator new.

#include <cstdint>
#include <memory>

#include "base/posix/testing/allocations.h"
#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

class CountingSink final : public CompletionSink {
 public:
  void Complete(const JobCompletion& completion) override {
    ok += completion.status.ok() ? 1 : 0;
  }
  uint64_t ok = 0;
};

class HotPathTest : public testing::CoreTest {};

TEST_F(HotPathTest, SubmitAndRunAllocateNothing) {
  const auto sink = std::make_shared<CountingSink>();
  auto opened = service->OpenSession({}, sink, nullptr);
  ASSERT_TRUE(opened.ok());
  const testing::TestSession session{*opened, nullptr, nullptr};
  MakeReady(session, 1, "internal=4096 layers=4", /*flags=*/0x8);
  MakeReady(session, 2, "internal=4096 name=outside", /*flags=*/0x200);
  MakeReady(session, 3, "internal=4096 name=outside", /*flags=*/0x200);
  ASSERT_TRUE(AllocateNow(session, 9, 4096, 0).ok());
  for (const uint32_t context : {2U, 3U}) {
    ASSERT_TRUE(session->SetInternalMemory({context, 9, 0, 4096}).ok());
  }
  const std::shared_ptr<JobGate> gate = session->gate();
  Runner& runner = service->runner();
  constexpr uint32_t kSlots = 10;
  JobSubmission submission;
  submission.context = 1;
  bool submitted = true;
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    submission.slot = slot;
    submitted = submitted && gate->Submit(submission).ok();
  }
  runner.RunReady();

  const uint64_t before = base::testing::Allocations();
  for (uint32_t i = 0; i < 100; ++i) {
    // Two that take turns, and one that does not.
    submission.context = i % 3 + 1;
    submission.slot = i % kSlots;
    submission.sequence = i + 1;
    submission.timeout_ms = i % 2 * 100;
    submission.deadline = i % 5 * base::kMillisecond;
    submitted = submitted && gate->Submit(submission).ok();
    if (i % 4 == 3) runner.RunReady();
  }
  const uint64_t during = base::testing::Allocations() - before;

  EXPECT_TRUE(submitted);
  EXPECT_EQ(sink->ok, kSlots + 100);
  EXPECT_EQ(during, 0U);
}

}  // namespace
}  // namespace rknnd::core
