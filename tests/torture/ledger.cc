// See ledger.h.

#include "tests/torture/ledger.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/torture/shared_file.h"

namespace rknnd::torture {
namespace {

template <size_t kSize>
void CopyText(char (&to)[kSize], const std::string& from) {
  const size_t size = std::min(from.size(), kSize - 1);
  std::memcpy(to, from.data(), size);
  to[size] = '\0';
}

}  // namespace

const char* NameOf(NoteKind kind) {
  switch (kind) {
    case NoteKind::kError:
      return "error";
    case NoteKind::kWrong:
      return "wrong";
    case NoteKind::kLost:
      return "lost";
    case NoteKind::kDouble:
      return "doubled";
    case NoteKind::kTurn:
      return "out of turn";
  }
  return "?";
}

Ledger Ledger::Make(const std::string& path) {
  return Ledger(MakeSharedFile(path, sizeof(LedgerPage)));
}

Ledger Ledger::Open(const std::string& path) {
  return Ledger(OpenSharedFile(path, sizeof(LedgerPage)));
}

void Ledger::Write(const Note& note) const {
  const uint64_t index = page().notes.fetch_add(1);
  if (index >= LedgerPage::kNotes) return;  // counted all the same
  LedgerPage::Slot& slot = page().slots[index];
  slot.code = note.code;
  slot.at = note.at;
  slot.frame = note.frame;
  CopyText(slot.call, note.call);
  CopyText(slot.text, note.text);
  slot.kind.store(static_cast<uint32_t>(note.kind), std::memory_order_release);
}

void Ledger::CountAnswer(base::Nanoseconds now) const {
  LedgerPage& page = this->page();
  page.answered.fetch_add(1);
  page.ready.store(1);
  const int64_t before = page.last_answer.exchange(now);
  if (before == 0) return;
  int64_t longest = page.longest_gap.load();
  while (now - before > longest &&
         !page.longest_gap.compare_exchange_weak(longest, now - before)) {
  }
}

std::vector<Note> Ledger::TakeNotes() {
  std::vector<Note> notes;
  for (; taken_ < std::min<uint64_t>(page().notes, LedgerPage::kNotes);
       ++taken_) {
    const LedgerPage::Slot& slot = page().slots[taken_];
    const uint32_t kind = slot.kind.load(std::memory_order_acquire);
    if (kind == 0) break;  // being written, or by one that was killed at it
    Note note;
    note.kind = static_cast<NoteKind>(kind);
    note.at = slot.at;
    note.code = slot.code;
    note.frame = slot.frame;
    note.call = slot.call;
    note.text = slot.text;
    notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace rknnd::torture
