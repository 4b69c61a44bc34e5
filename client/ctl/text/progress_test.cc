#include "client/ctl/text/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/posix/unique_fd.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ProgressLine Half() {
  ProgressLine line;
  line.what = "push detector.onnx";
  line.done = 50 << 20;
  line.total = 100 << 20;
  line.bytes = true;
  line.seconds = 5;
  return line;
}

TEST(ProgressTest, SaysHowFarHowFastAndHowLongYet) {
  const std::string text = DrawProgress(Half(), 120, false);

  EXPECT_THAT(text, StartsWith("push detector.onnx  [############............]"
                               "   50 %  50.0 MiB of 100.0 MiB"));
  EXPECT_THAT(text, EndsWith("10.0 MiB/s  5.0 s left"));
}

TEST(ProgressTest, FitsIntoAnyWidth) {
  ProgressLine line = Half();
  line.what = "push \xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87.onnx";
  for (const bool unicode : {false, true}) {
    for (size_t columns = 0; columns < 130; ++columns) {
      EXPECT_LE(Width(DrawProgress(line, columns, unicode)), columns);
    }
  }
  EXPECT_THAT(DrawProgress(Half(), 40, false), HasSubstr("50 %"));
}

TEST(ProgressTest, WithoutATotalThereIsNoBarAndNoEnd) {
  ProgressLine line = Half();
  line.total = 0;

  const std::string text = DrawProgress(line, 120, false);

  EXPECT_THAT(text, HasSubstr("50.0 MiB  10.0 MiB/s"));
  EXPECT_THAT(text, Not(HasSubstr("[")));
  EXPECT_THAT(text, Not(HasSubstr("left")));
}

TEST(ProgressTest, MoreThanAllIsAll) {
  ProgressLine line = Half();
  line.bytes = false;
  line.done = 7;
  line.total = 4;

  const std::string text = DrawProgress(line, 120, false);

  EXPECT_THAT(text, HasSubstr("[########################]  100 %  7 of 4"));
}

TEST(ProgressTest, NamesCannotSpeakToTheTerminal) {
  ProgressLine line = Half();
  line.what = "a\x1b[2Jb";
  EXPECT_THAT(DrawProgress(line, 120, false), StartsWith("a?[2Jb"));
}

// A process that is at work on a terminal.
class Worker {
 public:
  Worker(bool quiet, std::chrono::milliseconds time) {
    int terminal = -1;
    pid_ = forkpty(&terminal, nullptr, nullptr, nullptr);
    if (pid_ == 0) Work(quiet, time);
    EXPECT_GT(pid_, 0) << "no terminal can be had here";
    terminal_.reset(terminal);
  }
  ~Worker() {
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // All it shows up to `text`, or to its end.
  std::string ShownUntil(const std::string& text) {
    char piece[256];
    ssize_t got = 0;
    while (shown_.find(text) == std::string::npos &&
           (got = read(terminal_.get(), piece, sizeof piece)) > 0) {
      shown_.append(piece, static_cast<size_t>(got));
    }
    return shown_;
  }
  // Its work is over.
  void Finish() { EXPECT_EQ(write(terminal_.get(), "\n", 1), 1); }
  // Its status, of waitpid.
  int End(int signal) {
    // To -1 it would go to everybody.
    if (pid_ <= 0) return -1;
    kill(pid_, signal);
    ShownUntil("never shown");
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

 private:
  [[noreturn]] static void Work(bool quiet, std::chrono::milliseconds time) {
    setenv("TERM", "xterm", 1);
    const auto end = std::chrono::steady_clock::now() + time;
    {
      Progress progress(quiet, Progress::Unit::kThings);
      pollfd key{STDIN_FILENO, POLLIN, 0};
      while (std::chrono::steady_clock::now() < end && poll(&key, 1, 1) == 0) {
        progress.Update("work", 1, 2);
      }
    }
    _exit(0);
  }

  pid_t pid_ = -1;
  base::UniqueFd terminal_;
  std::string shown_;
};

constexpr std::chrono::minutes kLong{2};
constexpr char kErased[] = "\r\x1b[K";

TEST(ProgressTest, TheLineIsErasedWhenASignalEndsTheWork) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Worker worker(/*quiet=*/false, kLong);
    EXPECT_THAT(worker.ShownUntil("50 %  1 of 2"), HasSubstr("work"));
    const int status = worker.End(signal);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_THAT(worker.ShownUntil("never shown"), EndsWith(kErased));
  }
}

TEST(ProgressTest, TheLineIsErasedAtTheEnd) {
  Worker worker(/*quiet=*/false, kLong);
  EXPECT_THAT(worker.ShownUntil("50 %  1 of 2"), HasSubstr("work"));
  worker.Finish();
  EXPECT_THAT(worker.ShownUntil("never shown"), EndsWith(kErased));
}

TEST(ProgressTest, QuietIsQuietOnATerminalToo) {
  // Longer than what shows nothing by itself.
  Worker worker(/*quiet=*/true, std::chrono::seconds(1));
  EXPECT_EQ(worker.ShownUntil("never shown"), "");
}

}  // namespace
}  // namespace rknnd::client
