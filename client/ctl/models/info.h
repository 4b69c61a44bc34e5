// rknnctl info: what a model file is. Compiled files (.rknn) are read here;
// ONNX files are loaded for their description alone, by the daemon or in this
// process.

#ifndef CLIENT_CTL_MODELS_INFO_H_
#define CLIENT_CTL_MODELS_INFO_H_

#include <span>
#include <string>

#include "base/values/expected.h"
#include "client/ctl/models/onnx_header.h"
#include "client/ctl/reports/report.h"
#include "driver/rknn_file/rknn_file.h"
#include "driver/rknpu/file/program_file.h"
#include "rknnd.h"

namespace rknnd::client {

struct InfoOptions {
  std::string file;
  std::string daemon;    // that says what runs a compiled file; empty: none
  bool program = false;  // what a compiled file tells the NPU to do
  std::string diff;      // and what this one tells it otherwise; empty: none
};
base::Expected<Output> Info(const InfoOptions& options);

// "kernels" and "slow_layers" of a loaded model; nothing of either where the
// device does not say what computes its layers.
Output KernelsOutput(std::span<const rknnd_kernel> kernels);

Output RknnOutput(const std::string& path, uint64_t bytes,
                  const rknn_file::Description& file);

// "tasks": every task of a program, the layer it belongs to and its registers.
Output ProgramOutput(const rknpu::ProgramFile& file);
// "same" and "differences": what two programs have the NPU do otherwise.
Output DifferenceOutput(const rknpu::ProgramFile& first,
                        const rknpu::ProgramFile& second);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_INFO_H_
