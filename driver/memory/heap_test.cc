#include "driver/memory/heap.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "base/status/matchers.h"
#include "driver/memory/cache_sync.h"
#include "driver/memory/import.h"

namespace rknnd::driver {
namespace {

using ::rknnd::base::IsOk;
using ::rknnd::base::Mapping;
using ::rknnd::base::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What every heap promises. Returns what it allocated.
void ExpectZeroedWritableMemory(Heap& heap) {
  RKNND_ASSERT_OK_AND_ASSIGN(const Allocation allocation,
                             heap.Allocate(100'000));
  EXPECT_GE(allocation.size, 100'000U);
  EXPECT_EQ(allocation.size % 4096, 0U);
  EXPECT_NE(fcntl(allocation.fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  RKNND_ASSERT_OK_AND_ASSIGN(const ImportCheck check,
                             CheckImport(allocation.fd.get()));
  EXPECT_EQ(check.size, allocation.size);
  EXPECT_TRUE(check.writable);
  RKNND_ASSERT_OK_AND_ASSIGN(
      Mapping mapping, Mapping::OfFd(allocation.fd.get(), 0, allocation.size,
                                     Mapping::Access::kReadWrite));
  EXPECT_THAT(mapping.Populate(Mapping::Access::kReadWrite), IsOk());
  RKNND_ASSERT_OK_AND_ASSIGN(
      CacheSync sync,
      CacheSync::Begin(allocation.fd.get(), CpuAccess::kReadWrite));
  EXPECT_TRUE(std::all_of(mapping.bytes().begin(), mapping.bytes().end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
  mapping.data()[allocation.size - 1] = std::byte{1};
  EXPECT_THAT(sync.End(), IsOk());
}

TEST(MemfdHeapTest, GivesZeroedWritableMemory) {
  ExpectZeroedWritableMemory(*MakeMemfdHeap());
}

TEST(MemfdHeapTest, ItsMemoryCannotChangeItsSize) {
  RKNND_ASSERT_OK_AND_ASSIGN(const Allocation allocation,
                             MakeMemfdHeap()->Allocate(1));
  EXPECT_TRUE(base::HasSeals(allocation.fd.get(), base::Seals::kFixedSize));
}

TEST(MemfdHeapTest, ImpossibleSizesAreErrors) {
  const auto heap = MakeMemfdHeap();
  for (const uint64_t size :
       {uint64_t{0}, std::numeric_limits<uint64_t>::max(), uint64_t{1} << 63}) {
    EXPECT_THAT(heap->Allocate(size),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(UdmabufHeapTest, GivesZeroedWritableDmaBufs) {
  absl::StatusOr<std::unique_ptr<Heap>> heap = OpenUdmabufHeap();
  if (!heap.ok()) GTEST_SKIP() << heap.status();
  ExpectZeroedWritableMemory(**heap);
  RKNND_ASSERT_OK_AND_ASSIGN(const Allocation allocation, (*heap)->Allocate(1));
  RKNND_ASSERT_OK_AND_ASSIGN(const ImportCheck check,
                             CheckImport(allocation.fd.get()));
  EXPECT_TRUE(check.is_dma_buf);
}

TEST(DmaHeapTest, GivesZeroedWritableDmaBufs) {
  absl::StatusOr<std::unique_ptr<Heap>> heap = OpenDmaHeap("system");
  if (!heap.ok()) GTEST_SKIP() << heap.status();
  ExpectZeroedWritableMemory(**heap);
  RKNND_ASSERT_OK_AND_ASSIGN(const Allocation allocation, (*heap)->Allocate(1));
  RKNND_ASSERT_OK_AND_ASSIGN(const ImportCheck check,
                             CheckImport(allocation.fd.get()));
  EXPECT_TRUE(check.is_dma_buf);
}

TEST(DmaHeapTest, AHeapThisKernelLacksIsNamedByItsPath) {
  EXPECT_THAT(OpenDmaHeap("no-such-heap").status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("'/dev/dma_heap/no-such-heap'")));
}

TEST(DmaHeapTest, ANameIsNoPath) {
  for (const char* name : {"", ".", "..", "../null", "a/b"}) {
    EXPECT_THAT(OpenDmaHeap(name).status(),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

// Memory of a memfd under another name and with other traits.
class SomeHeap final : public Heap {
 public:
  SomeHeap(std::string name, HeapTraits traits, bool full = false)
      : name_(std::move(name)), traits_(traits), full_(full) {}
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] HeapTraits traits() const override { return traits_; }
  absl::StatusOr<Allocation> Allocate(uint64_t size) override {
    if (full_) {
      return absl::ResourceExhaustedError("heap '" + name_ + "' is full");
    }
    return MakeMemfdHeap()->Allocate(size);
  }

 private:
  const std::string name_;
  const HeapTraits traits_;
  const bool full_;
};

constexpr HeapTraits kPlain{};
constexpr HeapTraits kUncached{.cached = false};
constexpr HeapTraits kDma32{.dma32 = true};
constexpr HeapTraits kContiguous{.contiguous = true};

// A board's: system memory in four kinds, and CMA.
Heaps Board(const HeapConfig& config = {}, bool full_cma = false) {
  std::vector<std::unique_ptr<Heap>> list;
  const auto add = [&list](const char* name, HeapTraits traits,
                           bool full = false) {
    list.push_back(std::make_unique<SomeHeap>(name, traits, full));
  };
  add("system", kPlain);
  add("system-uncached", kUncached);
  add("system-dma32", kDma32);
  add("cma", kContiguous, full_cma);
  list.push_back(MakeMemfdHeap());
  return Heaps(std::move(list), config);
}

Allocation Given(const Heaps& heaps, HeapRequest request) {
  request.size = 1;
  auto given = heaps.Allocate(request);
  EXPECT_THAT(given.status(), IsOk());
  return given.ok() ? *std::move(given) : Allocation{};
}

TEST(HeapChoiceTest, PlainMemoryComesFromTheFirst) {
  const Allocation given = Given(Board(), {});
  EXPECT_EQ(given.heap, "system");
  EXPECT_EQ(given.instead, "");
  EXPECT_EQ(given.traits, kPlain);
}

TEST(HeapChoiceTest, EachWishFindsTheHeapThatHasIt) {
  const Heaps heaps = Board();
  EXPECT_EQ(Given(heaps, {.cached = false}).heap, "system-uncached");
  EXPECT_EQ(Given(heaps, {.dma32 = true}).heap, "system-dma32");
  EXPECT_EQ(Given(heaps, {.contiguous = true}).heap, "cma");
  EXPECT_EQ(Given(heaps, {.cached = false}).traits, kUncached);
}

TEST(HeapChoiceTest, WhatNoHeapHasIsSaidInHeapAndLog) {
  const Heaps heaps = Board();
  const Allocation given = Given(heaps, {.cached = false, .contiguous = true});
  EXPECT_EQ(given.heap, "cma (not uncached)");
  EXPECT_THAT(given.instead,
              AllOf(HasSubstr("no heap here gives memory that is uncached"),
                    HasSubstr("'cma' is used instead"),
                    HasSubstr("system-dma32 (cached, below 4 GiB)")));
  EXPECT_LT(given.instead_kind, kInsteadKinds);
}

TEST(HeapChoiceTest, ContiguousMattersMostThenBelow4GiBThenCached) {
  const Heaps heaps = Board();
  EXPECT_EQ(
      Given(heaps, {.cached = false, .dma32 = true, .contiguous = true}).heap,
      "cma (not below 4 GiB, uncached)");
  EXPECT_EQ(Given(heaps, {.cached = false, .dma32 = true}).heap,
            "system-dma32 (not uncached)");
}

TEST(HeapChoiceTest, OnlyMemfdsServeAllTheSame) {
  std::vector<std::unique_ptr<Heap>> list;
  list.push_back(MakeMemfdHeap());
  const Heaps heaps(std::move(list));
  const Allocation given = Given(heaps, {.contiguous = true});
  EXPECT_EQ(given.heap, "memfd (not contiguous)");
  EXPECT_NE(given.instead, "");
  EXPECT_NE(given.instead_kind, Given(heaps, {.dma32 = true}).instead_kind);
}

TEST(HeapChoiceTest, AnyHeapIsBetterThanMemfdWhichNoOtherDeviceImports) {
  std::vector<std::unique_ptr<Heap>> list;
  list.push_back(std::make_unique<SomeHeap>("uncached", kUncached));
  list.push_back(MakeMemfdHeap());
  EXPECT_EQ(Given(Heaps(std::move(list)), {}).heap, "uncached (not cached)");
}

TEST(HeapChoiceTest, AFullHeapIsReplacedAndSaysWhy) {
  const Allocation given = Given(Board({}, true), {.contiguous = true});
  EXPECT_EQ(given.heap, "system (not contiguous)");
  EXPECT_THAT(given.instead, AllOf(HasSubstr("'cma' is full"),
                                   HasSubstr("'system' is used instead")));
}

TEST(HeapChoiceTest, ConfiguredWishesAreEverybodys) {
  EXPECT_EQ(Given(Board({.dma32 = true}), {}).heap, "system-dma32");
  EXPECT_EQ(Given(Board({.contiguous = true}), {}).heap, "cma");
}

TEST(HeapChoiceTest, ConfiguredWishesThatNoHeapMeetsAreToldAtStart) {
  std::vector<std::unique_ptr<Heap>> list;
  list.push_back(MakeMemfdHeap());
  const Heaps heaps(std::move(list), {.dma32 = true, .contiguous = true});
  EXPECT_THAT(heaps.complaints(), ElementsAre(HasSubstr("memory.dma32"),
                                              HasSubstr("memory.contiguous")));
}

TEST(HeapChoiceTest, ImpossibleSizesAreErrorsWhateverIsAsked) {
  EXPECT_THAT(Board().Allocate(HeapRequest{.size = 0, .contiguous = true}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(HeapNamesTest, TraitsAreThoseThatKernelsMean) {
  EXPECT_EQ(TraitsOfDmaHeap("system"), kPlain);
  EXPECT_EQ(TraitsOfDmaHeap("system-uncached"), kUncached);
  EXPECT_EQ(TraitsOfDmaHeap("system-dma32"), kDma32);
  EXPECT_EQ(TraitsOfDmaHeap("system-uncached-dma32"),
            (HeapTraits{.cached = false, .dma32 = true}));
  for (const char* name :
       {"cma", "linux,cma", "reserved", "default_cma_region"}) {
    EXPECT_EQ(TraitsOfDmaHeap(name), kContiguous) << name;
  }
  EXPECT_EQ(TraitsOfDmaHeap("cma-uncached"),
            (HeapTraits{.cached = false, .contiguous = true}));
}

TEST(HeapNamesTest, OnlyNamesOfHeapsAreTaken) {
  for (const char* name :
       {"memfd", "udmabuf", "dma_heap:system", "dma_heap:linux,cma"}) {
    EXPECT_THAT(CheckHeapName(name), IsOk());
  }
  for (const char* name : {"", "system", "dma_heap:", "dma_heap:../null",
                           "dma_heap:.", "/dev/dma_heap/system"}) {
    EXPECT_THAT(CheckHeapName(name),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(HeapsTest, ConfiguredHeapsThatAreNotHereAreToldAndLeftOut) {
  const Heaps heaps =
      Heaps::Probe({.order = {"dma_heap:no-such-heap", "memfd"}});
  ASSERT_EQ(heaps.all().size(), 1U);
  EXPECT_EQ(heaps.Describe(), "memfd (cached)");
  EXPECT_THAT(heaps.complaints(),
              ElementsAre(HasSubstr("'dma_heap:no-such-heap'")));
}

TEST(HeapsTest, EveryHeapOfThisKernelGivesWhatItPromises) {
  const Heaps heaps = Heaps::Probe();
  for (const auto& heap : heaps.all()) {
    SCOPED_TRACE(heap->name());
    ExpectZeroedWritableMemory(*heap);
    RKNND_ASSERT_OK_AND_ASSIGN(const Allocation given, heap->Allocate(1));
    EXPECT_EQ(given.traits, heap->traits());
    EXPECT_EQ(IsDmaBuf(given.fd.get()), heap->name() != "memfd");
  }
}

class FullHeap final : public Heap {
 public:
  [[nodiscard]] const std::string& name() const override { return name_; }
  absl::StatusOr<Allocation> Allocate(uint64_t) override {
    return absl::ResourceExhaustedError("heap 'full' is full");
  }

 private:
  const std::string name_ = "full";
};

TEST(HeapsTest, MemfdIsAlwaysThereAndLast) {
  const Heaps heaps = Heaps::Probe();
  ASSERT_FALSE(heaps.all().empty());
  EXPECT_EQ(heaps.all().back()->name(), "memfd");
}

TEST(HeapsTest, TheNextHeapServesWhereOneCannot) {
  std::vector<std::unique_ptr<Heap>> list;
  list.push_back(std::make_unique<FullHeap>());
  list.push_back(MakeMemfdHeap());
  const Heaps heaps(std::move(list));
  EXPECT_EQ(Given(heaps, {}).heap, "memfd");
}

TEST(HeapsTest, TheFirstHeapsReasonIsTold) {
  std::vector<std::unique_ptr<Heap>> list;
  list.push_back(std::make_unique<FullHeap>());
  const Heaps heaps(std::move(list));
  EXPECT_THAT(
      heaps.Allocate(HeapRequest{.size = 1}),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("'full'")));
}

TEST(CacheSyncTest, MemfdsNeedNone) {
  RKNND_ASSERT_OK_AND_ASSIGN(const Allocation allocation,
                             MakeMemfdHeap()->Allocate(1));
  for (const CpuAccess access :
       {CpuAccess::kRead, CpuAccess::kWrite, CpuAccess::kReadWrite}) {
    EXPECT_THAT(BeginCpuAccess(allocation.fd.get(), access), IsOk());
    EXPECT_THAT(EndCpuAccess(allocation.fd.get(), access), IsOk());
  }
}

TEST(CacheSyncTest, AClosedFdIsAnError) {
  EXPECT_FALSE(BeginCpuAccess(-1, CpuAccess::kRead).ok());
}

}  // namespace
}  // namespace rknnd::driver
