// The C API's custom operators. Called by programs, on any of their threads,
// and by their callbacks.

#include <cstdint>
#include <span>

#include "client/include/rknn_custom_op.h"
#include "client/rknnrt/call.h"
#include "client/rknnrt/custom/custom_operators.h"
#include "client/rknnrt/custom/registration.h"

using rknnd::client::Call;
using rknnd::client::CallOn;
using rknnd::client::Context;
using rknnd::client::Outcome;
using rknnd::client::WrongParameter;

extern "C" {

RKNND_API int rknn_register_custom_ops(rknn_context ctx, rknn_custom_op* op,
                                       uint32_t custom_op_num) {
  return CallOn("rknn_register_custom_ops", ctx,
                [&](Context& context) -> Outcome {
                  if (op == nullptr || custom_op_num == 0) {
                    return WrongParameter("op is NULL or custom_op_num is 0");
                  }
                  return rknnd::client::RegisterCustomOperators(
                      context.number(), context, std::span(op, custom_op_num));
                });
}

// Callers test n_elems alone.
RKNND_API void rknn_custom_op_get_op_attr(rknn_custom_op_context* op_ctx,
                                          const char* attr_name,
                                          rknn_custom_op_attr* op_attr) {
  Call("rknn_custom_op_get_op_attr", [&]() -> Outcome {
    if (op_attr == nullptr) return WrongParameter("op_attr is NULL");
    *op_attr = {};
    if (op_ctx == nullptr || attr_name == nullptr) {
      return WrongParameter("op_ctx or attr_name is NULL");
    }
    return rknnd::client::GetOperatorAttribute(*op_ctx, attr_name, op_attr);
  });
}

}  // extern "C"
