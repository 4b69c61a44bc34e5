// See troubles.h.

#include "tests/torture/troubles.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "tests/torture/observer.h"

namespace rknnd::torture {
namespace {

using base::kMillisecond;
using base::kSecond;
using base::Nanoseconds;

// A job may be on its core when the daemon is asked to end.
constexpr Nanoseconds kStopPatience = 20 * kSecond;

}  // namespace

void Troubles::Later(Nanoseconds after, std::function<void()> end) {
  ends_.emplace(clock_.Now() + after, std::move(end));
}

void Troubles::EndDue() {
  while (!ends_.empty() && ends_.begin()->first <= clock_.Now()) {
    const auto end = std::move(ends_.begin()->second);
    ends_.erase(ends_.begin());
    end();
  }
  std::erase_if(helpers_,
                [](base::ChildProcess& helper) { return helper.Wait(0).ok(); });
}

void Troubles::EndAll() {
  while (!ends_.empty()) {
    const auto end = std::move(ends_.begin()->second);
    ends_.erase(ends_.begin());
    end();
  }
  helpers_.clear();
}

void Troubles::Begin(const Event& event) {
  const bool done = Do(event);
  if (done) ++done_.at(static_cast<size_t>(event.kind));
  scene_.findings->Did(event.ToText() + (done ? "" : " (not possible then)"));
}

bool Troubles::Do(const Event& event) {
  switch (event.kind) {
    case EventKind::kKillClient:
      scene_.clients->Kill(ClientOf(event));
      scene_.clients->Start(ClientOf(event));
      return true;
    case EventKind::kKillDaemon:
      scene_.service->Kill();
      scene_.service->Start();
      return true;
    case EventKind::kRestartDaemon:
      return RestartDaemon();
    case EventKind::kStopClient:
      return StopClient(event);
    case EventKind::kStopDaemon:
      return StopDaemon(event);
    case EventKind::kSlowCore:
      return SetFault("slow", event.length);
    case EventKind::kHang:
      return SetFault("hang", event.length);
    case EventKind::kHangForGood:
      scene_.judge->Remember(event.kind, clock_.Now(), clock_.Now() + kSecond);
      return SetFault("hang", 0);
    case EventKind::kDeviceLost:
      scene_.judge->Remember(event.kind, clock_.Now(),
                             clock_.Now() + event.length);
      return SetFault("crash", event.length);
    case EventKind::kFailCalls:
      return FailCalls(event);
    case EventKind::kFewDescriptors:
      return TakeDescriptors(event);
    case EventKind::kFullDisk:
      scene_.disk->Fill();
      Later(event.length, [this] { scene_.disk->Free(); });
      return true;
    case EventKind::kClockJump:
      return JumpClock(event);
    case EventKind::kHostile:
      return SendHostile(event);
  }
  return false;
}

// As systemctl does: what is stopped must hear it.
bool Troubles::RestartDaemon() {
  const bool was_ready = scene_.service->ready();
  scene_.service->Signal(SIGTERM);
  scene_.service->Signal(SIGCONT);
  const auto ended = scene_.service->Wait(kStopPatience);
  if (!ended) {
    scene_.findings->Found("the daemon does not end when it is asked to");
    scene_.service->Kill();
  } else if (*ended != 0 && was_ready) {
    scene_.findings->Found("the daemon ended with " + std::to_string(*ended) +
                           " when it was asked to end");
  }
  scene_.service->Start();
  return true;
}

bool Troubles::StopClient(const Event& event) {
  const size_t client = ClientOf(event);
  const pid_t pid = scene_.clients->pid(client);
  if (pid < 0) return false;
  scene_.clients->Signal(client, SIGSTOP);
  Later(event.length, [this, client, pid] {
    if (scene_.clients->pid(client) != pid) return;
    scene_.clients->Signal(client, SIGCONT);
  });
  return true;
}

bool Troubles::StopDaemon(const Event& event) {
  const int life = scene_.service->lives();
  if (stopped_life_ == life) return false;
  stopped_life_ = life;
  scene_.service->Signal(SIGSTOP);
  Later(event.length, [this, life] {
    if (scene_.service->lives() == life) scene_.service->Signal(SIGCONT);
    stopped_life_ = 0;
  });
  return true;
}

// By rknnctl, which is not waited for: the daemon may be anything just now.
bool Troubles::SetFault(const std::string& kind, Nanoseconds length) {
  if (!scene_.service->ready() || stopped_life_ == scene_.service->lives()) {
    return false;
  }
  base::ChildProcess::Options options;
  options.arguments = {base::ProgramFolder() + "/rknnctl",
                       "--target",
                       scene_.service->target(),
                       "fault",
                       "set",
                       kind,
                       "--times",
                       "1"};
  if (length != 0) {
    options.arguments.insert(options.arguments.end(),
                             {"--ms", std::to_string(length / kMillisecond)});
  }
  options.error_file = "/dev/null";
  options.dies_with_parent = true;
  auto helper = base::ChildProcess::Start(options);
  if (!helper) return false;
  helpers_.push_back(*std::move(helper));
  return true;
}

bool Troubles::FailCalls(const Event& event) {
  static constexpr std::array<uint32_t, 12> kChoices = {
      kFailMmap,   kFailMemfd,   kFailAccept, kFailSockets,
      kFailOpen,   kFailEventfd, kFailAll,    kFailAll,
      kFailMunmap, kFailMremap,  kFailThread, kFailMmap | kFailMunmap};
  InjectionPage& page = *scene_.daemon_page;
  const Nanoseconds begin = clock_.Now();
  page.calls = kChoices.at(event.dice % kChoices.size());
  page.random = static_cast<uint32_t>(event.dice >> 8);
  page.one_in = static_cast<uint32_t>(1 + (event.dice >> 3) % 8);
  scene_.judge->Remember(event.kind, begin, begin + event.length);
  Later(event.length, [this, begin] {
    scene_.daemon_page->one_in = 0;
    scene_.judge->Remember(EventKind::kFailCalls, begin, clock_.Now());
  });
  return true;
}

bool Troubles::TakeDescriptors(const Event& event) {
  const pid_t pid = scene_.service->pid();
  const int life = scene_.service->lives();
  rlimit before{};
  if (!scene_.service->ready() ||
      prlimit(pid, RLIMIT_NOFILE, nullptr, &before) != 0) {
    return false;
  }
  // Of those that overlap the first knows what there was, and the last gives it
  // back.
  if (few_.life != life) few_ = {life, 0, before};
  rlimit few = before;
  few.rlim_cur =
      std::min<rlim_t>(before.rlim_cur, UseOf(pid).fds + event.dice % 4);
  if (prlimit(pid, RLIMIT_NOFILE, &few, nullptr) != 0) return false;
  ++few_.troubles;
  const Nanoseconds begin = clock_.Now();
  scene_.judge->Remember(event.kind, begin, begin + event.length);
  Later(event.length, [this, begin, pid, life] {
    if (few_.life == life && --few_.troubles == 0 &&
        scene_.service->lives() == life) {
      prlimit(pid, RLIMIT_NOFILE, &few_.usual, nullptr);
    }
    scene_.judge->Remember(EventKind::kFewDescriptors, begin, clock_.Now());
  });
  return true;
}

bool Troubles::JumpClock(const Event& event) {
  constexpr Nanoseconds kHour = 3600 * kSecond;
  static constexpr std::array<Nanoseconds, 7> kOffsets = {
      0,
      kHour,
      -kHour,
      24 * 365 * kHour,
      -24 * 365 * kHour,
      -kSecond,
      50 * 365 * 24 * kHour};
  const Nanoseconds offset = kOffsets.at(event.dice % kOffsets.size());
  scene_.daemon_page->realtime_offset = offset;
  scene_.clients_page->realtime_offset = offset;
  return true;
}

bool Troubles::SendHostile(const Event& event) {
  base::ChildProcess::Options options;
  options.arguments = {base::ProgramFolder() + "/rknnd-torture-hostile",
                       "--socket",
                       scene_.service->socket(),
                       "--ms",
                       std::to_string(event.length / kMillisecond),
                       "--seed",
                       std::to_string(event.dice)};
  options.error_file = scene_.log_folder + "/hostile.log";
  options.dies_with_parent = true;
  auto helper = base::ChildProcess::Start(options);
  if (!helper) return false;
  helpers_.push_back(*std::move(helper));
  return true;
}

}  // namespace rknnd::torture
