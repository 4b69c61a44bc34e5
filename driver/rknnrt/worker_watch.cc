#include "driver/rknnrt/worker_watch.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/blocked_signals.h"
#include "base/status/status.h"
#include "base/values/printable.h"

namespace rknnd::rknnrt {
namespace {

constexpr base::Nanoseconds kGrace = base::kSecond;
constexpr uint32_t kMostLines = 20;  // a second
constexpr size_t kLongestLine = 400;
// A process in the middle of a call into a driver may not end at all.
constexpr int kLastWaitMs = 2000;

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerWatch>> WorkerWatch::Start(
    const base::Clock& clock, Log log) {
  RKNND_ASSIGN_OR_RETURN(std::unique_ptr<base::EventLoop> loop,
                         base::ToStatusOr(base::EventLoop::Create(&clock)));
  return std::unique_ptr<WorkerWatch>(
      new WorkerWatch(std::move(loop), clock, std::move(log)));
}

WorkerWatch::WorkerWatch(std::unique_ptr<base::EventLoop> loop,
                         const base::Clock& clock, Log log)
    : loop_(std::move(loop)), clock_(clock), log_(std::move(log)) {
  const base::BlockedSignals blocked;
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "worker-watch");
    loop_->Run();
  });
}

WorkerWatch::~WorkerWatch() {
  loop_->Quit();
  thread_.join();
  for (auto& [number, process] : processes_) kill(process.pid, SIGKILL);
  for (auto& [number, process] : processes_) {
    pollfd ended = {process.pid_fd.get(), POLLIN, 0};
    if (poll(&ended, 1, kLastWaitMs) > 0) waitpid(process.pid, nullptr, 0);
  }
}

WorkerWatch::Number WorkerWatch::Add(pid_t pid, base::UniqueFd pid_fd,
                                     base::UniqueFd output,
                                     std::function<void(int)> ended) {
  const Number number = ++last_;
  auto process = std::make_shared<Process>();
  process->pid = pid;
  process->pid_fd = std::move(pid_fd);
  process->output = std::move(output);
  process->ended = std::move(ended);
  loop_->Post([this, number, process] {
    Process& added = processes_[number] = std::move(*process);
    const auto watch = [&](int fd, auto call) -> base::EventLoop::WatchId {
      auto id = loop_->Watch(fd, EPOLLIN, [this, number, call](uint32_t) {
        (this->*call)(number);
      });
      return id.ok() ? *id : 0;
    };
    added.output_watch = watch(added.output.get(), &WorkerWatch::OnOutput);
    added.pid_watch = watch(added.pid_fd.get(), &WorkerWatch::OnEnded);
  });
  return number;
}

void WorkerWatch::EndSoon(Number number) {
  loop_->Post([this, number] {
    loop_->RunAfter(kGrace, [this, number] {
      const auto found = processes_.find(number);
      if (found != processes_.end()) kill(found->second.pid, SIGKILL);
    });
  });
}

void WorkerWatch::OnOutput(Number number) {
  Process& process = processes_.at(number);
  char buffer[4096];
  const ssize_t size = read(process.output.get(), buffer, sizeof buffer);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0) {
    loop_->Unwatch(std::exchange(process.output_watch, 0));
    return;
  }
  Take(process, buffer, static_cast<size_t>(size));
}

void WorkerWatch::Take(Process& process, const char* text, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (text[i] == '\n' || process.line.size() >= kLongestLine) {
      Say(process, std::exchange(process.line, ""));
    }
    if (text[i] != '\n') process.line += text[i];
  }
}

void WorkerWatch::Say(Process& process, const std::string& line) {
  if (line.empty() || log_ == nullptr) return;
  const base::Nanoseconds now = clock_.Now();
  if (now - process.second >= base::kSecond) {
    if (process.left_out > 0) {
      log_(absl::StrCat("vendor's library (worker ", process.pid, "): ",
                        process.left_out, " more lines in the same second"));
    }
    process.second = now;
    process.lines = process.left_out = 0;
  }
  if (++process.lines > kMostLines) {
    ++process.left_out;
    return;
  }
  log_(absl::StrCat("vendor's library (worker ", process.pid,
                    "): ", base::Printable(line)));
}

void WorkerWatch::OnEnded(Number number) {
  int status = 0;
  const pid_t pid = processes_.at(number).pid;
  if (waitpid(pid, &status, WNOHANG) != pid) return;
  auto node = processes_.extract(number);
  Process& process = node.mapped();
  // What it said last, if anything.
  pollfd output = {process.output.get(), POLLIN, 0};
  char buffer[4096];
  if (process.output_watch != 0 && poll(&output, 1, 0) > 0) {
    const ssize_t size = read(process.output.get(), buffer, sizeof buffer);
    if (size > 0) Take(process, buffer, static_cast<size_t>(size));
  }
  Say(process, process.line);
  if (process.output_watch != 0) loop_->Unwatch(process.output_watch);
  loop_->Unwatch(process.pid_watch);
  process.ended(status);
}

}  // namespace rknnd::rknnrt
