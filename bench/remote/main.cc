// What it costs to come from another machine, measured over loopback: each row
// beside gRPC at its barest, or beside the same work by a local program, in the
// same run.
//
//   rknnd-bench-remote [--out FILE] [--seconds N] [--only WORD]
//                      [--crowd idle|nice]
//
// Ends with 1 where a figure does not hold.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/common/failure.h"
#include "bench/remote/calls.h"
#include "bench/remote/rows.h"

namespace rknnd::bench {

int RunRole(const RolePlan& plan) {
  if (plan.role == "bare") ServeBare(plan.address, plan.bytes);
  if (plan.role == "local") return RunLocal(plan);
  if (plan.role == "frames") return RunFrames(plan);
  if (plan.role == "beat") return RunBeat(plan);
  if (plan.role == "push") return RunPush(plan);
  return RunCrowd(plan);
}

namespace {

int Main(int argc, char** argv) {
  CLI::App app("What it costs to come from another machine");
  std::string out, only;
  RolePlan plan;
  double seconds = 4;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--seconds", seconds, "of each row")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--only", only,
                 "one of infer, frames, regions, push, crowd, goodput");
  app.add_option("--crowd", plan.crowd,
                 "when the crowd gets a CPU: idle (no other work) or nice")
      ->check(CLI::IsMember(std::vector<std::string>{"idle", "nice"}));
  app.add_option("--role", plan.role)->group("");
  app.add_option("--address", plan.address)->group("");
  app.add_option("--model", plan.model)->group("");
  app.add_option("--method", plan.method)->group("");
  app.add_option("--request", plan.request)->group("");
  app.add_option("--period-ms", plan.period_ms)->group("");
  app.add_option("--connections", plan.connections)->group("");
  app.add_option("--calls", plan.calls)->group("");
  app.add_option("--frames", plan.frames)->group("");
  app.add_option("--bytes", plan.bytes)->group("");
  app.add_option("--warm", plan.warm)->group("");
  app.add_option("--stop-after", plan.stop_after)->group("");
  CLI11_PARSE(app, argc, argv);
  if (!plan.role.empty()) {
    plan.seconds = seconds;
    return RunRole(plan);
  }
  Figures figures;
  Figures::PrintHead();
  const auto row = [&](const char* name, void (*measure)(double, Figures*)) {
    if (only.empty() || only == name) measure(seconds, &figures);
  };
  row("infer", MeasureInfer);
  row("frames", MeasureFrames);
  row("regions", MeasureRegions);
  row("push", MeasurePush);
  if (only.empty() || only == "crowd") {
    MeasureCrowd(seconds, plan.crowd, &figures);
  }
  if (only.empty() || only == "crowd" || only == "goodput") {
    MeasureGoodput(seconds, plan.crowd, &figures);
  }
  if (!out.empty()) WriteFigures(out, {{"rows", figures.rows()}});
  return figures.all_hold() ? 0 : 1;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  return rknnd::bench::RunMain("remote",
                               [&] { return rknnd::bench::Main(argc, argv); });
}
