#include "client/ctl/top/watch.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "client/ctl/control_connection.h"
#include "client/ctl/text/terminal.h"
#include "client/ctl/top/top.h"

namespace rknnd::client {
namespace {

using base::Expected;
using Clock = std::chrono::steady_clock;

// The first frame is there soon, whatever the interval.
constexpr std::chrono::milliseconds kFirstInterval{250};

// Looks that the curve may show: no bar is wider.
constexpr size_t kHistory = 60;

Expected<TopSample> Look(ControlConnection& daemon) {
  Expected<wire::Report> board = daemon.Ask(rknnd_v1_ReportKind_REPORT_MEMORY);
  if (!board) return std::move(board).error();
  Expected<wire::Report> contexts =
      daemon.Ask(rknnd_v1_ReportKind_REPORT_CONTEXTS);
  if (!contexts) return std::move(contexts).error();
  return TopSample{*std::move(board), *std::move(contexts), daemon.AskNpu()};
}

std::chrono::milliseconds Interval(const WatchOptions& options) {
  return std::chrono::milliseconds(
      static_cast<int64_t>(options.interval_s * 1e3));
}

int MillisecondsUntil(Clock::time_point time) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

// What is on the screen, as long as somebody looks.
class Watcher {
 public:
  explicit Watcher(const WatchOptions& options) : options_(options) {}

  Expected<void> Connect() {
    Expected<ControlConnection> daemon =
        terminal_ != nullptr ? ControlConnection::Open(options_.target, Wait())
                             : ControlConnection::Open(options_.target);
    if (!daemon) return std::move(daemon).error();
    daemon_ = std::make_unique<ControlConnection>(*std::move(daemon));
    previous_.reset();
    last_.reset();
    return {};
  }

  // From here on a daemon that says nothing is waited for until the user wants
  // to quit.
  void ShowOn(Terminal* terminal) {
    terminal_ = terminal;
    if (daemon_) daemon_->set_wait(Wait());
  }

  // Looks again. False when the user wants to quit.
  bool Look() {
    if (!daemon_) {
      if (Expected<void> found = Connect(); !found) {
        notice_ = found.error().message;
        return found.error().code != base::Code::kCancelled;
      }
    }
    Expected<TopSample> now = client::Look(*daemon_);
    if (!now) {
      daemon_.reset();
      last_.reset();
      notice_ = "rknnd is gone: " + now.error().message;
      return now.error().code != base::Code::kCancelled;
    }
    previous_ = std::move(last_);
    last_ = *std::move(now);
    Remember();
    return true;
  }

  void Sort(char key) { OrderOfKey(key, &shown_.order); }

  // What was seen last, for the screen's size of now.
  [[nodiscard]] std::string Drawn() const {
    TopView view;
    const Terminal::Size size = Terminal::GetSize();
    view.width = size.width;
    view.height = size.height;
    view.color = Terminal::ShowsColor();
    view.unicode = Terminal::ShowsUnicode();
    if (!daemon_ || !last_) return NoticeText(notice_, view);
    return TopOutput(previous_ ? *previous_ : *last_, *last_,
                     daemon_->session(), view, shown_)
        .text;
  }

 private:
  // The load of this interval joins the curve; a daemon that was away leaves no
  // gap in it.
  void Remember() {
    if (!previous_) return;
    if (shown_.history.size() == kHistory) {
      shown_.history.erase(shown_.history.begin());
    }
    shown_.history.push_back(
        CompareLooks(*previous_, *last_, 0, TopOrder::kNpu).load);
  }

  [[nodiscard]] ControlConnection::Wait Wait() const {
    return [terminal = terminal_](int fd, int milliseconds) {
      using Waited = ControlConnection::Waited;
      switch (terminal->WaitFor(fd, milliseconds)) {
        case Terminal::Event::kReadable:
          return Waited::kReadable;
        case Terminal::Event::kQuit:
          return Waited::kCancelled;
        default:
          return Waited::kTimedOut;
      }
    };
  }

  const WatchOptions options_;
  Terminal* terminal_ = nullptr;
  std::unique_ptr<ControlConnection> daemon_;  // null: gone
  std::optional<TopSample> previous_, last_;
  TopOptions shown_{TopOrder::kNpu, {}, /*keys=*/true};
  std::string notice_;  // why there is none
};

}  // namespace

Expected<Output> LookOnce(const WatchOptions& options) {
  Expected<ControlConnection> daemon = ControlConnection::Open(options.target);
  if (!daemon) return std::move(daemon).error();
  const Expected<TopSample> before = Look(*daemon);
  if (!before) return before.error();
  const Clock::time_point end = Clock::now() + Interval(options);
  while (Clock::now() < end) ::poll(nullptr, 0, MillisecondsUntil(end));
  const Expected<TopSample> now = Look(*daemon);
  if (!now) return now.error();
  TopView view;
  view.unicode = Terminal::ShowsUnicode();
  // Into a file or a pipe: as wide as it needs to be.
  view.width = Terminal::IsOne() ? Terminal::GetSize().width : 120;
  view.color = Terminal::IsOne() && Terminal::ShowsColor();
  return TopOutput(*before, *now, daemon->session(), view);
}

Expected<void> Watch(const WatchOptions& options) {
  Watcher watcher(options);
  // A mistyped target is an error; a daemon that goes later is waited for.
  if (Expected<void> started = watcher.Connect(); !started) return started;
  Expected<std::unique_ptr<Terminal>> terminal = Terminal::Take();
  if (!terminal) return std::move(terminal).error();
  watcher.ShowOn(terminal->get());
  const std::chrono::milliseconds interval = Interval(options);
  Clock::time_point next = Clock::now() + std::min(interval, kFirstInterval);
  if (!watcher.Look()) return {};
  for (;;) {
    if (!(*terminal)->Show(watcher.Drawn())) return {};
    if ((*terminal)->Wait(MillisecondsUntil(next)) == Terminal::Event::kQuit) {
      return {};
    }
    if (const auto key = (*terminal)->TakeKey()) watcher.Sort(*key);
    if (Clock::now() < next) continue;
    if (!watcher.Look()) return {};
    next = Clock::now() + interval;
  }
}

}  // namespace rknnd::client
