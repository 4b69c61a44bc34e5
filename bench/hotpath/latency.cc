// See latency.h.

#include "bench/hotpath/latency.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "base/posix/clock.h"
#include "bench/common/failure.h"
#include "bench/common/one_operator.h"
#include "bench/hotpath/floor.h"
#include "bench/hotpath/grpc_echo.h"
#include "bench/hotpath/raw_session.h"
#include "bench/hotpath/samples.h"
#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "client/include/rknnd.hpp"
#include "client/launch/launcher.h"

namespace rknnd::bench {
namespace {

constexpr int kPerRound = 500;
constexpr int kGrpcPerRound = 50;
constexpr int kModelRunsPerRound = 10;
// A turn is short, so that what the machine does meanwhile hits both sides.
constexpr int kGrowthTurns = 4, kGrowthWarmUp = 20, kGrowthFrames = 200;
constexpr int kIdleSessions = 63;
constexpr int kIdleContexts = 999;
constexpr int kSpinMicroseconds = 50;

// Client and core of the frames of one kind.
struct Frames {
  Samples client, core;
  // Of the daemon: from the look at the entry to the core; from the core to the
  // look at the time for the answer.
  Samples before_core, behind_core;
  [[nodiscard]] double added() const {
    return client.Percentile(0.5) - core.Percentile(0.5);
  }
};

void RunOne(rknn_context context, Frames* frames) {
  const base::MonotonicClock clock;
  const base::Nanoseconds start = clock.Now();
  if (rknn_run(context, nullptr) != RKNN_SUCC) Fail("rknn_run");
  frames->client.Add(clock.Now() - start);
  rknnd_run_report report;
  if (rknnd_last_run(context, &report) != RKNN_SUCC) Fail("rknnd_last_run");
  frames->core.Add(static_cast<int64_t>(report.run_ns));
  frames->before_core.Add(static_cast<int64_t>(report.queue_ns));
  frames->behind_core.Add(
      static_cast<int64_t>(report.total_ns - report.queue_ns - report.run_ns));
}

void RunRound(rknn_context context, int count, Frames* frames) {
  for (int i = 0; i < count; ++i) RunOne(context, frames);
}

struct Switches {
  int64_t given = 0, lost = 0;
};

// A daemon that the client library of this process will find.
class Daemon {
 public:
  Daemon(const std::string& folder, bool spinning, int cpu)
      : daemon_(launcher_, cpu, {"--config", Config(folder, spinning)}) {
    setenv("RKNND_TARGET", daemon_.target().c_str(), 1);
  }
  [[nodiscard]] const std::string& target() const { return daemon_.target(); }
  [[nodiscard]] const client::Launcher& launcher() const { return launcher_; }

  // How often its threads have given their CPU away, and lost it.
  [[nodiscard]] Switches switches() const {
    Switches sum;
    for (const auto& thread : std::filesystem::directory_iterator(
             "/proc/" + std::to_string(daemon_.pid()) + "/task")) {
      std::ifstream status(thread.path() / "status");
      for (std::string word; status >> word;) {
        int64_t count = 0;
        if (word == "voluntary_ctxt_switches:" && status >> count) {
          sum.given += count;
        } else if (word == "nonvoluntary_ctxt_switches:" && status >> count) {
          sum.lost += count;
        }
      }
    }
    return sum;
  }
  // All the threads it has by now.
  void PinTo(int cpu) const {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    for (const auto& thread : std::filesystem::directory_iterator(
             "/proc/" + std::to_string(daemon_.pid()) + "/task")) {
      sched_setaffinity(std::stoi(thread.path().filename().string()),
                        sizeof set, &set);
    }
  }

 private:
  static std::string Config(const std::string& folder, bool spinning) {
    const std::string path = folder + "/rknnd.toml";
    std::ofstream(path) << "[scheduler]\nspin = "
                        << (spinning ? std::to_string(kSpinMicroseconds)
                                     : std::string("\"off\""))
                        << '\n';
    return path;
  }

  const client::Launcher launcher_;
  const client::PrivateDaemon daemon_;
};

// The one operator, or a model's file, ready to run.
class Model {
 public:
  explicit Model(const std::string& file) {
    if (file.empty()) {
      one_operator_.emplace();
      return;
    }
    context_ = Context::FromFile(file);
    context_.SetCoreMask(RKNN_NPU_CORE_0);
    for (uint32_t i = 0; i < context_.inputs().size(); ++i) {
      memories_.push_back(context_.AllocateInput(i));
      context_.BindInput(i, memories_.back());
    }
    for (uint32_t i = 0; i < context_.outputs().size(); ++i) {
      memories_.push_back(context_.AllocateOutput(i));
      context_.BindOutput(i, memories_.back());
    }
  }
  [[nodiscard]] rknn_context get() const {
    return one_operator_ ? one_operator_->get() : context_.handle();
  }
  // Bytes that a run goes over, in about; 0 of the one operator.
  [[nodiscard]] size_t memory() const {
    if (one_operator_) return 0;
    const rknn_mem_size sizes = context_.ModelMemory();
    return size_t{sizes.total_weight_size} + sizes.total_internal_size;
  }
  // The same of code, most of it generated for its layers.
  [[nodiscard]] size_t code() const {
    return one_operator_ ? 0 : size_t{1} << 20;
  }

 private:
  std::optional<OneOperatorContext> one_operator_;
  Context context_;
  std::vector<Memory> memories_;
};

nlohmann::json Percentiles(const Samples& samples) {
  return {{"p50", samples.Percentile(0.5)}, {"p99", samples.Percentile(0.99)}};
}

// Of a frame, on either side.
nlohmann::json CountSwitches(const Daemon& daemon, rknn_context context) {
  constexpr int kFrames = 50;
  const auto of_this_thread = [] {
    rusage use{};
    getrusage(RUSAGE_THREAD, &use);
    return Switches{use.ru_nvcsw, use.ru_nivcsw};
  };
  const Switches client = of_this_thread(), theirs = daemon.switches();
  Frames frames;
  RunRound(context, kFrames, &frames);
  const Switches client_now = of_this_thread(), theirs_now = daemon.switches();
  const auto each = [](int64_t count) {
    return static_cast<double>(count) / kFrames;
  };
  return {{"client_gives", each(client_now.given - client.given)},
          {"client_loses", each(client_now.lost - client.lost)},
          {"daemon_gives", each(theirs_now.given - theirs.given)},
          {"daemon_loses", each(theirs_now.lost - theirs.lost)}};
}

int64_t CpuTime() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * base::kSecond + now.tv_nsec;
}

// A daemon and its client, in a process of their own that lives as long: runs
// frames when it is asked to.
class Side {
 public:
  // `crowd(daemon, context)` makes what only stands about, and holds it.
  template <class Crowd>
  Side(const Placement& placement, const std::string& folder, Crowd crowd) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::runtime_error("no pair of sockets");
    }
    ours_ = base::UniqueFd(ends[0]);
    const base::UniqueFd theirs(ends[1]);
    std::filesystem::create_directory(folder);
    child_ = fork();
    if (child_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ours_.reset();
    // What stands on this stack is the parent's to put away.
    std::_Exit(RunMain("hotpath", [&] {
      PinTo(placement.client_cpu);
      const Daemon daemon(folder, false, placement.server_cpu);
      const Model model("");
      [[maybe_unused]] const auto held = crowd(daemon, model.get());
      Frames warm_up;
      RunRound(model.get(), kPerRound, &warm_up);
      char go = 0;
      while (read(theirs.get(), &go, 1) == 1) {
        Frames frames;
        RunRound(model.get(), kGrowthWarmUp, &warm_up);
        RunRound(model.get(), kGrowthFrames, &frames);
        const double added = frames.added();
        if (write(theirs.get(), &added, sizeof added) != sizeof added) break;
      }
      return 0;
    }));
  }
  ~Side() {
    ours_.reset();
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  double Added() const {
    const char go = 1;
    double added = 0;
    if (write(ours_.get(), &go, 1) != 1 ||
        read(ours_.get(), &added, sizeof added) != sizeof added) {
      throw std::runtime_error("one side of the comparison failed");
    }
    return added;
  }

 private:
  base::UniqueFd ours_;
  pid_t child_ = -1;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Frames beside what `crowd` makes, and without.
template <class Crowd>
nlohmann::json MeasureGrowth(const Placement& placement, int rounds,
                             const std::string& folder, Crowd crowd) {
  const Side few(placement, folder + "/few",
                 [](const Daemon&, rknn_context) { return 0; });
  const Side many(placement, folder + "/many", crowd);
  std::vector<double> with_few, with_many, ratios;
  for (int round = 0; round < rounds * kGrowthTurns; ++round) {
    // Each comes first as often as the other.
    const bool turned = round % 2 != 0;
    const double first = (turned ? many : few).Added();
    const double second = (turned ? few : many).Added();
    with_few.push_back(turned ? second : first);
    with_many.push_back(turned ? first : second);
    ratios.push_back(with_many.back() / with_few.back());
  }
  return {{"few_added_us", Median(with_few)},
          {"many_added_us", Median(with_many)},
          {"growth", Median(ratios)}};
}

}  // namespace

nlohmann::json MeasureLatency(const LatencySetup& setup, int rounds,
                              const std::string& folder) {
  const Placement& placement = setup.placement;
  // Who may use one CPU only does not wait awake: both sides see all of them
  // at their start, and are put in their places after it.
  if (!setup.spinning) PinTo(placement.client_cpu);
  const Daemon daemon(folder, setup.spinning,
                      setup.spinning ? -1 : placement.server_cpu);
  const Model model(setup.model);
  if (setup.spinning) {
    PinTo(placement.client_cpu);
    daemon.PinTo(placement.server_cpu);
  }
  const std::string address = "unix:" + folder + "/grpc.sock";
  std::optional<base::ChildProcess> grpc;
  std::optional<GrpcEchoClient> grpc_client;
  if (setup.grpc) {
    grpc = daemon.launcher().Start(
        {"rknnd-bench-hotpath", "--serve-grpc", address}, {},
        placement.server_cpu);
    grpc_client.emplace(address);
  }
  PingPong floor(placement.server_cpu, {model.memory(), 0});
  PingPong cold(placement.server_cpu, {model.memory(), model.code()});
  SameCalls calls(placement.server_cpu, {model.memory(), model.code()});
  Samples floor_times, cold_floor, calls_floor, warm_floor, quiet_floor,
      grpc_times, warm_up;
  Frames frames, warm_frames;
  floor.Round(kPerRound, &warm_up);
  std::optional<Flood> flood;
  if (setup.flood) {
    for (int round = 0; round < rounds; ++round) {
      floor.Round(kPerRound, &quiet_floor);
    }
    flood.emplace(daemon.target(), setup.flood_cpu);
  }
  RunRound(model.get(), setup.model.empty() ? kPerRound : 3, &warm_frames);
  if (grpc_client) grpc_client->Round(kGrpcPerRound, &warm_up);
  for (int round = 0; round < rounds; ++round) {
    if (setup.model.empty()) {
      floor.Round(kPerRound, &floor_times);
      RunRound(model.get(), kPerRound, &frames);
      if (grpc_client) grpc_client->Round(kGrpcPerRound, &grpc_times);
      continue;
    }
    // One by one: what the machine does meanwhile hits all alike. Frame and
    // cold floor come each behind as long a work of another process.
    for (int i = 0; i < kModelRunsPerRound; ++i) {
      RunOne(model.get(), &frames);
      const int64_t work = frames.core.at(frames.core.size() - 1);
      cold.RoundAfterWork(work, &cold_floor);
      calls.RoundAfterWork(work, &calls_floor);
      floor.Round(1, &warm_floor);
      floor.RoundAfterWork(work, &floor_times);
    }
  }
  // The core's own time varies; that of a frame is taken from its own client's.
  Samples added_each;
  for (size_t i = 0; i < frames.client.size(); ++i) {
    added_each.Add(frames.client.at(i) - frames.core.at(i));
  }
  const double added = added_each.Percentile(0.5);
  const double floor_p50 = floor_times.Percentile(0.5);
  const double floor_p99 = floor_times.Percentile(0.99);
  nlohmann::json row = {
      {"placement", placement.name},
      {"waits", setup.spinning ? "awake" : "asleep"},
      {"flood", setup.flood},
      {"model", setup.model.empty() ? "one operator"
                                    : std::filesystem::path(setup.model)
                                          .parent_path()
                                          .filename()
                                          .string()},
      {"runs", frames.client.size()},
      {"floor_us", Percentiles(floor_times)},
      {"client_us", Percentiles(frames.client)},
      {"core_us", Percentiles(frames.core)},
      {"added_us", added},
      {"added_each_us", Percentiles(added_each)},
      {"added_per_floor", added / floor_p50},
      {"p99_per_floor_p99", added_each.Percentile(0.99) / floor_p99}};
  if (warm_floor.size() != 0) {
    row["warm_floor_us"] = Percentiles(warm_floor);
    row["cold_floor_us"] = Percentiles(cold_floor);
    row["calls_floor_us"] = Percentiles(calls_floor);
    row["added_per_calls_floor"] = added / calls_floor.Percentile(0.5);
    row["before_core_us"] = Percentiles(frames.before_core);
    row["behind_core_us"] = Percentiles(frames.behind_core);
    row["switches"] = CountSwitches(daemon, model.get());
    row["added_per_cold_floor"] = added / cold_floor.Percentile(0.5);
    row["p99_per_cold_floor_p99"] =
        added_each.Percentile(0.99) / cold_floor.Percentile(0.99);
  }
  if (quiet_floor.size() != 0) {
    row["quiet_floor_us"] = Percentiles(quiet_floor);
  }
  if (grpc_client) {
    row["grpc_unary_us"] = Percentiles(grpc_times);
    row["grpc_per_added"] = grpc_times.Percentile(0.5) / added;
  }
  return row;
}

nlohmann::json MeasureSessions(const Placement& placement, int rounds,
                               const std::string& folder) {
  return MeasureGrowth(
      placement, rounds, folder, [](const Daemon& daemon, rknn_context) {
        std::vector<std::unique_ptr<RawSession>> sessions;
        for (int i = 0; i < kIdleSessions; ++i) {
          sessions.push_back(std::make_unique<RawSession>(daemon.target()));
        }
        return sessions;
      });
}

nlohmann::json MeasureContexts(const Placement& placement, int rounds,
                               const std::string& folder) {
  return MeasureGrowth(
      placement, rounds, folder, [](const Daemon&, rknn_context original) {
        std::vector<rknn_context> contexts(kIdleContexts);
        for (rknn_context& context : contexts) {
          if (rknn_dup_context(&original, &context) != RKNN_SUCC) {
            Fail("rknn_dup_context");
          }
        }
        return contexts;
      });
}

nlohmann::json MeasureClientCpu(const Placement& placement, int rounds,
                                const std::string& folder) {
  PinTo(placement.client_cpu);
  const Daemon daemon(folder, false, placement.server_cpu);
  const Model model("");
  FutexPeer peer(placement.server_cpu);
  Samples frame, of_peer;
  const auto run = [&] {
    for (int i = 0; i < kPerRound; ++i) {
      if (rknn_run(model.get(), nullptr) != RKNN_SUCC) Fail("rknn_run");
    }
  };
  run();
  peer.Round(kPerRound);
  for (int round = 0; round < rounds; ++round) {
    int64_t before = CpuTime();
    run();
    frame.Add((CpuTime() - before) / kPerRound);
    before = CpuTime();
    peer.Round(kPerRound);
    of_peer.Add((CpuTime() - before) / kPerRound);
  }
  return {{"placement", placement.name},
          {"frame_cpu_us", frame.Percentile(0.5)},
          {"peer_cpu_us", of_peer.Percentile(0.5)},
          {"ratio", frame.Percentile(0.5) / of_peer.Percentile(0.5)}};
}

nlohmann::json MeasureCustomOperator(const Placement& placement, int rounds,
                                     const std::string& folder) {
  PinTo(placement.client_cpu);
  const Daemon daemon(folder, false, placement.server_cpu);
  const OneOperatorContext plain, interrupted(true);
  PingPong floor(placement.server_cpu);
  Samples floor_times;
  Frames whole, parts, warm_up;
  RunRound(plain.get(), kPerRound, &warm_up);
  RunRound(interrupted.get(), kPerRound, &warm_up);
  for (int round = 0; round < rounds; ++round) {
    floor.Round(kPerRound, &floor_times);
    RunRound(plain.get(), kPerRound, &whole);
    RunRound(interrupted.get(), kPerRound, &parts);
  }
  const double round_trip = parts.added() - whole.added();
  return {{"placement", placement.name},
          {"floor_us", floor_times.Percentile(0.5)},
          {"run_us", whole.client.Percentile(0.5)},
          {"interrupted_us", parts.client.Percentile(0.5)},
          {"round_trip_us", round_trip},
          {"per_floor", round_trip / floor_times.Percentile(0.5)}};
}

}  // namespace rknnd::bench
