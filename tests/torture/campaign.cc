// See campaign.h.

#include "tests/torture/campaign.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/torture/clients.h"
#include "tests/torture/findings.h"
#include "tests/torture/injection.h"
#include "tests/torture/judge.h"
#include "tests/torture/network_files.h"
#include "tests/torture/observer.h"
#include "tests/torture/schedule.h"
#include "tests/torture/service_manager.h"
#include "tests/torture/shared_file.h"
#include "tests/torture/small_disk.h"
#include "tests/torture/troubles.h"

namespace rknnd::torture {
namespace {

using base::kMillisecond;
using base::kSecond;
using base::Nanoseconds;

// Of the part before the schedule, in which the service is looked at well.
constexpr Nanoseconds kWarmUp = 700 * kMillisecond;
// Longer than a client waits for its last answers.
constexpr Nanoseconds kEndPatience = 45 * kSecond;
constexpr Nanoseconds kReleasePatience = 15 * kSecond;
// Two CPUs are to be enough for all clients together.
constexpr Nanoseconds kPeriod = 4 * kMillisecond;
constexpr Nanoseconds kSlice = 100 * kMillisecond;

// The last two share frames.
constexpr std::array<Work, 8> kWorkOfPlace = {
    Work::kSync,  Work::kQueue, Work::kVendor, Work::kImported,
    Work::kChurn, Work::kLazy,  Work::kShared, Work::kShared};

std::string LastLineOf(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  return last;
}

// "buffer 12: Cannot ..." of many buffers is one reason.
std::string WithoutNumbers(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) result += c;
    if (digit && (result.empty() || result.back() != 'N')) result += 'N';
  }
  return result;
}

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options)
      : options_(options),
        daemon_mapping_(MakeSharedFile(options.folder + "/daemon.page",
                                       sizeof(InjectionPage))),
        clients_mapping_(MakeSharedFile(options.folder + "/clients.page",
                                        sizeof(InjectionPage))),
        disk_(options.folder + "/cache", &daemon_page()),
        service_(ServiceOptions()),
        clients_(ClientOptions()) {
    MakeClients();
  }

  bool Run() {
    service_.Start();
    service_.AwaitReady();
    const ProcessUse before = WarmUp();
    const std::vector<Event> schedule = ScheduleOf(options_);
    {
      Troubles troubles({&service_, &clients_, &daemon_page(), &clients_page(),
                         &disk_, &judge_, &findings_, options_.folder});
      troubles_ = &troubles;
      StartAll();
      const Nanoseconds start = started_ = clock_.Now();
      for (const Event& event : schedule) {
        Pass(start + event.at);
        troubles.Begin(event);
      }
      Pass(start + options_.length - kWarmUp);
      troubles.EndAll();
      for (int kind = 0; kind < kEventKinds; ++kind) {
        done_.at(static_cast<size_t>(kind)) =
            troubles.done(static_cast<EventKind>(kind));
      }
      troubles_ = nullptr;
    }
    clients_page().realtime_offset = 0;
    Finish();
    ExpectReleased(before);
    EndDaemon();
    Report();
    return findings_.count() == 0;
  }

 private:
  [[nodiscard]] InjectionPage& daemon_page() const {
    return *reinterpret_cast<InjectionPage*>(daemon_mapping_.data());
  }
  [[nodiscard]] InjectionPage& clients_page() const {
    return *reinterpret_cast<InjectionPage*>(clients_mapping_.data());
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> Injected(
      const std::string& page) const {
    return {{"LD_PRELOAD",
             base::ProgramFolder() + "/../lib/librknnd-torture-injection.so"},
            {kInjectionVariable, options_.folder + page}};
  }

  [[nodiscard]] ServiceManager::Options ServiceOptions() const {
    const std::string config = options_.folder + "/rknnd.toml";
    std::FILE* const file = std::fopen(config.c_str(), "we");
    if (file == nullptr) {
      throw std::runtime_error("cannot write '" + config + "'");
    }
    // Models go with their last context, so that what is left is a leak. Hangs
    // end sooner than by default, and later than what the schedule holds up.
    std::fputs(
        "grace = 0\n[scheduler]\nhang = 3\n[faults]\nenabled = true\n"
        "give_up_ms = 4000\n",
        file);
    std::fclose(file);
    ServiceManager::Options service;
    service.folder = options_.folder;
    service.arguments = {"--device",    "soft",
                         "--config",    config,
                         "--cache-dir", options_.folder + "/cache",
                         "--state-dir", options_.folder + "/state",
                         "--log-level", "2"};
    service.environment = Injected("/daemon.page");
    service.socket_units = options_.socket_units;
    return service;
  }

  [[nodiscard]] Clients::Options ClientOptions() const {
    Clients::Options clients;
    clients.folder = options_.folder;
    clients.target = service_.target();
    clients.environment = Injected("/clients.page");
    clients.seed = options_.seed;
    return clients;
  }

  void MakeClients() {
    const std::vector<NetworkFile> networks = {
        WriteNetwork(options_.folder, {1, 16, 1}),
        WriteNetwork(options_.folder, {2, 1000, 5}),
        WriteNetwork(options_.folder, {3, 64, 40}),
        // 2 MB of weights.
        WriteNetwork(options_.folder, {4, 65536, 8}),
    };
    for (int i = 0; i < options_.clients; ++i) {
      const auto place = static_cast<size_t>(i);
      ClientPlan plan;
      plan.work = kWorkOfPlace.at(place % kWorkOfPlace.size());
      plan.period = kPeriod;
      plan.networks = {networks.at(place % 3)};
      if (plan.work == Work::kShared) plan.networks = {networks.at(1)};
      if (plan.work == Work::kChurn) plan.networks = networks;
      clients_.Add(std::move(plan));
    }
  }

  void StartAll() {
    for (size_t i = 0; i < clients_.size(); ++i) clients_.Start(i);
  }

  // The same load without any trouble: how the daemon is after that is how it
  // must be in the end.
  ProcessUse WarmUp() {
    StartAll();
    const Nanoseconds deadline = clock_.Now() + kEndPatience;
    Pass(clock_.Now() + kWarmUp);
    // On a slow machine some have only begun.
    while (!AllHaveAnswers() && clock_.Now() < deadline) {
      Pass(clock_.Now() + kSlice);
    }
    Finish();
    AwaitNothingHeld();
    if (clients_.counts().right == 0) {
      throw std::runtime_error("no client got an answer before it began (see " +
                               clients_.error_file() + ")");
    }
    return SettledUseOf(service_.pid());
  }

  [[nodiscard]] bool AllHaveAnswers() const {
    for (size_t i = 0; i < clients_.size(); ++i) {
      if (clients_.page(i).answered == 0) return false;
    }
    return true;
  }

  // Watches everybody until then.
  void Pass(Nanoseconds until) {
    for (;;) {
      if (troubles_ != nullptr) troubles_->EndDue();
      LookAtDaemon();
      for (size_t i = 0; i < clients_.size(); ++i) LookAtClient(i);
      ThrowIfInterrupted();
      const Nanoseconds now = clock_.Now();
      if (now >= until) return;
      Nanoseconds next = std::min(until, now + kSlice);
      if (troubles_ != nullptr && troubles_->next_end() != 0) {
        next = std::min(next, troubles_->next_end());
      }
      pollfd fds[3] = {{service_.notify_fd(), POLLIN, 0},
                       {service_.pid_fd(), POLLIN, 0},
                       {options_.interrupts->fd(), POLLIN, 0}};
      const Nanoseconds wait = std::max<Nanoseconds>(next - now, 0);
      poll(fds, 3, static_cast<int>((wait + kMillisecond - 1) / kMillisecond));
      service_.Hear();
    }
  }

  void ThrowIfInterrupted() const {
    if (options_.interrupts->Take() != 0) {
      throw std::runtime_error("ended by a signal");
    }
  }

  void LookAtDaemon() {
    const bool was_ready = service_.ready();
    const auto ended = service_.Wait(0);
    if (!ended) return;
    if (!was_ready && *ended < 128 && judge_.IsShortage(clock_.Now())) {
      // An error at its start, which says what was missing: it is started
      // again, as systemd would.
      ++refused_starts_;
    } else {
      findings_.Found("the daemon ended by itself with " +
                      std::to_string(*ended) +
                      "; it said last: " + LastLineOf(service_.log_file()));
    }
    service_.Start();
  }

  void LookAtClient(size_t place) {
    for (const Note& note : clients_.TakeNotes(place)) Weigh(place, note);
    const auto ended = clients_.Ended(place);
    if (!ended) return;
    if (*ended != 0 || clients_.page(place).finished == 0) {
      findings_.Found(NameOfClient(place) + " ended with " +
                      std::to_string(*ended));
    }
  }

  std::string NameOfClient(size_t place) const {
    return "client " + std::to_string(place) + " (" +
           NameOf(clients_.plan(place).work) + ")";
  }

  void Weigh(size_t place, const Note& note) {
    if (judge_.IsJustified(note)) {
      ++justified_[WithoutNumbers(note.text)];
      return;
    }
    char at[32];
    std::snprintf(at, sizeof at, "%8.3f s  ",
                  static_cast<double>(note.at - started_) / kSecond);
    const std::string what = at + NameOfClient(place) + ": " +
                             NameOf(note.kind) + ", " + note.call + " " +
                             std::to_string(note.code);
    findings_.Found(what + " frame " + std::to_string(note.frame) + ": " +
                    note.text);
    findings_.Did(what);
  }

  // All clients end, with an answer to each of their frames.
  void Finish() {
    clients_.StopAll();
    const Nanoseconds deadline = clock_.Now() + kEndPatience;
    const auto run = [&](size_t i) { return clients_.runs(i); };
    const auto any = [&] {
      for (size_t i = 0; i < clients_.size(); ++i) {
        if (run(i)) return true;
      }
      return false;
    };
    while (any() && clock_.Now() < deadline) Pass(clock_.Now() + kMillisecond);
    for (size_t i = 0; i < clients_.size(); ++i) {
      LookAtClient(i);
      if (!clients_.runs(i)) continue;
      findings_.Found(NameOfClient(i) + " does not end");
      clients_.Kill(i);
    }
  }

  Holdings AwaitNothingHeld() {
    const Nanoseconds deadline = clock_.Now() + kReleasePatience;
    Holdings holdings;
    do {
      const auto now = HoldingsOf(service_.target());
      if (now) holdings = *now;
      if (now && holdings.nothing()) break;
      Pass(clock_.Now() + 10 * kMillisecond);
    } while (clock_.Now() < deadline);
    return holdings;
  }

  void ExpectReleased(const ProcessUse& before) {
    held_ = AwaitNothingHeld();
    if (!held_.nothing()) {
      findings_.Found("the daemon still holds " + ToText(held_));
    }
    before_ = before;
    const Nanoseconds deadline = clock_.Now() + kReleasePatience;
    do {
      after_ = SettledUseOf(service_.pid());
      if (after_.fds <= before.fds && after_.threads <= before.threads &&
          after_.shared_mappings <= before.shared_mappings) {
        return;
      }
    } while (clock_.Now() < deadline);
    findings_.Found("the daemon has " + ToText(after_) + ", and had " +
                    ToText(before));
  }

  void EndDaemon() {
    service_.Signal(SIGTERM);
    const auto ended = service_.Wait(kEndPatience);
    if (!ended) {
      findings_.Found("the daemon does not end when it is asked to");
    } else if (*ended != 0) {
      findings_.Found("the daemon ended with " + std::to_string(*ended));
    }
  }

  void Report() {
    std::printf("\n%-26s %s\n", "event", "times");
    for (int kind = 0; kind < kEventKinds; ++kind) {
      std::printf(
          "%-26s %llu\n", NameOf(static_cast<EventKind>(kind)),
          static_cast<unsigned long long>(done_.at(static_cast<size_t>(kind))));
    }
    const Counts counts = clients_.counts();
    const auto line = [](const char* what, uint64_t number) {
      std::printf("%-26s %llu\n", what,
                  static_cast<unsigned long long>(number));
    };
    std::printf("\n");
    line("daemons", static_cast<uint64_t>(service_.lives()));
    line("starts given up", refused_starts_);
    line("calls that failed", daemon_page().failed);
    line("frames answered", counts.answered);
    line("answers right", counts.right);
    line("contexts made", counts.contexts);
    line("findings", findings_.count());
    line("errors, justified", Justified());
    std::printf("cache on                   %s\n",
                disk_.is_mounted() ? "a tmpfs of 16 MB" : "an injected disk");
    std::printf("before                     %s\n", ToText(before_).c_str());
    std::printf("after                      %s\n", ToText(after_).c_str());
    std::printf("held in the end            %s\n", ToText(held_).c_str());
    for (const auto& [reason, times] : justified_) {
      std::printf("justified, %4llu times:     %s\n",
                  static_cast<unsigned long long>(times), reason.c_str());
    }
    if (findings_.count() == 0) return;
    std::printf("\n");
    findings_.PrintEvents();
  }

  [[nodiscard]] uint64_t Justified() const {
    uint64_t all = 0;
    for (const auto& [reason, times] : justified_) all += times;
    return all;
  }

  const CampaignOptions options_;
  const base::MonotonicClock clock_;
  Nanoseconds started_ = clock_.Now();  // the schedule's beginning
  const base::Mapping daemon_mapping_, clients_mapping_;
  SmallDisk disk_;
  ServiceManager service_;
  Clients clients_;
  Judge judge_;
  Findings findings_;
  Troubles* troubles_ = nullptr;  // while the schedule runs
  std::array<uint64_t, kEventKinds> done_ = {};
  uint64_t refused_starts_ = 0;
  std::map<std::string, uint64_t> justified_;  // by reason
  ProcessUse before_, after_;
  Holdings held_;
};

}  // namespace

std::vector<Event> ScheduleOf(const CampaignOptions& options) {
  return MakeSchedule(options.seed, options.length - kWarmUp);
}

bool RunCampaign(const CampaignOptions& options) {
  return Campaign(options).Run();
}

}  // namespace rknnd::torture
