// Which errors that clients noted are the campaign's own doing: memory that was
// refused while it was made to run out, a run that timed out while a core hung
// for good, one that comes after its successor because the device had lost it.
// All others are findings, and so is every answer that is wrong, lost
// or doubled, whatever was going on.

#ifndef TESTS_TORTURE_JUDGE_H_
#define TESTS_TORTURE_JUDGE_H_

#include <vector>

#include "base/posix/clock.h"
#include "tests/torture/ledger.h"
#include "tests/torture/schedule.h"

namespace rknnd::torture {

// Thread: one.
class Judge {
 public:
  // Something of this kind was going on from `begin` to `end`
  // (CLOCK_MONOTONIC).
  void Remember(EventKind kind, base::Nanoseconds begin, base::Nanoseconds end);

  [[nodiscard]] bool IsJustified(const Note& note) const;
  // Memory or descriptors ran out then, or shortly before.
  [[nodiscard]] bool IsShortage(base::Nanoseconds at) const;

 private:
  struct Span {
    EventKind kind;
    base::Nanoseconds begin, end;
  };

  [[nodiscard]] bool During(EventKind kind, base::Nanoseconds at,
                            base::Nanoseconds after) const;

  std::vector<Span> spans_;
};

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_JUDGE_H_
