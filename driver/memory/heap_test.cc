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
  std::string used;
  EXPECT_THAT(heaps.Allocate(1, &used), IsOk());
  EXPECT_EQ(used, "memfd");
}

TEST(HeapsTest, TheFirstHeapsReasonIsTold) {
  std::vector<std::unique_ptr<Heap>> list;
  list.push_back(std::make_unique<FullHeap>());
  const Heaps heaps(std::move(list));
  EXPECT_THAT(
      heaps.Allocate(1, nullptr),
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
