// See judge.h.

#include "tests/torture/judge.h"

#include <algorithm>

#include "client/include/rknn_api.h"

namespace rknnd::torture {
namespace {

// A call that was refused may have begun before the end of the shortage, and
// its thread may be one of many that wait for a CPU. A client whose session is
// restored in it tries for two seconds to make a context again before it is
// lost, and then says so at each run.
constexpr base::Nanoseconds kAfterShortage = 4 * base::kSecond;
// The device is lost with the next job, and its runs are answered again soon.
constexpr base::Nanoseconds kAfterReset = 3 * base::kSecond;
// The daemon gives a job up by then, and clients hear of it.
constexpr base::Nanoseconds kAfterHang = 10 * base::kSecond;

// Calls that ask for something new, which there may be no room for.
bool MakesSomething(const Note& note) {
  return note.call == "rknn_init" || note.call == "rknn_dup_context" ||
         note.call == "rknn_create_mem" ||
         note.call == "rknn_create_mem_from_fd" ||
         note.call == "rknnd_set_io_mem" || note.call == "rknn_inputs_set";
}

bool Says(const Note& note, const char* words) {
  return note.text.find(words) != std::string::npos;
}

// The words of a system call of the daemon's: what a run needed again after a
// restart, or after its weights had been put away, could not be had.
bool SaysShortage(const Note& note) {
  return Says(note, "Cannot allocate memory") ||
         Says(note, "Too many open files") ||
         Says(note, "Resource temporarily unavailable");
}

// A message whose descriptor the daemon has no room for costs it the
// connection; a client tries so often and says this.
bool SaysNoDescriptor(const Note& note) {
  return Says(note, "went away") && Says(note, "times during this call");
}

}  // namespace

void Judge::Remember(EventKind kind, base::Nanoseconds begin,
                     base::Nanoseconds end) {
  spans_.push_back({kind, begin, end});
}

bool Judge::During(EventKind kind, base::Nanoseconds at,
                   base::Nanoseconds after) const {
  return std::any_of(spans_.begin(), spans_.end(), [&](const Span& span) {
    return span.kind == kind && at >= span.begin && at <= span.end + after;
  });
}

bool Judge::IsJustified(const Note& note) const {
  // A run that the device lost is done again, behind those that wait already.
  if (note.kind == NoteKind::kTurn) {
    return During(EventKind::kDeviceLost, note.at, kAfterReset) ||
           During(EventKind::kHangForGood, note.at, kAfterHang);
  }
  // An error that does not say what was wrong is one whenever it comes.
  if (note.kind != NoteKind::kError || note.text.empty()) return false;
  if (note.code == RKNN_ERR_TIMEOUT) {
    return During(EventKind::kHangForGood, note.at, kAfterHang);
  }
  const bool shortage = IsShortage(note.at);
  if (SaysShortage(note)) return shortage;
  if (!MakesSomething(note)) return false;
  return (shortage && note.code == RKNN_ERR_MALLOC_FAIL) ||
         (SaysNoDescriptor(note) &&
          During(EventKind::kFewDescriptors, note.at, kAfterShortage));
}

bool Judge::IsShortage(base::Nanoseconds at) const {
  return During(EventKind::kFailCalls, at, kAfterShortage) ||
         During(EventKind::kFewDescriptors, at, kAfterShortage);
}

}  // namespace rknnd::torture
