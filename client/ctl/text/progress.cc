#include "client/ctl/text/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "client/ctl/text/table.h"
#include "client/ctl/text/terminal.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

// What is over sooner is not worth a line that flashes.
constexpr std::chrono::milliseconds kBeforeDrawn{250};
constexpr std::chrono::milliseconds kBetweenDraws{100};

constexpr char kErase[] = "\r\x1b[K";
constexpr size_t kBar = 24;
constexpr size_t kShortestBar = 8;

void Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

bool IsTerminal() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it meanwhile
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 &&
         (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
}

size_t Columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return 80;
  }
  return size.ws_col;
}

// The line goes, the program ends as it would have.
extern "C" void EraseAndEnd(int signal) {
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, kErase, sizeof kErase - 1);
  ::raise(signal);  // its default again, by SA_RESETHAND
}

// Signals that somebody else looks after are left to them.
void EraseOnSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    if (::sigaction(signal, nullptr, &before) != 0 ||
        before.sa_handler != SIG_DFL) {
      continue;
    }
    struct sigaction action = {};
    action.sa_handler = EraseAndEnd;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigaction(signal, &action, nullptr);
  }
}

std::string ProgressBar(double share, size_t width, bool unicode) {
  const auto full = static_cast<size_t>(share * static_cast<double>(width));
  std::string bar = unicode ? "" : "[";
  for (size_t i = 0; i < width; ++i) {
    if (unicode) {
      bar += i < full ? "\u2588" : "\u2591";  // full block, light shade
    } else {
      bar += i < full ? '#' : '.';
    }
  }
  return unicode ? bar : bar + "]";
}

}  // namespace

std::string DrawProgress(const ProgressLine& line, size_t columns,
                         bool unicode) {
  const double share = line.total == 0
                           ? 0
                           : std::min(1.0, static_cast<double>(line.done) /
                                               static_cast<double>(line.total));
  const auto amount = [&line](uint64_t count) {
    return line.bytes ? FormatBytes(count) : std::to_string(count);
  };
  std::vector<std::string> parts;
  if (line.total == 0) {
    parts.push_back(amount(line.done));
  } else {
    char percent[16];
    std::snprintf(percent, sizeof percent, "%3.0f %%", share * 100);
    parts.emplace_back(percent);
    parts.push_back(amount(line.done) + " of " + amount(line.total));
  }
  if (line.done > 0 && line.seconds > 0) {
    const double rate = static_cast<double>(line.done) / line.seconds;
    parts.push_back(line.bytes
                        ? FormatBytes(static_cast<uint64_t>(rate)) + "/s"
                        : FormatValue(std::round(rate * 10) / 10) + "/s");
    if (line.total > line.done) {
      const double left = static_cast<double>(line.total - line.done) / rate;
      parts.push_back(FormatMicroseconds(left * 1e6) + " left");
    }
  }
  // What does not fit is left out, from the end; the name is cut at last.
  std::string numbers;
  for (const std::string& part : parts) {
    if (!numbers.empty() && Width(numbers) + 2 + Width(part) > columns / 2) {
      break;
    }
    numbers += (numbers.empty() ? "" : "  ") + part;
  }
  const size_t ends = unicode ? 0 : 2;
  const std::string what =
      Cut(Printable(line.what), std::max<size_t>(columns / 3, 8));
  const size_t used = Width(what) + 2 + Width(numbers) + 2 + ends;
  std::string text = what;
  if (line.total != 0 && used + kShortestBar <= columns) {
    text += "  " + ProgressBar(share, std::min(kBar, columns - used), unicode);
  }
  return Cut(text + "  " + numbers, columns);
}

Progress::Progress(bool quiet, Unit unit)
    : shown_(!quiet && IsTerminal()), unit_(unit) {
  if (shown_) EraseOnSignals();
}

Progress::~Progress() { Clear(); }

void Progress::Update(const std::string& what, uint64_t done, uint64_t total) {
  if (!shown_) return;
  const base::MutexLock lock(mutex_);
  const auto now = Clock::now();
  if (what != what_) {
    what_ = what;
    begun_ = now;
  }
  if (now - begun_ < kBeforeDrawn || now - drawn_ < kBetweenDraws) return;
  drawn_ = now;
  ProgressLine line;
  line.what = what;
  line.done = done;
  line.total = total;
  line.bytes = unit_ == Unit::kBytes;
  line.seconds = std::chrono::duration<double>(now - begun_).count();
  // The last column is left free: some terminals would begin a new line.
  Write(kErase + DrawProgress(line, Columns() - 1, Terminal::ShowsUnicode()));
  visible_ = true;
}

void Progress::Clear() {
  const base::MutexLock lock(mutex_);
  if (visible_) Write(kErase);
  visible_ = false;
}

}  // namespace rknnd::client
