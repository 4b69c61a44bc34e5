#include "client/ctl/board/logs.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/posix/interrupts.h"
#include "client/ctl/control_connection.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/terminal.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr uint32_t kRecent = 200;
// What somebody wants to see who waits for what comes.
constexpr uint32_t kRecentBeforeFollowing = 10;
// A quiet daemon has nothing to say for days; the wait ends with the user's
// patience, so that any length will do.
constexpr int64_t kQuietMs = 3'600'000;

struct Level {
  const char* name;
  const char* color;
};

Level LevelOf(uint32_t level) {
  constexpr std::array<Level, 4> kLevels = {
      Level{"ERROR", "\x1b[31m"}, Level{"WARN", "\x1b[33m"}, Level{"INFO", ""},
      Level{"DEBUG", "\x1b[2m"}};
  return kLevels[std::min<size_t>(level, kLevels.size() - 1)];
}

// "2026-11-22 09:48:01.123", local time.
std::string TimeText(uint64_t time_ns) {
  const auto seconds = static_cast<std::time_t>(time_ns / 1'000'000'000);
  std::tm time{};
  char text[64];
  if (localtime_r(&seconds, &time) == nullptr) return "-";
  const size_t size = std::strftime(text, sizeof text, "%F %T", &time);
  std::snprintf(text + size, sizeof text - size, ".%03u",
                static_cast<unsigned>(time_ns / 1'000'000 % 1000));
  return text;
}

Expected<ControlConnection> Open(const LogsOptions& options, uint32_t recent) {
  Expected<ControlConnection> daemon = ControlConnection::Open(options.target);
  if (!daemon) return daemon;
  if (Expected<void> followed = daemon->FollowLogs(options.level, recent);
      !followed) {
    return std::move(followed).error();
  }
  return daemon;
}

Expected<Output> SetLevel(const LogsOptions& options) {
  Expected<ControlConnection> daemon =
      ControlConnection::OpenAdmin(options.target);
  if (!daemon) return std::move(daemon).error();
  const Expected<wire::SetLogLevel> before = daemon->Request<wire::SetLogLevel>(
      wire::Verb::kSetLogLevel, wire::SetLogLevel{.level = *options.set_level});
  if (!before) return before.error();
  return Output{{{"level", *options.set_level}, {"before", before->level}},
                "the daemon logs at level " +
                    std::to_string(*options.set_level) + ", before at " +
                    std::to_string(before->level) + "\n"};
}

bool Print(const std::string& text) {
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
}

}  // namespace

std::string LogLineText(const wire::LogLine& line, bool color) {
  std::string text;
  if (line.lost > 0) {
    text = "-- " + FormatCount(line.lost, "line") + " lost --\n";
  }
  const Level level = LevelOf(line.level);
  std::string name = level.name;
  name.resize(5, ' ');
  const bool colored = color && *level.color != '\0';
  return text + TimeText(line.time_ns) + "  " + (colored ? level.color : "") +
         name + "  " + Printable(line.text) + (colored ? "\x1b[0m" : "") + "\n";
}

Json LogLineJson(const wire::LogLine& line) {
  return {{"time_ns", line.time_ns},
          {"level", line.level},
          {"text", line.text},
          {"lost", line.lost}};
}

Expected<Output> Logs(const LogsOptions& options) {
  if (options.set_level) return SetLevel(options);
  Expected<ControlConnection> daemon =
      Open(options, options.recent.value_or(kRecent));
  if (!daemon) return std::move(daemon).error();
  Output output{Json::array(), ""};
  const bool color = Terminal::IsOne() && Terminal::ShowsColor();
  for (;;) {
    const Expected<std::optional<wire::LogLine>> line = daemon->NextLogLine(0);
    // A daemon that ends meanwhile has said what it had to say.
    if (!line || !*line) break;
    output.json.push_back(LogLineJson(**line));
    output.text += LogLineText(**line, color);
  }
  return output;
}

Expected<int> FollowLogs(const LogsOptions& options) {
  const Expected<base::Interrupts> interrupts = base::Interrupts::Catch();
  if (!interrupts) return interrupts.error();
  Expected<ControlConnection> daemon =
      Open(options, options.recent.value_or(kRecentBeforeFollowing));
  if (!daemon) return std::move(daemon).error();
  daemon->set_wait([&interrupts](int fd, int milliseconds) {
    std::array<pollfd, 2> wait = {pollfd{fd, POLLIN, 0},
                                  pollfd{interrupts->fd(), POLLIN, 0}};
    const int ready = ::poll(wait.data(), wait.size(), milliseconds);
    if (wait[1].revents != 0) return ControlConnection::Waited::kCancelled;
    return ready > 0 ? ControlConnection::Waited::kReadable
                     : ControlConnection::Waited::kTimedOut;
  });
  const bool color = Terminal::IsOne() && Terminal::ShowsColor();
  bool first = true;
  bool writes = !options.json || Print("[");
  std::optional<Error> failure;
  while (writes) {
    const Expected<std::optional<wire::LogLine>> line =
        daemon->NextLogLine(kQuietMs);
    if (!line) {
      if (line.error().code != Code::kCancelled) failure = line.error();
      // Else it would end us as soon as nobody catches it.
      static_cast<void>(interrupts->Take());
      break;
    }
    if (!*line) continue;
    writes = options.json
                 ? Print((first ? "\n" : ",\n") + DumpJson(LogLineJson(**line)))
                 : Print(LogLineText(**line, color));
    first = false;
  }
  if (options.json && writes) writes = Print(first ? "]\n" : "\n]\n");
  if (!writes) failure = Error{Code::kUnknown, "cannot write to stdout"};
  if (!failure) return 0;
  // Not the document's any more, which has been closed.
  std::fprintf(stderr, "rknnctl: %s\n", Printable(failure->message).c_str());
  return 1;
}

}  // namespace rknnd::client
