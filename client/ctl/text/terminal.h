// The terminal while rknnctl has all of it: a screen of its own that is redrawn
// in place, single keys, and what was there before when it is done, whichever
// signal ends it (but SIGKILL). Being stopped (Ctrl-Z) ends it too: a screen
// that nobody redraws is of no use.

#ifndef CLIENT_CTL_TEXT_TERMINAL_H_
#define CLIENT_CTL_TEXT_TERMINAL_H_

#include <signal.h>
#include <termios.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::client {

// Thread: the program's only one (it blocks signals of its thread).
class Terminal {
 public:
  // Whether stdout is a terminal.
  static bool IsOne();
  // Whether the user's language settings say that it shows UTF-8.
  static bool ShowsUnicode();
  // NO_COLOR and TERM=dumb are respected.
  static bool ShowsColor();

  static base::Expected<std::unique_ptr<Terminal>> Take();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  struct Size {
    size_t width = 80, height = 24;
  };
  [[nodiscard]] static Size GetSize();

  // Replaces what is shown. False when the terminal is gone.
  bool Show(const std::string& text);

  enum class Event { kNone, kQuit, kResized, kReadable };
  // Waits for a key, a signal or the end of the time.
  Event Wait(int milliseconds);
  // A key that came meanwhile and does not quit; each is told once, the last
  // counts.
  std::optional<char> TakeKey() { return std::exchange(key_, std::nullopt); }
  // ... or for `fd` to be readable. What else happens meanwhile, but for the
  // wish to quit, is kept for Wait.
  Event WaitFor(int fd, int milliseconds);

 private:
  Terminal() = default;
  // One poll. kNone may come early.
  Event Poll(int fd, int milliseconds);
  Event ReadSignal();
  Event ReadKeys();

  base::UniqueFd signals_;
  bool resized_ = false;
  std::optional<char> key_;
  sigset_t blocked_before_{};
  std::optional<termios> before_;  // where stdin is a terminal
};

}  // namespace rknnd::client

#endif  // CLIENT_CTL_TEXT_TERMINAL_H_
