// What a crowd is served: requests answered a second with eight connections and
// with 1,000, each with as many calls open as it likes, and how much the
// slowest tenth of the connections gets of what they get on average. The crowd
// is that of crowd.cc, by itself. Few and many take turns, as a shared machine
// is not as quick from one ten seconds to the next, and the turn in the middle
// counts.

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "bench/common/measures.h"
#include "bench/remote/board.h"
#include "bench/remote/calls.h"
#include "bench/remote/networks.h"
#include "bench/remote/rows.h"

namespace rknnd::bench {
namespace {

constexpr int kFew = 8, kMany = 1000, kCallsEach = 10;
constexpr int kTurns = 5;
constexpr double kLeastGoodput = 0.9, kLeastOfSlowest = 0.5;
// Answers of each connection that make a tenth of them tell something.
constexpr double kAnswersEach = 10;
// Until all are connected and have been refused or queued.
constexpr double kWarm = 3;
constexpr double kLongest = 60;
constexpr base::Nanoseconds kPatience = 300 * base::kSecond;

struct Served {
  double seconds = 0, per_second = 0, slowest = 0;
  nlohmann::json counts;
};

struct Turn {
  Served few, many;
  [[nodiscard]] double goodput() const {
    return few.per_second > 0 ? many.per_second / few.per_second : 0;
  }
};

Served Serve(const RemoteBoard& board, const std::string& request,
             int connections, double seconds, const std::string& scheduled) {
  const client::Launcher launcher;
  base::ChildProcess crowd = launcher.Start(
      {"rknnd-bench-remote", "--role", "crowd", "--address", board.grpc(),
       "--method", kModelInfer, "--request", request, "--connections",
       std::to_string(connections), "--calls", std::to_string(kCallsEach),
       "--warm", std::to_string(kWarm), "--seconds", std::to_string(seconds),
       "--crowd", scheduled});
  launcher.NextLine(crowd, "the crowd", kPatience);
  Served served;
  served.counts =
      nlohmann::json::parse(launcher.NextLine(crowd, "the crowd", kPatience));
  auto by = served.counts.at("done_by").get<std::vector<uint64_t>>();
  served.counts.erase("done_by");
  std::sort(by.begin(), by.end());
  const size_t tenth = std::max<size_t>(1, by.size() / 10);
  const auto sum = [&](size_t count) {
    return static_cast<double>(std::accumulate(
        by.begin(), by.begin() + static_cast<long>(count), uint64_t{0}));
  };
  const double mean = sum(by.size()) / static_cast<double>(by.size());
  served.seconds = seconds;
  served.per_second = sum(by.size()) / seconds;
  served.slowest =
      mean > 0 ? sum(tenth) / static_cast<double>(tenth) / mean : 0;
  served.counts["per_second"] = served.per_second;
  served.counts["slowest_tenth"] = served.slowest;
  served.counts["seconds"] = seconds;
  return served;
}

}  // namespace

void MeasureGoodput(double seconds, const std::string& scheduled,
                    Figures* figures) {
  const base::TemporaryFolder folder = client::MakeTemporaryFolder();
  const RemoteBoard board(/*paced=*/false);
  Calls(board.grpc())
      .Unary(kModelLoad, LoadRequest("means", FloatImageModel()));
  const std::string request = folder.path() + "/means.bin";
  std::ofstream(request, std::ios::binary)
      << InferRequest("means", "image", "FP32", {1, 3, 320, 320},
                      std::string(kFloatImageBytes, '\0'));

  std::vector<Turn> turns;
  for (int i = 0; i < kTurns; ++i) {
    Turn turn;
    turn.few = Serve(board, request, kFew, seconds, scheduled);
    const double long_enough = turn.few.per_second > 0
                                   ? kAnswersEach * kMany / turn.few.per_second
                                   : 0;
    turn.many =
        Serve(board, request, kMany,
              std::min(kLongest, std::max(seconds, long_enough)), scheduled);
    turns.push_back(std::move(turn));
  }
  std::sort(turns.begin(), turns.end(),
            [](const Turn& left, const Turn& right) {
              return left.goodput() < right.goodput();
            });
  const auto& [few, many] = turns[kTurns / 2];
  const double goodput = turns[kTurns / 2].goodput();
  figures->AddBeside("8 connections, 80 requests of 1.2 MB",
                     Text("%.0f answered a second, slowest %.2f of mean",
                          few.per_second, few.slowest),
                     few.counts);
  figures->Add(
      "1,000 connections, 10,000 requests: goodput",
      Text("at least %.0f %% of that", 100 * kLeastGoodput),
      Text("%.0f %% (%.0f answered a second; turns %.0f to %.0f %%)",
           100 * goodput, many.per_second, 100 * turns.front().goodput(),
           100 * turns.back().goodput()),
      goodput >= kLeastGoodput, many.counts);
  figures->Add("  the slowest tenth of the connections",
               Text("at least %.0f %% of the mean", 100 * kLeastOfSlowest),
               Text("%.0f %%, in %.0f s", 100 * many.slowest, many.seconds),
               many.slowest >= kLeastOfSlowest, {{"few", few.counts}});
  figures->AddBeside(
      "  told to come again",
      Text("%llu", many.counts.at("refused").get<unsigned long long>()),
      many.counts);
}

}  // namespace rknnd::bench
