#include "client/ctl/text/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace rknnd::client {
namespace {

// The screen that full-screen programs use, without a cursor.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";

// Also Ctrl-C, Ctrl-Z and Ctrl-Backslash, as keys: the terminal does not turn
// them into signals meanwhile.
constexpr std::string_view kQuitKeys = "qQ\x03\x1a\x1c";

bool WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::string_view Environment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it meanwhile
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool Terminal::IsOne() { return ::isatty(STDOUT_FILENO) == 1; }

bool Terminal::ShowsUnicode() {
  // The first that is set counts, as in setlocale.
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view locale = Environment(name);
    if (locale.empty()) continue;
    // UTF-8, utf8, ...
    std::string name_of_charset;
    for (const char c : locale) {
      if (c != '-') {
        name_of_charset +=
            static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      }
    }
    return name_of_charset.find("utf8") != std::string::npos;
  }
  return false;
}

bool Terminal::ShowsColor() {
  return Environment("NO_COLOR").empty() && Environment("TERM") != "dumb";
}

base::Expected<std::unique_ptr<Terminal>> Terminal::Take() {
  std::unique_ptr<Terminal> terminal(new Terminal);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal :
       {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) {
    sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, &terminal->blocked_before_);
  terminal->signals_.reset(
      ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!terminal->signals_.valid()) return base::ErrnoError(errno, "signalfd");
  termios before{};
  if (::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before) == 0) {
    terminal->before_ = before;
    termios keys = before;
    // Each key at once, and none of them on the screen. Ctrl-C is a key.
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    keys.c_cc[VMIN] = 0;
    keys.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &keys);
  }
  WriteAll(kEnter);
  return terminal;
}

Terminal::~Terminal() {
  WriteAll(kLeave);
  // Keys that nobody has read are not the shell's.
  if (before_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &*before_);
  pthread_sigmask(SIG_SETMASK, &blocked_before_, nullptr);
}

Terminal::Size Terminal::GetSize() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ||
      size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

bool Terminal::Show(const std::string& text) {
  // Over what is there, so that nothing flickers: each line is cleared behind
  // its end, and the screen behind the last.
  std::string drawn = "\x1b[H";
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    drawn.append(text, begin, end - begin);
    drawn += "\x1b[K";
    begin = end + 1;
    // A newline behind the last line would scroll a full screen.
    if (begin < text.size()) drawn += "\r\n";
  }
  drawn += "\x1b[J";
  return WriteAll(drawn);
}

Terminal::Event Terminal::Wait(int milliseconds) {
  if (std::exchange(resized_, false)) return Event::kResized;
  if (key_) return Event::kNone;
  return Poll(-1, milliseconds);
}

Terminal::Event Terminal::WaitFor(int fd, int milliseconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    const int time = static_cast<int>(std::max<int64_t>(left.count(), 0));
    const Event event = Poll(fd, time);
    if (event == Event::kQuit || event == Event::kReadable) return event;
    if (event == Event::kResized) resized_ = true;
    if (event == Event::kNone && time == 0) return event;
  }
}

Terminal::Event Terminal::Poll(int fd, int milliseconds) {
  pollfd wait[3] = {{signals_.get(), POLLIN, 0},
                    {before_ ? STDIN_FILENO : -1, POLLIN, 0},
                    {fd, POLLIN, 0}};
  const int ready = ::poll(wait, 3, milliseconds);
  if (ready <= 0) return Event::kNone;
  if (wait[0].revents != 0) return ReadSignal();
  if (wait[1].revents != 0) return ReadKeys();
  return Event::kReadable;
}

Terminal::Event Terminal::ReadSignal() {
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof info) != sizeof info) {
    return Event::kNone;
  }
  return info.ssi_signo == SIGWINCH ? Event::kResized : Event::kQuit;
}

Terminal::Event Terminal::ReadKeys() {
  char keys[64];
  const ssize_t got = ::read(STDIN_FILENO, keys, sizeof keys);
  // Readable and empty: the terminal has gone.
  if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
    return Event::kQuit;
  }
  for (ssize_t i = 0; i < got; ++i) {
    if (kQuitKeys.find(keys[i]) != std::string_view::npos) return Event::kQuit;
    key_ = keys[i];
  }
  return Event::kNone;
}

}  // namespace rknnd::client
