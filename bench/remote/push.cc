// A model of 100 MB that the board lacks, sent by the C API, beside a bare gRPC
// stream of as many bytes in the same run; then the same model once more.

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "bench/common/failure.h"
#include "bench/common/measures.h"
#include "bench/remote/board.h"
#include "bench/remote/calls.h"
#include "bench/remote/networks.h"
#include "bench/remote/rows.h"
#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"

namespace rknnd::bench {
namespace {

constexpr size_t kModelBytes = size_t{100} << 20;
constexpr size_t kPiece = size_t{512} << 10;
constexpr double kLeastRate = 0.8;
constexpr int kTurns = 3;
constexpr base::Nanoseconds kPatience = 300 * base::kSecond;

// When the transfer began and ended, as the library tells.
struct Transfer {
  double first = 0, last = 0;
  uint64_t first_bytes = 0, bytes = 0;
};

void OnProgress(void* user, const char* /*what*/, uint64_t done,
                uint64_t /*total*/) {
  auto* const transfer = static_cast<Transfer*>(user);
  if (transfer->first == 0) {
    transfer->first = SecondsNow();
    transfer->first_bytes = done;
  }
  transfer->last = SecondsNow();
  transfer->bytes = done;
}

double Seconds(const std::string& model, Transfer* transfer) {
  *transfer = {};
  rknnd_set_progress(OnProgress, transfer);
  std::string bytes = model;
  rknn_context context = 0;
  const double before = SecondsNow();
  if (rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), 0,
                nullptr) != RKNN_SUCC) {
    Fail("rknn_init");
  }
  const double took = SecondsNow() - before;
  rknnd_set_progress(nullptr, nullptr);
  rknn_destroy(context);
  return took;
}

}  // namespace

int RunPush(const RolePlan& plan) {
  const std::string model =
      HeavyModel(kModelBytes, static_cast<unsigned>(plan.bytes));
  Transfer transfer, again;
  Seconds(model, &transfer);
  const double second = Seconds(model, &again);
  const nlohmann::json said = {
      {"rate", static_cast<double>(transfer.bytes - transfer.first_bytes) /
                   (transfer.last - transfer.first)},
      {"again_bytes", again.bytes},
      {"again_ms", second * 1e3}};
  std::puts(said.dump().c_str());
  std::fflush(stdout);
  return 0;
}

void MeasurePush(double /*seconds*/, Figures* figures) {
  RemoteBoard board(/*paced=*/false);
  const std::string bare_address = FreeAddress();
  const client::Launcher launcher;
  const base::ChildProcess bare_server =
      launcher.Start({"rknnd-bench-remote", "--role", "bare", "--address",
                      bare_address, "--bytes", "16"});
  Calls bare(bare_address);
  std::vector<double> rates, bare_rates, again_ms;
  uint64_t again_bytes = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    const double before = SecondsNow();
    bare.Stream("/bench.Bare/Stream", kModelBytes, kPiece);
    bare_rates.push_back(kModelBytes / (SecondsNow() - before));
    base::ChildProcess process =
        launcher.Start({"rknnd-bench-remote", "--role", "push", "--bytes",
                        std::to_string(turn)},
                       {{"RKNND_TARGET", board.tcp_target()}});
    const auto said = nlohmann::json::parse(
        launcher.NextLine(process, "a pushing process", kPatience));
    rates.push_back(said.at("rate").get<double>());
    again_ms.push_back(said.at("again_ms").get<double>());
    again_bytes += said.at("again_bytes").get<uint64_t>();
  }
  const double rate = Percentile(rates, 0.5);
  const double bare_rate = Percentile(bare_rates, 0.5);
  figures->Add("push of a 100 MB model",
               Text("at least %.0f %% of a bare stream", kLeastRate * 100),
               Text("%.0f %% (%.0f MB/s, bare %.0f)", rate / bare_rate * 100,
                    rate * 1e-6, bare_rate * 1e-6),
               rate >= kLeastRate * bare_rate,
               {{"rate", rate}, {"bare_rate", bare_rate}});
  figures->Add(
      "  the same model again: bytes of it sent", "0",
      Text("%llu, %.1f ms", static_cast<unsigned long long>(again_bytes),
           Percentile(again_ms, 0.5)),
      again_bytes == 0,
      {{"bytes", again_bytes}, {"ms", Percentile(again_ms, 0.5)}});
}

}  // namespace rknnd::bench
