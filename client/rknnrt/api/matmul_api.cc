// The matrix-multiplication and custom-operator parts of the API. They are
// there, so that programs load, and say that this version has none of it.

#include "client/include/rknn_custom_op.h"
#include "client/include/rknn_matmul_api.h"
#include "client/rknnrt/call.h"

using rknnd::client::Unsupported;

extern "C" {

RKNND_API int rknn_matmul_create(rknn_matmul_ctx* /*ctx*/,
                                 rknn_matmul_info* /*info*/,
                                 rknn_matmul_io_attr* /*io_attr*/) {
  return Unsupported("rknn_matmul_create");
}

RKNND_API int rknn_matmul_create_dynamic_shape(
    rknn_matmul_ctx* /*ctx*/, rknn_matmul_info* /*info*/, int /*shape_num*/,
    rknn_matmul_shape /*dynamic_shapes*/[],
    rknn_matmul_io_attr /*io_attrs*/[]) {
  return Unsupported("rknn_matmul_create_dynamic_shape");
}

RKNND_API int rknn_matmul_set_io_mem(rknn_matmul_ctx /*ctx*/,
                                     rknn_tensor_mem* /*mem*/,
                                     rknn_matmul_tensor_attr* /*attr*/) {
  return Unsupported("rknn_matmul_set_io_mem");
}

RKNND_API int rknn_matmul_set_core_mask(rknn_matmul_ctx /*context*/,
                                        rknn_core_mask /*core_mask*/) {
  return Unsupported("rknn_matmul_set_core_mask");
}

RKNND_API int rknn_matmul_set_quant_params(rknn_matmul_ctx /*context*/,
                                           rknn_quant_params* /*params*/) {
  return Unsupported("rknn_matmul_set_quant_params");
}

RKNND_API int rknn_matmul_get_quant_params(rknn_matmul_ctx /*ctx*/,
                                           rknn_quant_params* /*params*/,
                                           float* /*scale*/) {
  return Unsupported("rknn_matmul_get_quant_params");
}

RKNND_API int rknn_matmul_set_dynamic_shape(rknn_matmul_ctx /*ctx*/,
                                            rknn_matmul_shape* /*shape*/) {
  return Unsupported("rknn_matmul_set_dynamic_shape");
}

RKNND_API int rknn_matmul_run(rknn_matmul_ctx /*ctx*/) {
  return Unsupported("rknn_matmul_run");
}

RKNND_API int rknn_matmul_destroy(rknn_matmul_ctx /*ctx*/) {
  return Unsupported("rknn_matmul_destroy");
}

RKNND_API int rknn_B_normal_layout_to_native_layout(
    void* /*B_input*/, void* /*B_output*/, int /*K*/, int /*N*/,
    rknn_matmul_info* /*info*/) {
  return Unsupported("rknn_B_normal_layout_to_native_layout");
}

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
