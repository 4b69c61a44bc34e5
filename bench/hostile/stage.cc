// See stage.h.

#include "bench/hostile/stage.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "base/posix/unique_fd.h"
#include "bench/common/measures.h"
#include "client/launch/launcher.h"

namespace rknnd::bench {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGrpcMemory = 64 * kMiB;
// limits.address_space of the SoC.
constexpr uint64_t kAddressSpace = 4096 * kMiB;
// Heaps of threads that have had to allocate once.
constexpr uint64_t kHeaps = 32 * kMiB;
constexpr base::Nanoseconds kStartPatience = 60 * base::kSecond;
constexpr double kLookEvery = 0.01, kOneSecond = 1;

// A port that was free a moment ago.
std::string FreeAddress() {
  const base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), any, size) != 0 ||
      getsockname(fd.get(), any, &size) != 0) {
    throw std::runtime_error("no free port");
  }
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

std::string WriteConfig(const std::string& folder, const std::string& grpc) {
  std::string text = "socket_mode = 0o666\ngrace = 0\n";
  if (!grpc.empty()) {
    const std::string tokens = folder + "/tokens";
    std::ofstream(tokens) << "user ci right-and-never-guessed-token\n";
    fs::permissions(tokens, fs::perms::owner_read | fs::perms::owner_write);
    text += "[grpc]\nlisten = \"" + grpc + "\"\ntokens = \"" + tokens +
            "\"\nmessage_bytes = " + std::to_string(16 * kMiB) +
            "\nmemory = " + std::to_string(kGrpcMemory) + "\n";
  }
  const std::string path = folder + "/rknnd.toml";
  std::ofstream(path) << text;
  return path;
}

// gRPC starts with one of these, makes more when it has much to do, whoever it
// is for, and keeps them: twice as many as there are CPUs at most.
uint64_t PoolThreadsOf(pid_t pid) {
  uint64_t threads = 0;
  std::error_code error;
  for (const auto& task : fs::directory_iterator(
           "/proc/" + std::to_string(pid) + "/task", error)) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    if (std::getline(file, name) && name == "default-executo") ++threads;
  }
  return threads;
}

uint64_t MostPoolThreads() {
  return 2 * static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_CONF));
}

// What `now` has more than `before`; "" where it has no more.
std::string MoreThan(const Look& before, const Look& now) {
  std::string more;
  const auto compare = [&](const char* what, uint64_t had, uint64_t has) {
    if (has <= had) return;
    more += (more.empty() ? "+" : ", +") + std::to_string(has - had) + what;
  };
  compare(" descriptors", before.use.fds, now.use.fds);
  compare(" threads", before.use.threads - before.pool,
          now.use.threads - now.pool);
  compare(" threads of gRPC's pool", MostPoolThreads(), now.pool);
  if (now.use.rss > before.use.rss + kHeaps) {
    compare(" MiB", before.use.rss / kMiB, now.use.rss / kMiB);
  }
  compare(" sessions", before.held.sessions, now.held.sessions);
  compare(" contexts", before.held.contexts, now.held.contexts);
  compare(" buffers", before.held.buffers, now.held.buffers);
  compare(" models", before.held.models, now.held.models);
  compare(" bytes held", before.held.bytes(), now.held.bytes());
  return more;
}

}  // namespace

Stage::Stage(bool with_grpc) : folder_(client::MakeTemporaryFolder()) {
  if (with_grpc) scene_.grpc = FreeAddress();
  scene_.socket = folder_.path() + "/session.sock";
  base::ChildProcess::Options options;
  options.arguments = {base::ProgramFolder() + "/rknnd",
                       "--config",
                       WriteConfig(folder_.path(), scene_.grpc),
                       "--socket",
                       scene_.socket,
                       "--device",
                       "soft",
                       "--soc",
                       "rk3588",
                       "--cache-dir",
                       "",
                       "--log-level",
                       "1"};
  // It has a lot to say of its clients.
  options.error_file = folder_.path() + "/log";
  options.dies_with_parent = true;
  auto daemon = base::ChildProcess::Start(options);
  if (!daemon) throw std::runtime_error(daemon.error().message);
  daemon_ = *std::move(daemon);
  if (!base::WaitForServer(scene_.socket, daemon_, kStartPatience)) {
    throw std::runtime_error("the daemon did not start");
  }
  // Others may pass, but not look around.
  fs::permissions(folder_.path(), fs::perms::owner_all | fs::perms::group_exec |
                                      fs::perms::others_exec);
}

uint64_t Stage::Allowed(Holds holds) {
  switch (holds) {
    case Holds::kAddressSpace:
      return kAddressSpace;
    case Holds::kGrpcMemory:
      return kGrpcMemory;
    case Holds::kNothing:
      break;
  }
  return 0;
}

Look Stage::LookNow() {
  Look look;
  // Looked at first: the connection that asks the daemon itself is one more,
  // and gone by the next look.
  look.use = torture::UseOf(pid());
  look.pool = PoolThreadsOf(pid());
  if (look.use.threads == 0) throw std::runtime_error("the daemon has ended");
  const auto held = torture::HoldingsOf(scene_.target());
  if (!held) throw std::runtime_error(held.error().message);
  look.held = *held;
  return look;
}

Look Stage::Settled() {
  Look look = LookNow();
  look.use = torture::SettledUseOf(pid());
  look.pool = PoolThreadsOf(pid());
  return look;
}

Recovery Stage::AwaitAsBefore(const Look& before, double patience) {
  const double start = SecondsNow();
  Recovery recovery;
  for (;;) {
    Look now = LookNow();
    const std::string more = MoreThan(before, now);
    const double seconds = SecondsNow() - start;
    if (more.empty()) {
      recovery.seconds = seconds;
      return recovery;
    }
    if (seconds <= kOneSecond || recovery.rest.empty()) recovery.rest = more;
    if (seconds > patience) return recovery;
    SleepFor(kLookEvery);
  }
}

uint64_t Stage::resident() const {
  std::ifstream file("/proc/" + std::to_string(pid()) + "/statm");
  uint64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) {
    throw std::runtime_error("the daemon has ended");
  }
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void Stage::ForgetPeak() {
  std::ofstream file("/proc/" + std::to_string(pid()) + "/clear_refs");
  file << "5\n";
  file.close();
  if (!file) throw std::runtime_error("cannot watch the daemon's memory");
}

uint64_t Stage::peak() const {
  std::ifstream file("/proc/" + std::to_string(pid()) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmHWM:", 0) == 0) {
      return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
    }
  }
  throw std::runtime_error("the daemon has ended");
}

}  // namespace rknnd::bench
