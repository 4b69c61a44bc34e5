// ModelInfer with 1.2 MB beside a bare gRPC call with the same bytes both ways,
// one call after the other, in turns within one run. The job itself, which both
// figures leave out, is measured by a local program with the same tensors.

#include <cstdio>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "bench/common/failure.h"
#include "bench/common/measures.h"
#include "bench/remote/board.h"
#include "bench/remote/calls.h"
#include "bench/remote/local_runs.h"
#include "bench/remote/networks.h"
#include "bench/remote/rows.h"

namespace rknnd::bench {
namespace {

constexpr int kTurns = 10;
constexpr double kMostTime = 1.5, kMostCpu = 1.3;

struct Side {
  std::vector<double> us;  // of each call
  double cpu_us = 0;       // of the server, for each call
};

// Calls for so long; what the server's process used goes to `side`.
void Call(Calls& calls, const std::string& method, const std::string& request,
          pid_t server, double seconds, Side* side, double* cpu) {
  const double before = CpuSeconds(server);
  const double end = SecondsNow() + seconds;
  for (double now = SecondsNow(); now < end;) {
    calls.Unary(method, request);
    const double after = SecondsNow();
    side->us.push_back((after - now) * 1e6);
    now = after;
  }
  *cpu += CpuSeconds(server) - before;
}

}  // namespace

void MeasureInfer(double seconds, Figures* figures) {
  RemoteBoard board(/*paced=*/false);
  Calls infer(board.grpc());
  infer.Unary(kModelLoad, LoadRequest("means", FloatImageModel()));
  const std::string request =
      InferRequest("means", "image", "FP32", {1, 3, 320, 320},
                   std::string(kFloatImageBytes, '\0'));
  const std::string reply = infer.Unary(kModelInfer, request);

  const std::string bare_address = FreeAddress();
  const client::Launcher launcher;
  const base::ChildProcess bare_server =
      launcher.Start({"rknnd-bench-remote", "--role", "bare", "--address",
                      bare_address, "--bytes", std::to_string(reply.size())});
  Calls bare(bare_address);

  Side ours, theirs;
  double our_cpu = 0, their_cpu = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    Call(bare, "/bench.Bare/Unary", request, bare_server.pid(),
         seconds / kTurns, &theirs, &their_cpu);
    Call(infer, kModelInfer, request, board.pid(), seconds / kTurns, &ours,
         &our_cpu);
  }
  const LocalRuns job = RunLocally(board, seconds / 2);
  ours.cpu_us =
      our_cpu / static_cast<double>(ours.us.size()) * 1e6 - job.daemon_cpu_us;
  theirs.cpu_us = their_cpu / static_cast<double>(theirs.us.size()) * 1e6;

  const double our_us = Percentile(ours.us, 0.5) - job.run_us;
  const double their_us = Percentile(theirs.us, 0.5);
  figures->Add("ModelInfer, 1.2 MB: time beside its job",
               Text("at most %.1f x a bare call", kMostTime),
               Text("%.2f x (%.0f us, bare %.0f us)", our_us / their_us, our_us,
                    their_us),
               our_us <= kMostTime * their_us,
               {{"us", our_us}, {"bare_us", their_us}, {"job_us", job.run_us}});
  figures->Add("ModelInfer, 1.2 MB: the server's CPU beside its job",
               Text("at most %.1f x a bare call", kMostCpu),
               Text("%.2f x (%.0f us, bare %.0f us)",
                    ours.cpu_us / theirs.cpu_us, ours.cpu_us, theirs.cpu_us),
               ours.cpu_us <= kMostCpu * theirs.cpu_us,
               {{"cpu_us", ours.cpu_us},
                {"bare_cpu_us", theirs.cpu_us},
                {"job_cpu_us", job.daemon_cpu_us}});
}

void MeasureRegions(double seconds, Figures* figures) {
  RemoteBoard board(/*paced=*/false);
  // The program that shares the board with the gRPC client and has the memory.
  setenv("RKNND_TARGET", board.local_target().c_str(), 1);
  LocalContext owner(IntegerImageModel(), RKNN_TENSOR_UINT8);
  const Region from = owner.RegionOf(0), to = owner.RegionOf(1);

  Calls infer(board.grpc());
  infer.Unary(kModelLoad, LoadRequest("means", IntegerImageModel()));
  // Rows of pixels, as a camera has them: what the NPU reads as it is.
  const std::string request = InferRequest("means", "image", "UINT8",
                                           {1, 640, 640, 3}, from, "means", to);
  const std::string with_bytes =
      InferRequest("means", "image", "UINT8", {1, 3, 640, 640},
                   std::string(kByteImageBytes, '\0'));
  std::vector<double> us, bytes_us;
  const auto call = [&](const std::string& what, std::vector<double>* times) {
    const double before = SecondsNow();
    infer.Unary(kModelInfer, what);
    times->push_back((SecondsNow() - before) * 1e6);
  };
  const auto copied = [&] {
    uint64_t sum = 0;
    for (const auto& context :
         board.Ask(rknnd_v1_ReportKind_REPORT_CONTEXTS).contexts) {
      sum += context.copied.to_device_inputs_set +
             context.copied.to_device_conversion +
             context.copied.from_device_outputs_get +
             context.copied.from_device_conversion;
    }
    return sum;
  };
  call(request, &us);
  us.clear();
  const uint64_t before = copied();
  for (const double end = SecondsNow() + seconds / 2; SecondsNow() < end;) {
    call(request, &us);
  }
  const auto per_frame =
      static_cast<double>(copied() - before) / static_cast<double>(us.size());
  for (const double end = SecondsNow() + seconds / 2; SecondsNow() < end;) {
    call(with_bytes, &bytes_us);
  }
  figures->Add("local gRPC client, registered memory: bytes copied", "0",
               Text("%.0f a frame of %zu", per_frame, us.size()),
               per_frame == 0,
               {{"bytes_per_frame", per_frame}, {"frames", us.size()}});
  figures->AddBeside(
      "  its call, and one with 1.2 MB in the message",
      Text("%.0f us, %.0f us", Percentile(us, 0.5), Percentile(bytes_us, 0.5)),
      {{"us", Percentile(us, 0.5)},
       {"with_bytes_us", Percentile(bytes_us, 0.5)}});
}

}  // namespace rknnd::bench
