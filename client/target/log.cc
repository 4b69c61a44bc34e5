// Called on the program's threads, also when memory is short: nothing here
// allocates but the place of a thread's first error, which can be missing, and
// LogText, which nobody calls about a failure.

#include "client/target/log.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "base/posix/environment.h"
#include "base/values/printable.h"
#include "proto/wire/codec.h"

namespace rknnd::client {
namespace {

// The longest message a daemon sends has 2048 bytes; before it stands the name
// of the function.
constexpr size_t kErrorSize = 2048 + 128;
constexpr size_t kLineSize = kErrorSize + 64;

// Of each thread's last error. Not thread_local: the dynamic loader would then
// be one of the libraries that we need.
std::optional<pthread_key_t> ErrorKey() {
  static const std::optional<pthread_key_t> key =
      []() -> std::optional<pthread_key_t> {
    pthread_key_t made = 0;
    if (pthread_key_create(&made, free) != 0) return std::nullopt;
    return made;
  }();
  return key;
}

// kErrorSize bytes of this thread's own; null without memory for them.
char* ErrorRoom() {
  const std::optional<pthread_key_t> key = ErrorKey();
  if (!key) return nullptr;
  void* room = pthread_getspecific(*key);
  if (room == nullptr) {
    room = calloc(1, kErrorSize);  // NOLINT: freed as the thread ends
    if (room != nullptr && pthread_setspecific(*key, room) != 0) {
      free(room);  // NOLINT
      room = nullptr;
    }
  }
  return static_cast<char*>(room);
}

// Text put together in place, cut where the room ends. It names what others
// chose: nodes of models, servers, programs.
class Line {
 public:
  Line(char* room, size_t size) : room_(room), size_(size) {}
  void Append(std::string_view text) {
    const size_t part = wire::FittingPrefix(text, size_ - used_);
    std::memcpy(room_ + used_, text.data(), part);
    used_ += base::MakePrintable(room_ + used_, part);
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

uint32_t ParseLogLevel(std::string_view text) {
  constexpr auto kDefault = static_cast<uint32_t>(LogLevel::kError);
  constexpr auto kHighest = static_cast<uint32_t>(LogLevel::kTrace);
  if (text.empty()) return kDefault;
  uint32_t level = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return kDefault;
    level = std::min(kHighest, level * 10 + static_cast<uint32_t>(digit - '0'));
  }
  return level;
}

uint32_t EnabledLogLevel() {
  static const uint32_t level =
      ParseLogLevel(base::FromEnvironment("RKNN_LOG_LEVEL"));
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

void LogText(LogLevel level, std::string_view text) {
  if (static_cast<uint32_t>(level) > EnabledLogLevel()) return;
  std::string lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines += "rknnd: ";
    lines += LevelName(level);
    lines += base::Printable(text.substr(0, end));
    lines += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::string_view rest = lines;
  while (!rest.empty()) {
    const ssize_t written = write(STDERR_FILENO, rest.data(), rest.size());
    if (written <= 0) return;  // nowhere to report it
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

void SetLastError(std::string_view function, std::string_view message) {
  char* const room = ErrorRoom();
  if (room == nullptr) return;
  Line line(room, kErrorSize - 1);
  line.Append(function);
  line.Append(": ");
  line.Append(message);
  room[line.used()] = '\0';
}

const char* LastError() {
  const std::optional<pthread_key_t> key = ErrorKey();
  const void* room = key ? pthread_getspecific(*key) : nullptr;
  return room == nullptr ? "" : static_cast<const char*>(room);
}

}  // namespace rknnd::client
