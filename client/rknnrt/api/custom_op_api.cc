// The custom-operator part of the API. It is there, so that programs load, and
// says that this version has none of it.

#include "client/include/rknn_custom_op.h"
#include "client/rknnrt/call.h"

using rknnd::client::Unsupported;

extern "C" {

RKNND_API int rknn_register_custom_ops(rknn_context /*ctx*/,
                                       rknn_custom_op* /*op*/,
                                       uint32_t /*custom_op_num*/) {
  return Unsupported("rknn_register_custom_ops");
}

// Callers test n_elems alone.
RKNND_API void rknn_custom_op_get_op_attr(rknn_custom_op_context* /*op_ctx*/,
                                          const char* /*attr_name*/,
                                          rknn_custom_op_attr* op_attr) {
  if (op_attr != nullptr) {
    op_attr->n_elems = 0;
    op_attr->data = nullptr;
  }
  Unsupported("rknn_custom_op_get_op_attr");
}

}  // extern "C"
