// Tests of which heap a buffer comes from, and of who hears when it is another
// than was asked for.

#include <gmock/gmock.h>

#include "base/posix/memfd.h"
#include "daemon/core/memory/paging.h"
#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using driver::HeapTraits;
using driver::MemoryOrigin;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RecordingLog;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing::TestSession;

// Memfds by another name.
class NamedHeap final : public driver::Heap {
 public:
  NamedHeap(std::string name, HeapTraits traits)
      : name_(std::move(name)), traits_(traits) {}
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] HeapTraits traits() const override { return traits_; }
  absl::StatusOr<driver::Allocation> Allocate(uint64_t size) override {
    return driver::MakeMemfdHeap()->Allocate(size);
  }

 private:
  const std::string name_;
  const HeapTraits traits_;
};

driver::Heaps Board() {
  std::vector<std::unique_ptr<driver::Heap>> heaps;
  heaps.push_back(std::make_unique<NamedHeap>("system", HeapTraits{}));
  heaps.push_back(
      std::make_unique<NamedHeap>("uncached", HeapTraits{.cached = false}));
  heaps.push_back(
      std::make_unique<NamedHeap>("dma32", HeapTraits{.dma32 = true}));
  heaps.push_back(driver::MakeMemfdHeap());
  return driver::Heaps(std::move(heaps));
}

// Remembers where the memory that it attaches is said to come from.
class OriginDevice final : public driver::Device {
 public:
  explicit OriginDevice(driver::Device* device) : device_(device) {}
  [[nodiscard]] const driver::DeviceInfo& info() const override {
    return device_->info();
  }
  absl::StatusOr<std::unique_ptr<driver::Model>> Load(
      const driver::LoadRequest& request) override {
    return device_->Load(request);
  }
  absl::StatusOr<std::unique_ptr<driver::Memory>> Attach(
      const driver::MemoryRef& memory, driver::MemoryAccess access) override {
    origins.push_back(memory.origin);
    return device_->Attach(memory, access);
  }
  void Submit(const driver::JobRequest& job) override { device_->Submit(job); }
  [[nodiscard]] driver::CacheSyncs cache_syncs() const override {
    return {7, 3};
  }

  std::vector<MemoryOrigin> origins;

 private:
  driver::Device* const device_;
};

class BufferHeapsTest : public testing::CoreTest {
 protected:
  BufferHeapsTest() {
    options.heaps = &board_;
    options.device = &origins_;
    options.log = &daemon_log_;
    StartService();
  }
  ~BufferHeapsTest() override { StopService(); }

  std::string HeapOf(const TestSession& session, uint32_t flags) {
    const auto made = AllocateNow(session, ++number_, 64, flags);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? made->heap : "";
  }

  const driver::Heaps board_ = Board();
  OriginDevice origins_{&device};
  RecordingLog daemon_log_;
  uint32_t number_ = 0;
};

TEST_F(BufferHeapsTest, FlagsChooseTheHeap) {
  const TestSession session = Open();
  EXPECT_EQ(HeapOf(session, 0), "system");
  EXPECT_EQ(HeapOf(session, kBufferCacheable), "system");
  EXPECT_EQ(HeapOf(session, kBufferNonCacheable), "uncached");
  EXPECT_EQ(HeapOf(session, kBufferCacheable | kBufferNonCacheable), "system");
  EXPECT_EQ(HeapOf(session, kBufferDma32), "dma32");
  EXPECT_EQ(HeapOf(session, kBufferTrySram), "system, sram");
  EXPECT_THAT(session.log->lines, IsEmpty());
  EXPECT_THAT(daemon_log_.lines, IsEmpty());
}

TEST_F(BufferHeapsTest, FlagsThatNobodyKnowsAreRefused) {
  const TestSession session = Open();
  for (const uint32_t flags : {8U, 0x400U, 0x80000000U}) {
    EXPECT_EQ(AllocateNow(session, 9, 64, flags).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(memory().io, 0U);
}

TEST_F(BufferHeapsTest, WhatServedInsteadIsToldOnceASessionAndKind) {
  const TestSession session = Open();
  EXPECT_EQ(HeapOf(session, kBufferContiguous), "system (not contiguous)");
  EXPECT_EQ(HeapOf(session, kBufferContiguous), "system (not contiguous)");
  ASSERT_THAT(session.log->lines, SizeIs(1));
  EXPECT_THAT(
      session.log->lines[0],
      StartsWith("2 buffer 1: no heap here gives memory that is contiguous: "
                 "heap 'system' is used instead"));
  ASSERT_THAT(daemon_log_.lines, SizeIs(1));
  EXPECT_THAT(daemon_log_.lines[0], HasSubstr("session 1"));

  HeapOf(session, kBufferDma32 | kBufferNonCacheable);
  EXPECT_THAT(session.log->lines, SizeIs(2));
  const TestSession other = Open(101);
  HeapOf(other, kBufferContiguous);
  EXPECT_THAT(other.log->lines, SizeIs(1));
  EXPECT_THAT(daemon_log_.lines, SizeIs(3));
}

TEST_F(BufferHeapsTest, DeviceKnowsWhoMayWriteTheMemory) {
  const TestSession session = Open();
  origins_.origins.clear();
  HeapOf(session, 0);
  HeapOf(session, kBufferNonCacheable);
  ASSERT_TRUE(
      ImportNow(session, 50, *base::MakeMemfd("camera", 4096), 4096).ok());
  EXPECT_THAT(origins_.origins,
              ElementsAre(MemoryOrigin::kCachedHeap,
                          MemoryOrigin::kUncachedHeap, MemoryOrigin::kBrought));
}

TEST_F(BufferHeapsTest, SyncsOfTheDeviceAreReported) {
  EXPECT_EQ(service->Status().cache_syncs.done, 7U);
  EXPECT_EQ(service->Status().cache_syncs.skipped, 3U);
}

TEST_F(BufferHeapsTest, ClientsTellOfSyncsWhereMemoryIsIncoherent) {
  EXPECT_FALSE(service->wants_syncs());
  options.incoherent = true;
  StartService();
  EXPECT_TRUE(service->wants_syncs());
  EXPECT_FALSE(service->faults().ok());
}

}  // namespace
}  // namespace rknnd::core
