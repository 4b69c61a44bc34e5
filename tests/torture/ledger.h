// What a checking client has seen, in memory that it shares with who started
// it: what it counted is there also when it was killed. One client writes, its
// threads by atomics; the starter reads, and says when to stop.

#ifndef TESTS_TORTURE_LEDGER_H_
#define TESTS_TORTURE_LEDGER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/mapping.h"

namespace rknnd::torture {

// Of something that should not be.
enum class NoteKind : uint32_t {
  kError = 1,   // a call of the API failed, or a run ended with an error
  kWrong = 2,   // an answer that is not the frame's
  kLost = 3,    // accepted, and never answered
  kDouble = 4,  // answered, though it was not on its way
  kTurn = 5,    // answered before one that was submitted before it
};
const char* NameOf(NoteKind kind);

struct Note {
  NoteKind kind = NoteKind::kError;
  base::Nanoseconds at = 0;  // CLOCK_MONOTONIC
  int32_t code = 0;          // of the call
  uint64_t frame = 0;        // 0: of none
  std::string call;          // "rknn_run"
  std::string text;          // rknnd_last_error(), or what is wrong
};

// The memory itself: zero at first.
struct LedgerPage {
  static constexpr size_t kNotes = 256;
  struct Slot {
    std::atomic<uint32_t> kind;  // 0: not written yet; the last that is
    int32_t code;
    int64_t at;
    uint64_t frame;
    char call[32];
    char text[200];
  };

  std::atomic<uint32_t> stop;      // by the starter: no new frames
  std::atomic<uint32_t> ready;     // has had its first answer
  std::atomic<uint32_t> finished;  // all that it began has ended
  std::atomic<uint64_t> accepted, answered, right;
  std::atomic<uint64_t> contexts;  // made so far
  // The longest time between two answers; the starter sets it back to 0.
  std::atomic<int64_t> last_answer, longest_gap;
  std::atomic<uint64_t> notes;
  std::array<Slot, kNotes> slots;
};

// One end of it. Thread: any.
class Ledger {
 public:
  // Makes the file, or opens one that is there. Throws std::runtime_error.
  static Ledger Make(const std::string& path);
  static Ledger Open(const std::string& path);

  [[nodiscard]] LedgerPage& page() const {
    return *reinterpret_cast<LedgerPage*>(mapping_.data());
  }

  // The client's side.
  void Write(const Note& note) const;
  // An answer has come, right or wrong.
  void CountAnswer(base::Nanoseconds now) const;

  // The starter's side: the notes that have come since the last call.
  std::vector<Note> TakeNotes();

 private:
  explicit Ledger(base::Mapping mapping) : mapping_(std::move(mapping)) {}

  base::Mapping mapping_;
  uint64_t taken_ = 0;
};

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_LEDGER_H_
