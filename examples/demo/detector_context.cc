// See detector_context.h.

#include "examples/demo/detector_context.h"

#include <utility>

#include "examples/demo/tensor_values.h"

namespace rknnd::demo {
namespace {

// Normalised and quantised already: nothing is left to do in front of the
// first layer.
Tensor NativeInput(const Context& context, uint32_t index) {
  return context.native_input(index).PassedThrough();
}

}  // namespace

DetectorContext::DetectorContext(Context context)
    : context_(std::move(context)), input_(NativeInput(context_, 0)) {
  for (uint32_t i = 0; i < context_.inputs().size(); ++i) {
    const Tensor input = NativeInput(context_, i);
    inputs_.push_back(context_.Allocate(input));
    context_.Bind(input, inputs_.back());
  }
  for (uint32_t i = 0; i < context_.outputs().size(); ++i) {
    native_outputs_.push_back(context_.native_output(i));
    outputs_.push_back(context_.Allocate(native_outputs_.back()));
    context_.Bind(native_outputs_.back(), outputs_.back());
  }
}

std::vector<std::vector<float>> DetectorContext::Answer() const {
  std::vector<std::vector<float>> answer;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    answer.push_back(
        Values(native_outputs_[i], context_.outputs()[i], outputs_[i].data()));
  }
  return answer;
}

uint64_t DetectorContext::CopiedBytes() const {
  const rknnd_copy_counters copies = context_.Copies();
  return copies.to_device_inputs_set + copies.to_device_conversion +
         copies.from_device_outputs_get + copies.from_device_conversion;
}

}  // namespace rknnd::demo
