// Texts have passed the level and the limits that operators set. Names in them
// may be other programs', and those are not trusted.

#include "daemon/process/log.h"

#include <poll.h>
#include <spdlog/pattern_formatter.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/journal_stream.h"
#include "base/posix/mutex.h"
#include "daemon/core/terms/utf8.h"
#include "daemon/process/journal.h"

namespace rknnd {
namespace {

// A reader that is merely slow has so long for a line; one that has let it pass
// is waited for no more until it reads again.
constexpr int kPatienceMs = 100;

spdlog::level::level_enum LevelOf(transport::Severity severity) {
  switch (severity) {
    case transport::Severity::kError:
      return spdlog::level::err;
    case transport::Severity::kWarning:
      return spdlog::level::warn;
    case transport::Severity::kInfo:
      return spdlog::level::info;
    case transport::Severity::kDebug:
      return spdlog::level::debug;
  }
  return spdlog::level::info;
}

// One line that can be shown: nothing in it ends it or steers a terminal, and
// all of it is UTF-8, as journalctl shows nothing of a text that is not.
std::string Shown(const std::string& text) {
  std::string shown = core::Utf8(text.substr(0, Journal::kLongestText));
  for (size_t at = 0; at < shown.size(); ++at) {
    const auto byte = static_cast<unsigned char>(shown[at]);
    if (byte < 0x20 || byte == 0x7F) shown[at] = '?';
    // Control characters of two bytes.
    if (byte == 0xC2 && static_cast<unsigned char>(shown[at + 1]) < 0xA0) {
      shown[at] = shown[at + 1] = '?';
    }
  }
  return shown;
}

// Lines for people, or for what collects them.
class TextLog final : public transport::EventLog {
 public:
  TextLog(int fd, const char* pattern) : fd_(fd), formatter_(pattern) {}

  void Write(transport::Severity severity, const std::string& text) override {
    base::MutexLock lock(mutex_);
    std::string shown = Shown(text);
    if (lost_ > 0) {
      absl::StrAppend(&shown, " (", lost_,
                      " lines left out before: there was no room)");
    }
    spdlog::memory_buf_t line;
    if (torn_) line.push_back('\n');
    formatter_.format(
        spdlog::details::log_msg("rknnd", LevelOf(severity), shown), line);
    lost_ = Put({line.data(), line.size()}) ? 0 : lost_ + 1;
  }

 private:
  // A pipe that takes anything takes so much; more of it could wait.
  static constexpr size_t kPiece = PIPE_BUF;

  // False: some of it had no room.
  bool Put(std::string_view bytes) RKNND_REQUIRES(mutex_) {
    while (!bytes.empty()) {
      pollfd ready{fd_, POLLOUT, 0};
      if (poll(&ready, 1, lost_ == 0 ? kPatienceMs : 0) <= 0) return false;
      const ssize_t done =
          write(fd_, bytes.data(), std::min(bytes.size(), kPiece));
      if (done <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(done));
      torn_ = !bytes.empty();
    }
    return true;
  }

  const int fd_;
  base::Mutex mutex_;
  spdlog::pattern_formatter formatter_ RKNND_GUARDED_BY(mutex_);
  size_t lost_ RKNND_GUARDED_BY(mutex_) = 0;
  // The last line that was begun has no end.
  bool torn_ RKNND_GUARDED_BY(mutex_) = false;
};

class JournalLog final : public transport::EventLog {
 public:
  explicit JournalLog(std::unique_ptr<Journal> journal)
      : journal_(std::move(journal)) {}

  void Write(transport::Severity severity, const std::string& text) override {
    journal_->Write(severity, Shown(text), {});
  }
  void WriteEvent(transport::Severity severity, const std::string& text,
                  const core::EventFields& fields) override {
    journal_->Write(severity, Shown(text), fields);
  }

 private:
  const std::unique_ptr<Journal> journal_;
};

}  // namespace

std::unique_ptr<transport::EventLog> OpenTextLog(int fd, const char* pattern) {
  return std::make_unique<TextLog>(fd, pattern);
}

std::unique_ptr<transport::EventLog> OpenLog() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread is started
  const char* const stream = std::getenv("JOURNAL_STREAM");
  if (base::IsJournalStream(stream, STDERR_FILENO)) {
    if (std::unique_ptr<Journal> journal = Journal::Open(STDERR_FILENO)) {
      return std::make_unique<JournalLog>(std::move(journal));
    }
    // The journal has the time.
    return OpenTextLog(STDERR_FILENO, "%v");
  }
  return OpenTextLog(STDERR_FILENO, "%Y-%m-%d %H:%M:%S.%e %l: %v");
}

}  // namespace rknnd
