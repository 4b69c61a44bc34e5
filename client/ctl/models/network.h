// A context of the C API as an object: what `infer` and `bench` run models
// with. Errors carry the library's own words. Goes through librknnrt.so like
// any program, so it works with every target.

#ifndef CLIENT_CTL_MODELS_NETWORK_H_
#define CLIENT_CTL_MODELS_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/ctl/models/tensor_input.h"
#include "client/image/npy.h"
#include "rknn_api.h"
#include "rknnd.h"

namespace rknnd::client {

// One output of a run. Reals (and quantised integers) come as FLOAT32, whole
// numbers as they are.
struct TensorOutput {
  ElementType type = ElementType::kFloat32;
  std::vector<std::byte> bytes;

  [[nodiscard]] std::vector<double> Values() const;
};

// Thread: any, one at a time.
class Network {
 public:
  // Reads no further than the library does: `path` goes to rknn_init as it is.
  // `flags` are rknn_init's.
  static base::Expected<std::unique_ptr<Network>> Load(const std::string& path,
                                                       uint32_t flags = 0);
  // Shares this one's model.
  base::Expected<std::unique_ptr<Network>> Duplicate();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network();

  [[nodiscard]] const std::vector<rknn_tensor_attr>& inputs() const {
    return inputs_;
  }
  [[nodiscard]] const std::vector<rknn_tensor_attr>& outputs() const {
    return outputs_;
  }

  base::Expected<void> SetCoreMask(rknn_core_mask mask);
  // One for each input, in order; stays set.
  base::Expected<void> SetInputs(std::span<const TensorInput> inputs);
  base::Expected<void> Run();
  // Gets the outputs and gives them back: how long the first took.
  base::Expected<uint64_t> TimeOutputs();
  // The last run as the daemon saw it.
  base::Expected<rknnd_run_report> LastRun();
  // Of the last run, on the NPU's core.
  base::Expected<int64_t> RunMicroseconds();
  base::Expected<std::vector<TensorOutput>> GetOutputs();

  // Of the last run, with RKNN_FLAG_COLLECT_PERF_MASK: the table, and its rows,
  // which live until the next call.
  base::Expected<std::string> PerfText();
  base::Expected<std::span<const rknnd_layer>> Layers();
  // What computes each layer, run or not; none: the daemon does not say. They
  // live until the next call.
  base::Expected<std::span<const rknnd_kernel>> Kernels();
  // One more run, with each layer's output in `directory`.
  base::Expected<void> Dump(const std::string& directory);
  // Whether streams of its frames fit beside what others have reserved.
  base::Expected<rknnd_admission> Admit(const rknnd_stream& stream);
  base::Expected<rknn_mem_size> MemorySize();
  base::Expected<std::string> CustomString();
  base::Expected<rknn_sdk_version> Versions();
  // The first input comes from this dma-buf from now on, which gets `input` as
  // it is; the network has no other one. Mapped and bound until the end.
  base::Expected<void> BindInput(int dma_buf, const TensorInput& input);

 private:
  explicit Network(rknn_context context) : context_(context) {}
  base::Expected<void> Describe();
  [[nodiscard]] std::vector<rknn_output> WantedOutputs() const;
  // The shape of INPUT_ATTR, of a model that lists several: the API's number.
  int ChooseLargest();

  rknn_context context_;
  rknn_tensor_mem* bound_ = nullptr;  // BindInput's
  std::vector<rknn_tensor_attr> inputs_;
  std::vector<rknn_tensor_attr> outputs_;
};

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_NETWORK_H_
