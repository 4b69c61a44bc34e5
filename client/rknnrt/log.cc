// Called on the program's threads, also when memory is short: nothing here
// allocates.

#include "client/rknnrt/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "proto/wire/codec.h"

namespace rknnd::client {
namespace {

// The longest message a daemon sends has 2048 bytes; before it stands the name
// of the function.
constexpr size_t kErrorSize = 2048 + 128;
constexpr size_t kLineSize = kErrorSize + 64;

thread_local std::array<char, kErrorSize> last_error = {};

// Text put together in place, cut where the room ends.
class Line {
 public:
  Line(char* room, size_t size) : room_(room), size_(size) {}
  void Append(std::string_view text) {
    const size_t part = wire::FittingPrefix(text, size_ - used_);
    std::memcpy(room_ + used_, text.data(), part);
    used_ += part;
  }
  [[nodiscard]] size_t used() const { return used_; }

 private:
  char* room_;
  size_t size_;
  size_t used_ = 0;
};

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error: ";
    case LogLevel::kWarning:
      return "warning: ";
    case LogLevel::kInfo:
      return "info: ";
    case LogLevel::kDebug:
      return "debug: ";
    case LogLevel::kTrace:
      return "trace: ";
  }
  return "";
}

}  // namespace

uint32_t ParseLogLevel(const char* text) {
  constexpr auto kDefault = static_cast<uint32_t>(LogLevel::kError);
  constexpr auto kHighest = static_cast<uint32_t>(LogLevel::kTrace);
  if (text == nullptr || *text == '\0') return kDefault;
  uint32_t level = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return kDefault;
    level = std::min(kHighest, level * 10 + static_cast<uint32_t>(*text - '0'));
  }
  return level;
}

uint32_t EnabledLogLevel() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, before we make threads
  static const uint32_t level = ParseLogLevel(getenv("RKNN_LOG_LEVEL"));
  return level;
}

void Log(LogLevel level, std::string_view text) {
  if (static_cast<uint32_t>(level) > EnabledLogLevel()) return;
  std::array<char, kLineSize> room;
  Line line(room.data(), room.size() - 1);
  line.Append("rknnd: ");
  line.Append(LevelName(level));
  line.Append(text);
  room[line.used()] = '\n';
  // A line that cannot be written has nowhere to be reported.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, room.data(), line.used() + 1);
}

void SetLastError(std::string_view function, std::string_view message) {
  Line line(last_error.data(), last_error.size() - 1);
  line.Append(function);
  line.Append(": ");
  line.Append(message);
  last_error[line.used()] = '\0';
}

const char* LastError() { return last_error.data(); }

}  // namespace rknnd::client
