#include "bench/hotpath/isolation.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/posix/clock.h"
#include "bench/common/model_files.h"
#include "bench/hotpath/samples.h"
#include "client/include/rknnd.hpp"
#include "client/launch/launcher.h"

namespace rknnd::bench {

std::string IsolationModel() { return FindSharedModel("yolox_nano"); }

nlohmann::json MeasureIsolation(const std::string& model, bool isolate,
                                int runs) {
  const base::TemporaryFolder folder = client::MakeTemporaryFolder();
  const std::string config = folder.path() + "/rknnd.toml";
  std::ofstream(config) << "[memory]\nisolate = \""
                        << (isolate ? "strict" : "off") << "\"\n";
  const client::Launcher launcher;
  const client::PrivateDaemon daemon(launcher, -1, {"--config", config});
  setenv("RKNND_TARGET", daemon.target().c_str(), 1);
  Context context = Context::FromFile(model);
  context.SetCoreMask(RKNN_NPU_CORE_0);
  std::vector<Memory> memories;
  for (uint32_t i = 0; i < context.inputs().size(); ++i) {
    memories.push_back(context.AllocateInput(i));
    context.BindInput(i, memories.back());
  }
  for (uint32_t i = 0; i < context.outputs().size(); ++i) {
    memories.push_back(context.AllocateOutput(i));
    context.BindOutput(i, memories.back());
  }
  const base::MonotonicClock clock;
  Samples frame, core, wait;
  for (int i = 0; i < 3; ++i) context.Run();
  for (int i = 0; i < runs; ++i) {
    const base::Nanoseconds start = clock.Now();
    context.Run();
    frame.Add(clock.Now() - start);
    const rknnd_run_report report = context.LastRun();
    core.Add(static_cast<int64_t>(report.run_ns));
    wait.Add(static_cast<int64_t>(report.queue_ns));
  }
  return {{"isolate", isolate ? "strict" : "off"},
          {"internal_bytes", context.ModelMemory().total_internal_size},
          {"frame_us", frame.Percentile(0.5)},
          {"core_us", core.Percentile(0.5)},
          {"wait_us", wait.Percentile(0.5)}};
}

}  // namespace rknnd::bench
