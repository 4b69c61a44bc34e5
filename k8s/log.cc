// See the header.

#include "k8s/log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace rknnd::k8s {
namespace {

// Whoever starts us may have the variable from a service of its own: it has the
// device and inode of the stream that is meant.
bool StderrIsTheJournal() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  return stream != nullptr && fstat(STDERR_FILENO, &status) == 0 &&
         stream == std::to_string(status.st_dev) + ":" +
                       std::to_string(status.st_ino);
}

bool ToJournal() {
  static const bool kJournal = StderrIsTheJournal();
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
