// Published .rknn files and vectors, where $RKNND_SHARED (or the folder beside
// the tree) has them: tests that need one are skipped without it.

#ifndef DRIVER_RKNPU_FILE_TESTING_SHARED_PROGRAMS_H_
#define DRIVER_RKNPU_FILE_TESTING_SHARED_PROGRAMS_H_

#include <cstddef>
#include <string>
#include <vector>

namespace rknnd::rknpu::testing {

// The file `name` below rknn/; empty: it is not there.
std::vector<std::byte> ReadShared(const std::string& name);

// The published files of container 6 for RK3588.
inline constexpr const char* kRk3588Programs[] = {
    "multiple_input_demo_v6_rk3588.rknn", "dual_residual_rk3588.rknn",
    "conv_fp16_c32_rk3588.rknn",          "mobilenetv2_rk3588.rknn",
    "yolov8n_algae_rk3588.rknn",          "ppocrv4_det_rk3588.rknn"};

}  // namespace rknnd::rknpu::testing

#endif  // DRIVER_RKNPU_FILE_TESTING_SHARED_PROGRAMS_H_
