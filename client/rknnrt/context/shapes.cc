// Context's part of choosing the shape of its next runs. Called on the
// program's threads; what a program wrote into its attributes may be anything.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/rknnrt/context/context.h"
#include "client/rknnrt/tensor.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

namespace {

bool SameInputShape(const InputShape& a, const InputShape& b) {
  return a.layout == b.layout && std::equal(a.dims, a.dims + a.dims_count,
                                            b.dims, b.dims + b.dims_count);
}

bool SameDims(const TensorAttr& a, const TensorAttr& b) {
  return std::equal(a.dims, a.dims + a.dims_count, b.dims,
                    b.dims + b.dims_count);
}

// One shape for each input, by `index`. Whether the model lists them is the
// daemon's to say.
Expected<std::vector<InputShape>> ShapesOf(
    const ModelDescription& model, std::span<const rknn_tensor_attr> attrs) {
  const size_t count = model.inputs.size();
  if (attrs.size() != count) {
    return Error{Code::kInvalidArgument,
                 "n_inputs is " + std::to_string(attrs.size()) +
                     ", the model has " + std::to_string(count) +
                     ": the shapes of all inputs are chosen at once"};
  }
  std::vector<InputShape> shapes(count);
  std::vector<bool> given(count);
  for (const rknn_tensor_attr& attr : attrs) {
    if (attr.index >= count || given[attr.index]) {
      return Error{
          Code::kInvalidArgument,
          "input index " + std::to_string(attr.index) +
              (attr.index >= count
                   ? " does not exist: the model has " + std::to_string(count)
                   : " is given twice: set each entry's index")};
    }
    const std::string name =
        std::string("input '") + model.inputs[attr.index].name + "': ";
    const uint32_t layout = RawNumber(attr.fmt);
    if (attr.n_dims > RKNN_MAX_DIMS || layout >= RKNN_TENSOR_FORMAT_MAX) {
      return Error{
          Code::kInvalidArgument,
          name + (attr.n_dims > RKNN_MAX_DIMS
                      ? "n_dims is " + std::to_string(attr.n_dims) +
                            ", at most " + std::to_string(RKNN_MAX_DIMS)
                      : "fmt " + std::to_string(layout) + " does not exist")};
    }
    given[attr.index] = true;
    InputShape& shape = shapes[attr.index];
    shape.dims_count = static_cast<pb_size_t>(attr.n_dims);
    std::copy_n(attr.dims, attr.n_dims, shape.dims);
    shape.layout = layout;
  }
  return shapes;
}

}  // namespace

std::shared_ptr<const ModelDescription> Context::Chosen() const {
  const base::MutexLock lock(mutex_);
  return shape_chosen_ ? ports_.shared_shape() : nullptr;
}

Outcome Context::NoShape() const {
  const size_t rows =
      model_->shapes.size() / std::max<size_t>(model_->inputs.size(), 1);
  return Failure{{Code::kFailedPrecondition,
                  "the model lists " + std::to_string(rows) +
                      " shapes and none is chosen: call "
                      "rknn_set_input_shapes first "
                      "(RKNN_QUERY_INPUT_DYNAMIC_RANGE lists them)"},
                 Subject::kInput};
}

Outcome Context::SetShapes(std::span<const rknn_tensor_attr> attrs) {
  Expected<std::vector<InputShape>> shapes = ShapesOf(*model_, attrs);
  if (!shapes.ok()) return Failure{std::move(shapes).error(), Subject::kInput};
  // Their memory is of the shape before.
  AwaitRuns();
  const base::MutexLock lock(mutex_);
  // Programs say so before each frame.
  if (std::equal(shapes->begin(), shapes->end(), asked_.begin(), asked_.end(),
                 SameInputShape)) {
    return {};
  }
  Expected<std::shared_ptr<const ModelDescription>> chosen =
      target_->SetShapes(number_, *shapes);
  if (!chosen.ok()) return Failure{std::move(chosen).error(), Subject::kInput};
  const bool same =
      shape_chosen_ &&
      std::equal(ports_.shape().inputs.begin(), ports_.shape().inputs.end(),
                 (*chosen)->inputs.begin(), (*chosen)->inputs.end(), SameDims);
  asked_ = *std::move(shapes);
  shape_chosen_ = true;
  if (same) return {};
  ports_.SetShape(*std::move(chosen));
  own_.ForgetInputs();
  record_.ForgetOutputs();
  runnable_ = false;
  return {};
}

}  // namespace rknnd::client
