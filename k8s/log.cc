// See the header.

#include "k8s/log.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/posix/journal_stream.h"

namespace rknnd::k8s {
namespace {

bool ToJournal() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
  static const bool kJournal =
      base::IsJournalStream(std::getenv("JOURNAL_STREAM"), STDERR_FILENO);
  return kJournal;
}

}  // namespace

void Log(Severity severity, std::string_view text) {
  const int length = static_cast<int>(text.size());
  if (ToJournal()) {
    std::fprintf(stderr, "<%d>%.*s\n", static_cast<int>(severity), length,
                 text.data());
  } else {
    std::fprintf(stderr, "rknnd-k8s: %.*s\n", length, text.data());
  }
}

}  // namespace rknnd::k8s
