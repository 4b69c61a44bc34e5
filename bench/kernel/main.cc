// Calls into the NPU's kernel driver for a frame, by kind: published networks
// through the back end of the kernel, on a driver that a test plays. No time is
// measured; the numbers are the same on every machine.
//
//   rknnd-bench-kernel [--out FILE] [FRAMES]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver/rknpu/file/testing/shared_programs.h"
#include "driver/rknpu/kernel/testing/fake_kernel.h"
#include "driver/testing/kernel_npu.h"

namespace {

using rknnd::driver::testing::KernelNpu;
namespace uapi = rknnd::rknpu::uapi;

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::exit(1);
}

}  // namespace

int main(int count, char** arguments) {
  int frames = 3;
  std::string out;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--out") == 0 && i + 1 < count) {
      out = arguments[++i];
    } else {
      frames = std::max(1, std::atoi(arguments[i]));
    }
  }
  nlohmann::json rows = nlohmann::json::array();
  std::printf("%-28s %8s %8s %8s %10s\n", "calls a frame", "SUBMIT", "MEM_SYNC",
              "others", "resets");
  for (const char* name :
       {"mobilenetv2_rk3588.rknn", "yolov8n_algae_rk3588.rknn",
        "ppocrv4_det_rk3588.rknn"}) {
    const std::vector<std::byte> file = rknnd::rknpu::testing::ReadShared(name);
    if (file.empty()) {
      std::printf("%-28s is not there (set RKNND_SHARED)\n", name);
      continue;
    }
    rknnd::rknpu::testing::FakeKernel kernel;
    rknnd::driver::testing::MemfdsAreDmaBufs calls;
    auto npu = KernelNpu::Open(kernel, &calls);
    Require(npu.status());
    Require((*npu)->Load(file));
    // The first one tells the NPU of commands and memory.
    Require((*npu)->Run(1));
    kernel.TakeCount(uapi::kSubmit);
    kernel.TakeCount(uapi::kMemSync);
    const uint64_t before = kernel.calls();
    for (int i = 0; i < frames; ++i) Require((*npu)->Run(1));
    const double all = static_cast<double>(kernel.calls() - before) / frames;
    const double submits =
        static_cast<double>(kernel.TakeCount(uapi::kSubmit)) / frames;
    const double syncs =
        static_cast<double>(kernel.TakeCount(uapi::kMemSync)) / frames;
    std::printf("%-28s %8.1f %8.1f %8.1f %10llu\n", name, submits, syncs,
                all - submits - syncs,
                static_cast<unsigned long long>(kernel.resets()));
    rows.push_back({{"program", name},
                    {"submits", submits},
                    {"syncs", syncs},
                    {"others", all - submits - syncs}});
  }
  if (out.empty()) return 0;
  std::ofstream file(out);
  file << rows.dump(1) << '\n';
  file.close();
  return file ? 0 : 1;
}
