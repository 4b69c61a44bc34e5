// See rknnd_runner.h.

#include "bench/peers/rknnd_runner.h"

#include <chrono>

#include "client/image/file.h"

namespace rknnd::bench {
namespace {

rknn_tensor_type TypeOf(const std::string& name) {
  if (name == "float32") return RKNN_TENSOR_FLOAT32;
  if (name == "float16") return RKNN_TENSOR_FLOAT16;
  if (name == "int32") return RKNN_TENSOR_INT32;
  if (name == "int64") return RKNN_TENSOR_INT64;
  if (name == "uint8") return RKNN_TENSOR_UINT8;
  if (name == "int8") return RKNN_TENSOR_INT8;
  throw Error(RKNN_ERR_INPUT_INVALID, "inputs of type '" + name + "'");
}

}  // namespace

RknndRunner::RknndRunner(const ModelSet& model)
    : context_(Context::FromFile(model.file)) {
  context_.SetCoreMask(RKNN_NPU_CORE_0);
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    auto bytes = client::ReadFile(model.inputs[i].file);
    if (!bytes) throw Error(RKNN_ERR_INPUT_INVALID, bytes.error().message);
    bytes_.push_back(*std::move(bytes));
    rknn_input input = {};
    input.index = static_cast<uint32_t>(i);
    input.buf = bytes_.back().data();
    input.size = static_cast<uint32_t>(bytes_.back().size());
    input.type = TypeOf(model.inputs[i].type);
    // The model's own axis order.
    input.fmt = model.inputs[i].shape.size() == 4 ? RKNN_TENSOR_NCHW
                                                  : RKNN_TENSOR_UNDEFINED;
    inputs_.push_back(input);
  }
  for (size_t i = 0; i < context_.outputs().size(); ++i) {
    floats_.emplace_back(context_.outputs()[i].elements());
    rknn_output output = {};
    output.want_float = 1;
    output.is_prealloc = 1;
    output.index = static_cast<uint32_t>(i);
    output.buf = floats_.back().data();
    output.size = static_cast<uint32_t>(floats_.back().size() * sizeof(float));
    outputs_.push_back(output);
  }
}

void RknndRunner::RunOnce() {
  detail::Check(rknn_inputs_set(context_.handle(),
                                static_cast<uint32_t>(inputs_.size()),
                                inputs_.data()));
  detail::Check(rknn_run(context_.handle(), nullptr));
  detail::Check(rknn_outputs_get(context_.handle(),
                                 static_cast<uint32_t>(outputs_.size()),
                                 outputs_.data(), nullptr));
}

std::vector<double> RknndRunner::Run(int count) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    RunOnce();
    times.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - begin)
            .count());
  }
  return times;
}

}  // namespace rknnd::bench
