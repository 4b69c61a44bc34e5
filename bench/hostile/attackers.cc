// See attackers.h.

#include "bench/hostile/attackers.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/common/measures.h"
#include "client/launch/launcher.h"

namespace rknnd::bench {
namespace {

// Nobody's, and not the number that stands for peers of the gRPC port.
constexpr uid_t kOtherUser = 65001;
constexpr base::Nanoseconds kPatience = 60 * base::kSecond;
constexpr base::Nanoseconds kEndPatience = 10 * base::kMillisecond;
// Of a burner's time: it burns, sleeps and begins again.
constexpr double kShortest = 0.0002, kLongest = 0.005;

// Another user, in a group of processes that is killed at once.
void BecomeOtherUser() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  setpgid(0, 0);
  const pid_t parent = getppid();
  if (geteuid() == 0 && (setgroups(0, nullptr) != 0 ||
                         setgid(kOtherUser) != 0 || setuid(kOtherUser) != 0)) {
    throw std::runtime_error("cannot become another user");
  }
  // What was said of this before is forgotten by a change of user.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) std::_Exit(1);
}

double ThreadCpuNow() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

// So much of one CPU.
void Burn(double share, double period) {
  for (;;) {
    const double start = SecondsNow(), cpu = ThreadCpuNow();
    while (ThreadCpuNow() - cpu < share * period) {
    }
    const double rest = (ThreadCpuNow() - cpu) / share - (SecondsNow() - start);
    if (rest > 0) SleepFor(rest);
  }
}

void BurnInThreads(const CpuUse& a_second) {
  if (a_second.cpu < 0.001) return;
  const int threads =
      std::max(1, static_cast<int>(std::ceil(a_second.cpu - 0.05)));
  const double share = std::min(a_second.cpu / threads, 1.0);
  const double period =
      std::clamp(threads / std::max(a_second.sleeps, 1.0), kShortest, kLongest);
  InThreads(threads, [=](int) { Burn(share, period); });
}

}  // namespace

int RunAttack(const std::string& name, const Scene& scene) {
  BecomeOtherUser();
  for (const Attack& attack : AllAttacks()) {
    if (attack.name == name) attack.work(scene);
  }
  throw std::runtime_error("there is no attack '" + name + "'");
}

int RunBurner(const CpuUse& attackers, const CpuUse& daemons) {
  BecomeOtherUser();
  BurnInThreads(attackers);
  BurnInThreads(daemons);
  Announce("");
  WaitForDeath();
}

Attackers::Attackers(const Attack& attack, const Scene& scene)
    : folder_(client::MakeTemporaryFolder()) {
  Start({"--role", "attack", "--attack", attack.name, "--socket", scene.socket,
         "--grpc", scene.grpc},
        scene.target());
}

Attackers::Attackers(const CpuUse& attackers, const CpuUse& daemons)
    : folder_(client::MakeTemporaryFolder()) {
  Start({"--role", "burner", "--cpus", std::to_string(attackers.cpu),
         std::to_string(daemons.cpu), "--sleeps",
         std::to_string(attackers.sleeps), std::to_string(daemons.sleeps)},
        "");
}

void Attackers::Start(std::vector<std::string> arguments,
                      const std::string& target) {
  base::ChildProcess::Options options;
  arguments.insert(arguments.begin(),
                   base::ProgramFolder() + "/rknnd-bench-hostile");
  options.arguments = std::move(arguments);
  options.environment = {{"RKNND_TARGET", target}};
  // The library tells of each call that was refused.
  options.error_file = folder_.path() + "/log";
  auto process = base::ChildProcess::Start(options);
  if (!process) throw std::runtime_error(process.error().message);
  process_ = *std::move(process);
  auto line = process_.ReadLine(kPatience);
  if (!line || line->rfind("ready", 0) != 0) {
    const std::string end = EndedBy();
    throw std::runtime_error(end.empty() ? "the attack did not begin" : end);
  }
  announced_ = line->substr(std::min<size_t>(6, line->size()));
}

void Attackers::Kill() {
  if (!process_.running()) return;
  kill(-process_.pid(), SIGKILL);
  process_.Signal(SIGKILL);
  (void)process_.Wait(kPatience);
}

std::string Attackers::EndedBy() {
  if (!process_.running()) return "";
  const auto code = process_.Wait(kEndPatience);
  if (!code) return "";
  std::ifstream log(folder_.path() + "/log");
  std::string last;
  for (std::string line; std::getline(log, line);) last = line;
  return "the attacker ended with " + std::to_string(*code) + ": " + last;
}

}  // namespace rknnd::bench
