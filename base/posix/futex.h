// Waiting on a 32-bit word that two processes map.

#ifndef BASE_POSIX_FUTEX_H_
#define BASE_POSIX_FUTEX_H_

#include <atomic>
#include <cstdint>

#include "base/posix/clock.h"

namespace rknnd::base {

// Stores what another end looks at, before this end looks at what that one
// stores: with seq_cst loads after both stores, one of the two sees the other.
// As an exchange: on x86 that is the same instruction, on Arm one as well, and
// where QEMU emulates arm64 (7.2, on x86) a load passes a plain store of this
// order.
template <class T>
void StoreBeforeLook(std::atomic<T>& word, T value) {
  word.exchange(value, std::memory_order_seq_cst);
}

// Sleeps while *word == expected, at most `timeout`. Returns early on any
// wake-up or signal: the caller looks again.
void FutexWait(const std::atomic<uint32_t>* word, uint32_t expected,
               Nanoseconds timeout);

// Wakes one waiter of any process. Errors are of no interest: the word may be
// in memory a hostile client has remapped, and then it is the client's loss.
void FutexWakeOne(const std::atomic<uint32_t>* word);

}  // namespace rknnd::base

#endif  // BASE_POSIX_FUTEX_H_
