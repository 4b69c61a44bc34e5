// A checking client's word: what a call of the API gave, and whether an answer
// was right, into its ledger.

#ifndef TESTS_TORTURE_WITNESS_H_
#define TESTS_TORTURE_WITNESS_H_

#include <cstdint>
#include <string>

#include "base/posix/clock.h"
#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "tests/torture/ledger.h"
#include "tests/torture/networks.h"

namespace rknnd::torture {

// Thread: any. Borrows the ledger.
class Witness {
 public:
  explicit Witness(const Ledger& ledger) : ledger_(ledger) {}

  [[nodiscard]] bool stopped() const { return ledger_.page().stop != 0; }
  [[nodiscard]] base::Nanoseconds Now() const { return clock_.Now(); }
  [[nodiscard]] LedgerPage& page() const { return ledger_.page(); }

  // Whether the call went well; notes it with its reason when it did not.
  bool Good(int code, const char* call, uint64_t frame = 0) const {
    if (code == RKNN_SUCC) return true;
    Tell(NoteKind::kError, code, call, frame, rknnd_last_error());
    return false;
  }
  void Tell(NoteKind kind, int code, const char* call, uint64_t frame,
            const std::string& text) const {
    ledger_.Write({kind, clock_.Now(), code, frame, call, text});
  }
  // An answer of `frame` has come.
  void Check(const Arithmetic& arithmetic, uint64_t frame,
             const int32_t* output) const {
    ledger_.CountAnswer(clock_.Now());
    const std::string wrong = arithmetic.Differs(frame, output);
    if (wrong.empty()) {
      page().right.fetch_add(1);
    } else {
      Tell(NoteKind::kWrong, 0, "answer", frame, wrong);
    }
  }

 private:
  const Ledger& ledger_;
  const base::MonotonicClock clock_;
};

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_WITNESS_H_
