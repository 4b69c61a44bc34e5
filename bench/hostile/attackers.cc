// See attackers.h.

#include "bench/hostile/attackers.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
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
// Of a burner's time.
constexpr double kSlice = 0.005;

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

// The words of /proc/PID/stat from the state on; none once it has ended.
std::vector<std::string> StatOf(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  // Behind the name, which may hold anything.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream words(text.substr(name_end + 1));
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  return all;
}

double CpuSecondsIn(const std::vector<std::string>& stat) {
  if (stat.size() < 13) return 0;
  return (std::stod(stat[11]) + std::stod(stat[12])) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

double ThreadCpuNow() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

// So much of one CPU.
void Burn(double share) {
  for (;;) {
    const double start = SecondsNow(), cpu = ThreadCpuNow();
    while (ThreadCpuNow() - cpu < share * kSlice) {
    }
    const double rest = (ThreadCpuNow() - cpu) / share - (SecondsNow() - start);
    if (rest > 0) SleepFor(rest);
  }
}

}  // namespace

int RunAttack(const std::string& name, const Scene& scene) {
  BecomeOtherUser();
  for (const Attack& attack : AllAttacks()) {
    if (attack.name == name) attack.work(scene);
  }
  throw std::runtime_error("there is no attack '" + name + "'");
}

int RunBurner(double cpus) {
  BecomeOtherUser();
  const int threads = std::max(1, static_cast<int>(std::ceil(cpus - 0.05)));
  if (cpus > 0.001) {
    InThreads(threads, [=](int) { Burn(std::min(cpus / threads, 1.0)); });
  }
  Announce("");
  WaitForDeath();
}

Attackers::Attackers(const Attack& attack, const Scene& scene)
    : folder_(client::MakeTemporaryFolder()) {
  Start({"--role", "attack", "--attack", attack.name, "--socket", scene.socket,
         "--grpc", scene.grpc},
        scene.target());
}

Attackers::Attackers(double burnt_cpus)
    : folder_(client::MakeTemporaryFolder()) {
  Start({"--role", "burner", "--cpus", std::to_string(burnt_cpus)}, "");
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

double Attackers::cpu_seconds() const {
  const std::string group = std::to_string(process_.pid());
  double seconds = 0;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
    const auto stat = StatOf(name);
    if (stat.size() > 2 && stat[2] == group) seconds += CpuSecondsIn(stat);
  }
  return seconds;
}

double CpuSecondsOf(pid_t pid) {
  return CpuSecondsIn(StatOf(std::to_string(pid)));
}

}  // namespace rknnd::bench
