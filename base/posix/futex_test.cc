#include "base/posix/futex.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>

namespace rknnd::base {
namespace {

TEST(FutexTest, ReturnsAtOnceWhenTheWordDiffers) {
  const std::atomic<uint32_t> word{1};
  FutexWait(&word, 0, kSecond * 3600);  // would be a time-out of the test
}

TEST(FutexTest, ReturnsWhenTheTimeIsOver) {
  const std::atomic<uint32_t> word{0};
  const MonotonicClock clock;
  const Nanoseconds before = clock.Now();
  // A signal may end it early: the caller looks again.
  while (clock.Now() < before + 2 * kMillisecond) {
    FutexWait(&word, 0, 2 * kMillisecond);
  }
}

TEST(FutexTest, ANegativeTimeIsNone) {
  const std::atomic<uint32_t> word{0};
  FutexWait(&word, 0, -1);
}

TEST(FutexTest, AWaiterIsWoken) {
  std::atomic<uint32_t> word{0};
  std::thread waiter([&] {
    while (word.load() == 0) FutexWait(&word, 0, kSecond * 3600);
  });
  word.store(1);
  FutexWakeOne(&word);
  waiter.join();
}

// Two ends that meet once a round; in each both store, and then look at what
// the other stores. That both find the old value would lose a wake-up.
TEST(FutexTest, OneOfTwoThatStoreBeforeTheyLookSeesTheOther) {
  constexpr uint32_t kRounds = 20'000;
  struct alignas(128) Word {
    std::atomic<uint32_t> value{0};
  };
  struct End {
    Word round;
    std::array<Word, 64> stored;
    std::array<uint32_t, kRounds + 1> seen{};
  };
  const auto one = std::make_unique<End>(), other = std::make_unique<End>();
  const auto run = [](End& self, End& far) {
    for (uint32_t i = 1; i <= kRounds; ++i) {
      self.round.value.store(i);
      for (int looks = 0; far.round.value.load() < i; ++looks) {
        if (looks > 1000) std::this_thread::yield();
      }
      StoreBeforeLook(self.stored[i % 64].value, i);
      self.seen[i] = far.stored[i % 64].value.load(std::memory_order_seq_cst);
    }
  };
  std::thread thread([&] { run(*other, *one); });
  run(*one, *other);
  thread.join();
  uint32_t blind = 0;
  for (uint32_t i = 1; i <= kRounds; ++i) {
    if (one->seen[i] < i && other->seen[i] < i) ++blind;
  }
  EXPECT_EQ(blind, 0U);
}

TEST(FutexTest, WakingAtAnUnmappedAddressIsHarmless) {
  FutexWakeOne(reinterpret_cast<std::atomic<uint32_t>*>(4096));
}

}  // namespace
}  // namespace rknnd::base
