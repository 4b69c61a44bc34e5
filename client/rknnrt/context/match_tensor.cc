#include "client/rknnrt/context/match_tensor.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "client/rknnrt/tensor.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

namespace {

bool SameShape(const TensorAttr& tensor, const rknn_tensor_attr& attr) {
  return attr.n_dims == tensor.dims_count && attr.n_dims <= RKNN_MAX_DIMS &&
         std::equal(attr.dims, attr.dims + attr.n_dims, tensor.dims);
}

// How much of `attr` agrees with one of the descriptions of a tensor. The
// dims decide; the rest settles what they leave open.
int Likeness(const TensorAttr& tensor, const rknn_tensor_attr& attr) {
  return (SameShape(tensor, attr) ? 16 : 0) +
         (tensor.layout == RawNumber(attr.fmt) ? 4 : 0) +
         (tensor.w_stride == attr.w_stride ? 2 : 0) +
         (tensor.type == RawNumber(attr.type) ? 1 : 0);
}

struct Candidate {
  int likeness = -1;
  TensorMatch match;
  bool index_fits = false;  // that of some tensor of the name
};

void Consider(const std::vector<TensorAttr>& tensors, Direction direction,
              const rknn_tensor_attr& attr, Candidate* best) {
  const std::string_view name(attr.name, strnlen(attr.name, sizeof attr.name));
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    if (name != tensors[i].name) continue;
    const int likeness =
        2 * Likeness(tensors[i], attr) + (attr.index == i ? 1 : 0);
    best->index_fits = best->index_fits || attr.index == i;
    if (likeness <= best->likeness) continue;
    best->likeness = likeness;
    best->match = {direction, i};
  }
}

}  // namespace

Expected<TensorMatch> MatchTensor(const ModelDescription& model,
                                  const rknn_tensor_attr& attr) {
  Candidate best;
  Consider(model.inputs, Direction::kInput, attr, &best);
  Consider(model.native_inputs, Direction::kInput, attr, &best);
  Consider(model.native_nhwc_inputs, Direction::kInput, attr, &best);
  Consider(model.outputs, Direction::kOutput, attr, &best);
  Consider(model.native_outputs, Direction::kOutput, attr, &best);
  Consider(model.native_nhwc_outputs, Direction::kOutput, attr, &best);
  if (best.likeness >= 0 && !best.index_fits) {
    return Error{
        Code::kInvalidArgument,
        "index " + std::to_string(attr.index) + " does not go with '" +
            std::string(attr.name, strnlen(attr.name, sizeof attr.name)) +
            "', which is " +
            (best.match.direction == Direction::kInput ? "input " : "output ") +
            std::to_string(best.match.index) +
            ": pass an attribute that rknn_query has filled"};
  }
  if (best.likeness >= 0) return best.match;
  std::string names;
  for (const auto* tensors : {&model.inputs, &model.outputs}) {
    for (const TensorAttr& tensor : *tensors) {
      names += names.empty() ? "'" : ", '";
      names += std::string(tensor.name) + "'";
    }
  }
  return Error{
      Code::kInvalidArgument,
      "the model has no input or output named '" +
          std::string(attr.name, strnlen(attr.name, sizeof attr.name)) +
          "', only " + names +
          ": pass an attribute that rknn_query has filled"};
}

Expected<std::vector<uint32_t>> ResolveOutputs(
    std::span<const rknn_output> outputs, size_t model_outputs) {
  if (outputs.empty() || outputs.size() > model_outputs) {
    return Error{Code::kInvalidArgument,
                 "n_outputs is " + std::to_string(outputs.size()) +
                     ", the model has " + std::to_string(model_outputs)};
  }
  const bool by_position =
      outputs.size() > 1 &&
      std::all_of(outputs.begin(), outputs.end(),
                  [](const rknn_output& output) { return output.index == 0; });
  std::vector<uint32_t> indices(outputs.size());
  std::vector<bool> taken(model_outputs);
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const uint32_t index = by_position ? i : outputs[i].index;
    if (index >= model_outputs) {
      return Error{Code::kOutOfRange,
                   NoSuchTensor("output", index, model_outputs)};
    }
    if (taken[index]) {
      return Error{Code::kInvalidArgument,
                   "output index " + std::to_string(index) +
                       " is asked for twice: set each entry's index"};
    }
    taken[index] = true;
    indices[i] = index;
  }
  return indices;
}

}  // namespace rknnd::client
