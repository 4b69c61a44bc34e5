// The C API's functions for the shape of a context's next runs, and for the
// cores of a batch. Called on the program's threads.

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "client/rknnrt/call.h"
#include "client/rknnrt/context/context.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// The cores of rknn_set_batch_core_num as a core mask.
Expected<uint32_t> BatchCores(const Context& context, int core_num) {
  const TargetInfo info = context.target().info();
  if (info.cores <= 1) {
    return Error{Code::kFailedPrecondition,
                 info.soc + " has one core: a batch cannot be spread"};
  }
  if (context.model().batch <= 1) {
    return Error{Code::kFailedPrecondition,
                 "the model has no batch to spread: option rknn_batch_size of "
                 "a model makes one"};
  }
  if (core_num < 1 || static_cast<uint32_t>(core_num) > info.cores) {
    return Error{Code::kInvalidArgument,
                 "core_num is " + std::to_string(core_num) + ", " + info.soc +
                     " has " + std::to_string(info.cores) + " cores"};
  }
  if (core_num == 1) return uint32_t{RKNN_NPU_CORE_AUTO};
  return (uint32_t{1} << core_num) - 1;
}

}  // namespace
}  // namespace rknnd::client

using rknnd::client::CallOn;
using rknnd::client::Context;
using rknnd::client::Failure;
using rknnd::client::Outcome;
using rknnd::client::Subject;
using rknnd::client::ToOutcome;
using rknnd::client::WrongParameter;

extern "C" {

RKNND_API int rknn_set_input_shapes(rknn_context context, uint32_t n_inputs,
                                    rknn_tensor_attr attr[]) {
  return CallOn("rknn_set_input_shapes", context,
                [&](Context& found) -> Outcome {
                  if (attr == nullptr) return WrongParameter("attr is NULL");
                  return found.SetShapes(std::span(attr, n_inputs));
                });
}

RKNND_API int rknn_set_input_shape(rknn_context context,
                                   rknn_tensor_attr* attr) {
  return CallOn(
      "rknn_set_input_shape", context, [&](Context& found) -> Outcome {
        if (attr == nullptr) return WrongParameter("attr is NULL");
        if (found.model().inputs.size() != 1) {
          return Failure{
              {rknnd::base::Code::kInvalidArgument,
               "the model has " + std::to_string(found.model().inputs.size()) +
                   " inputs, whose shapes are chosen at once: use "
                   "rknn_set_input_shapes"},
              Subject::kInput};
        }
        return found.SetShapes(std::span(attr, 1));
      });
}

RKNND_API int rknn_set_batch_core_num(rknn_context context, int core_num) {
  return CallOn(
      "rknn_set_batch_core_num", context, [&](Context& found) -> Outcome {
        auto mask = rknnd::client::BatchCores(found, core_num);
        if (!mask.ok()) {
          return Failure{std::move(mask).error(), Subject::kContext};
        }
        return ToOutcome(found.target().SetCoreMask(found.number(), *mask),
                         Subject::kContext);
      });
}

}  // extern "C"
