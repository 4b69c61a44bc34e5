// See local_runs.h.

#include "bench/remote/local_runs.h"

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/posix/child_process.h"
#include "bench/common/failure.h"
#include "bench/common/measures.h"
#include "bench/remote/networks.h"
#include "bench/remote/rows.h"
#include "client/include/rknnd.h"

namespace rknnd::bench {
namespace {

constexpr base::Nanoseconds kPatience = 120 * base::kSecond;

}  // namespace

LocalContext::LocalContext(std::string model, rknn_tensor_type type) {
  if (rknn_init(&context_, model.data(), static_cast<uint32_t>(model.size()), 0,
                nullptr) != RKNN_SUCC) {
    Fail("rknn_init");
  }
  Bind(RKNN_QUERY_INPUT_ATTR, type);
  Bind(RKNN_QUERY_OUTPUT_ATTR, RKNN_TENSOR_FLOAT32);
}

LocalContext::~LocalContext() {
  for (rknn_tensor_mem* memory : memories_) rknn_destroy_mem(context_, memory);
  rknn_destroy(context_);
}

void LocalContext::Bind(rknn_query_cmd which, rknn_tensor_type type) {
  rknn_tensor_attr attr{};
  if (rknn_query(context_, which, &attr, sizeof attr) != RKNN_SUCC) {
    Fail("rknn_query");
  }
  // Integers of the file's are bound as they are.
  if (attr.type != RKNN_TENSOR_INT32) attr.type = type;
  const uint32_t element = type == RKNN_TENSOR_UINT8 ? 1 : sizeof(float);
  if (which == RKNN_QUERY_INPUT_ATTR) {
    attr.fmt = type == RKNN_TENSOR_UINT8 ? RKNN_TENSOR_NHWC : RKNN_TENSOR_NCHW;
  }
  const uint32_t size = attr.n_elems * element;
  rknn_tensor_mem* const memory = rknn_create_mem(context_, size);
  if (memory == nullptr) Fail("rknn_create_mem");
  memories_.push_back(memory);
  if (rknn_set_io_mem(context_, memory, &attr) != RKNN_SUCC) {
    Fail("rknn_set_io_mem");
  }
}

void LocalContext::Run() {
  if (rknn_run(context_, nullptr) != RKNN_SUCC) Fail("rknn_run");
}

Region LocalContext::RegionOf(size_t memory) const {
  rknnd_buffer_key key{};
  if (rknnd_query_buffer_key(context_, memories_.at(memory), &key,
                             sizeof key) != RKNN_SUCC) {
    Fail("rknnd_query_buffer_key");
  }
  return {key.text, key.offset, key.size};
}

int RunLocal(const RolePlan& plan) {
  LocalContext context(FloatImageModel(), RKNN_TENSOR_FLOAT32);
  context.Run();
  std::puts("ready");
  std::fflush(stdout);
  std::vector<double> run_us;
  for (const double end = SecondsNow() + plan.seconds; SecondsNow() < end;) {
    context.Run();
    rknnd_run_report report{};
    if (rknnd_last_run(context.get(), &report) != RKNN_SUCC) {
      Fail("rknnd_last_run");
    }
    run_us.push_back(static_cast<double>(report.run_ns) * 1e-3);
  }
  const nlohmann::json said = {{"run_us", Percentile(run_us, 0.5)},
                               {"runs", run_us.size()}};
  std::puts(said.dump().c_str());
  std::fflush(stdout);
  return 0;
}

LocalRuns RunLocally(const RemoteBoard& board, double seconds) {
  const client::Launcher launcher;
  base::ChildProcess process =
      launcher.Start({"rknnd-bench-remote", "--role", "local", "--seconds",
                      std::to_string(seconds)},
                     {{"RKNND_TARGET", board.local_target()}});
  launcher.NextLine(process, "a local program", kPatience);
  const double before = CpuSeconds(board.pid());
  const auto said = nlohmann::json::parse(
      launcher.NextLine(process, "a local program", kPatience));
  LocalRuns runs;
  runs.run_us = said.at("run_us").get<double>();
  runs.daemon_cpu_us =
      (CpuSeconds(board.pid()) - before) / said.at("runs").get<double>() * 1e6;
  return runs;
}

}  // namespace rknnd::bench
