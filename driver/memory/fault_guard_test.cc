#include "driver/memory/fault_guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/map_count.h"
#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "base/posix/unique_fd.h"

namespace rknnd::driver {
namespace {

using ::rknnd::base::Mapping;
using ::rknnd::base::UniqueFd;

const auto kPageSize = static_cast<size_t>(sysconf(_SC_PAGESIZE));
const size_t kGuardedSize = 4 * kPageSize;

// Memory whose file its owner can cut short, as a hostile client would.
class FaultGuardTest : public ::testing::Test {
 protected:
  FaultGuardTest() {
    InstallFaultGuard();
    file_ = UniqueFd(memfd_create("victim", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(file_.get(), kGuardedSize), 0);
    mapping_ = *Mapping::OfFd(file_.get(), 0, kGuardedSize,
                              Mapping::Access::kReadWrite);
    std::memset(mapping_.data(), 1, kGuardedSize);
  }
  void Truncate(off_t size) { ASSERT_EQ(ftruncate(file_.get(), size), 0); }
  [[nodiscard]] volatile std::byte* At(size_t offset) const {
    return mapping_.data() + offset;
  }

  UniqueFd file_;
  Mapping mapping_;
};

TEST_F(FaultGuardTest, AccessThatGoesWellIsTrue) {
  int sum = 0;
  EXPECT_TRUE(Guarded(mapping_.bytes(), [&] {
    for (size_t i = 0; i < kGuardedSize; ++i)
      sum += std::to_integer<int>(*At(i));
  }));
  EXPECT_EQ(sum, static_cast<int>(kGuardedSize));
}

TEST_F(FaultGuardTest, ReadingTruncatedMemoryIsFalse) {
  Truncate(0);
  EXPECT_FALSE(Guarded(mapping_.bytes(), [&] { static_cast<void>(*At(0)); }));
}

TEST_F(FaultGuardTest, WritingTruncatedMemoryIsFalse) {
  Truncate(0);
  EXPECT_FALSE(
      Guarded(mapping_.bytes(), [&] { *At(kGuardedSize - 1) = std::byte{1}; }));
}

TEST_F(FaultGuardTest, TheAccessIsAbandonedWhereItFaults) {
  Truncate(kPageSize);
  volatile size_t reached = 0;
  EXPECT_FALSE(Guarded(mapping_.bytes(), [&] {
    for (size_t i = 0; i < kGuardedSize; i += kPageSize) {
      static_cast<void>(*At(i));
      reached = i + 1;
    }
  }));
  EXPECT_EQ(reached, 1U);
}

TEST_F(FaultGuardTest, EveryFaultIsCaughtNotOnlyTheFirst) {
  Truncate(0);
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(Guarded(mapping_.bytes(), [&] { static_cast<void>(*At(0)); }));
  }
}

TEST_F(FaultGuardTest, AFaultLeavesNoSignalBlocked) {
  Truncate(0);
  ASSERT_FALSE(Guarded(mapping_.bytes(), [&] { static_cast<void>(*At(0)); }));
  sigset_t blocked;
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
  EXPECT_EQ(sigismember(&blocked, SIGBUS), 0);
}

TEST_F(FaultGuardTest, TakenAccessRightsAreCaughtToo) {
  ASSERT_EQ(mprotect(mapping_.data(), kGuardedSize, PROT_NONE), 0);
  EXPECT_FALSE(Guarded(mapping_.bytes(), [&] { static_cast<void>(*At(0)); }));
}

TEST_F(FaultGuardTest, ACopyByTheLibraryIsCaught) {
  Truncate(0);
  std::vector<std::byte> copy(kGuardedSize);
  EXPECT_FALSE(Guarded(mapping_.bytes(), [&] {
    std::memcpy(copy.data(), mapping_.data(), kGuardedSize);
  }));
}

TEST_F(FaultGuardTest, ARangeMayEndWithinAPage) {
  Truncate(0);
  EXPECT_FALSE(Guarded(mapping_.bytes().subspan(100, 10),
                       [&] { static_cast<void>(*At(100)); }));
}

TEST_F(FaultGuardTest, ThreadsFaultIndependently) {
  Truncate(0);
  std::vector<std::byte> fine(kGuardedSize);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        if (t % 2 == 0) {
          EXPECT_FALSE(
              Guarded(mapping_.bytes(), [&] { static_cast<void>(*At(0)); }));
        } else {
          EXPECT_TRUE(Guarded(fine, [&] {
            static_cast<void>(*const_cast<volatile std::byte*>(fine.data()));
          }));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

using FaultGuardDeathTest = FaultGuardTest;

TEST_F(FaultGuardDeathTest, AFaultOutsideTheRangeIsStillFatal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Truncate(0);
  std::vector<std::byte> other(kGuardedSize);
  EXPECT_DEATH(
      {
        const bool went_well =
            Guarded(other, [&] { static_cast<void>(*At(0)); });
        _exit(went_well ? 0 : 1);
      },
      "");
}

TEST_F(FaultGuardDeathTest, AFaultWithoutAGuardIsStillFatal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Truncate(0);
  EXPECT_DEATH(static_cast<void>(*At(0)), "");
}

TEST_F(FaultGuardDeathTest, ASignalThatSomebodySentIsStillFatal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const bool went_well = Guarded(mapping_.bytes(), [] { raise(SIGBUS); });
        _exit(went_well ? 0 : 1);
      },
      "");
}

void ExitSeven(int) { _exit(7); }

// In a process of its own, where ours is not installed yet.
TEST(FaultGuardChainTest, TheHandlerThatWasThereBeforeGetsTheRest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        struct sigaction before = {};
        before.sa_handler = ExitSeven;
        sigaction(SIGBUS, &before, nullptr);
        InstallFaultGuard();
        const UniqueFd file(memfd_create("victim", MFD_CLOEXEC));
        static_cast<void>(ftruncate(file.get(), kGuardedSize) == 0);
        const Mapping mapping =
            *Mapping::OfFd(file.get(), 0, kGuardedSize, Mapping::Access::kRead);
        static_cast<void>(ftruncate(file.get(), 0) == 0);
        volatile const std::byte* gone = mapping.data();
        if (Guarded(mapping.bytes(), [&] { static_cast<void>(*gone); })) {
          _exit(1);
        }
        static_cast<void>(*gone);
        _exit(2);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST_F(FaultGuardTest, PatchLetsTheAccessGoOnWithZeros) {
  Truncate(kPageSize);
  std::atomic<bool> torn{false};
  int sum = 0;
  {
    const FaultPatch patch(mapping_.bytes(), &torn);
    for (size_t i = 0; i < kGuardedSize; ++i)
      sum += std::to_integer<int>(*At(i));
    *At(kGuardedSize - 1) = std::byte{9};
  }
  EXPECT_TRUE(torn);
  EXPECT_EQ(sum, static_cast<int>(kPageSize));
  EXPECT_EQ(std::byte{*At(kGuardedSize - 1)}, std::byte{9});
}

TEST_F(FaultGuardTest, PatchMakesFewMappingsOfOneHoweverMuchIsGone) {
  constexpr size_t kPages = 100;
  auto fd = base::MakeGrowingMemfd("gone");
  ASSERT_TRUE(fd.ok());
  ASSERT_EQ(ftruncate(fd->get(), kPages * kPageSize), 0);
  auto mapping = base::Mapping::OfFd(fd->get(), 0, kPages * kPageSize,
                                     base::Mapping::Access::kReadWrite);
  ASSERT_TRUE(mapping.ok());
  ASSERT_EQ(ftruncate(fd->get(), 0), 0);
  const uint64_t before = base::CountMappings();
  std::atomic<bool> torn{false};
  {
    const FaultPatch patch(mapping->bytes(), &torn);
    for (size_t page = 0; page < kPages; page += 2) {
      mapping->bytes()[page * kPageSize] = std::byte{1};
    }
  }
  EXPECT_TRUE(torn);
  EXPECT_LE(base::CountMappings(), before + 4);
}

TEST_F(FaultGuardTest, PatchOfMemoryThatStaysNotesNothing) {
  std::atomic<bool> torn{false};
  const FaultPatch patch(mapping_.bytes(), &torn);
  *At(0) = std::byte{2};
  EXPECT_FALSE(torn);
}

TEST_F(FaultGuardTest, GuardInsideAPatchAbandonsOnlyItsOwnRange) {
  Truncate(0);
  std::atomic<bool> torn{false};
  const std::span<std::byte> bytes = mapping_.bytes();
  const FaultPatch patch(bytes.first(kPageSize), &torn);
  bool reached = false;
  EXPECT_FALSE(Guarded(bytes.subspan(kPageSize), [&] {
    *At(0) = std::byte{3};
    reached = true;
    *At(kPageSize) = std::byte{3};
  }));
  EXPECT_TRUE(reached);
  EXPECT_TRUE(torn);
}

TEST_F(FaultGuardTest, PatchesNestAndEndInOrder) {
  Truncate(0);
  std::atomic<bool> outer{false}, inner{false};
  const std::span<std::byte> bytes = mapping_.bytes();
  const FaultPatch first(bytes.first(kPageSize), &outer);
  {
    const FaultPatch second(bytes.subspan(kPageSize), &inner);
    *At(kPageSize) = std::byte{1};
    EXPECT_TRUE(inner);
    EXPECT_FALSE(outer);
    *At(1) = std::byte{1};
    EXPECT_TRUE(outer);
  }
}

}  // namespace
}  // namespace rknnd::driver
