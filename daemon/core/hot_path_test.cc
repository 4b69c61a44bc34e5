// One test: from Submit to completion nothing is allocated. A program of its
// own, as it replaces operator new.

#include <atomic>
#include <cstdlib>
#include <new>

#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace {

std::atomic<uint64_t> allocations{0};

void* Count(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}

// Not inlined: g++ would take the pair for mismatched where it sees both.
[[gnu::noinline]] void Free(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t size) {
  void* memory = Count(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t size) { return operator new(size); }
// std::stable_sort's.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return Count(size);
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Free(memory); }

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
  JobSubmission submission;
  submission.context = 1;

  const uint64_t before = allocations.load();
  bool submitted = true;
  for (uint32_t i = 0; i < 100; ++i) {
    // Two that take turns, and one that does not.
    submission.context = i % 3 + 1;
    submission.slot = i % kJobSlots;
    submission.sequence = i + 1;
    submitted = submitted && gate->Submit(submission).ok();
    if (i % 4 == 3) runner.RunReady();
  }
  const uint64_t during = allocations.load() - before;

  EXPECT_TRUE(submitted);
  EXPECT_EQ(sink->ok, 100U);
  EXPECT_EQ(during, 0U);
}

}  // namespace
}  // namespace rknnd::core
