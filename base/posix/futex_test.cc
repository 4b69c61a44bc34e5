#include "base/posix/futex.h"

#include <gtest/gtest.h>

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

TEST(FutexTest, WakingAtAnUnmappedAddressIsHarmless) {
  FutexWakeOne(reinterpret_cast<std::atomic<uint32_t>*>(4096));
}

}  // namespace
}  // namespace rknnd::base
