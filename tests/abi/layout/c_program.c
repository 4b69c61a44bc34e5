/* A program that knows nothing but the public headers, in C99. Linking it shows
 * that the library has every function; running it, that a context which does
 * not exist is an error and no more. Needs no daemon. */

#include <string.h>

#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"
#include "rknnd.h"

/* A function of any type, to be called through its own type only. */
typedef void (*any_function)(void);

static const any_function all_functions[] = {
    (any_function)rknn_init,
    (any_function)rknn_dup_context,
    (any_function)rknn_destroy,
    (any_function)rknn_query,
    (any_function)rknn_inputs_set,
    (any_function)rknn_set_batch_core_num,
    (any_function)rknn_set_core_mask,
    (any_function)rknn_run,
    (any_function)rknn_wait,
    (any_function)rknn_outputs_get,
    (any_function)rknn_outputs_release,
    (any_function)rknn_create_mem_from_phys,
    (any_function)rknn_create_mem_from_fd,
    (any_function)rknn_create_mem_from_mb_blk,
    (any_function)rknn_create_mem,
    (any_function)rknn_create_mem2,
    (any_function)rknn_destroy_mem,
    (any_function)rknn_set_weight_mem,
    (any_function)rknn_set_internal_mem,
    (any_function)rknn_set_io_mem,
    (any_function)rknn_set_input_shape,
    (any_function)rknn_set_input_shapes,
    (any_function)rknn_mem_sync,
    (any_function)rknn_matmul_create,
    (any_function)rknn_matmul_create_dynamic_shape,
    (any_function)rknn_matmul_set_io_mem,
    (any_function)rknn_matmul_set_core_mask,
    (any_function)rknn_matmul_set_quant_params,
    (any_function)rknn_matmul_get_quant_params,
    (any_function)rknn_matmul_set_dynamic_shape,
    (any_function)rknn_matmul_run,
    (any_function)rknn_matmul_destroy,
    (any_function)rknn_B_normal_layout_to_native_layout,
    (any_function)rknn_register_custom_ops,
    (any_function)rknn_custom_op_get_op_attr,
    (any_function)rknnd_admit,
    (any_function)rknnd_cancel,
    (any_function)rknnd_dispatch,
    (any_function)rknnd_dump,
    (any_function)rknnd_set_progress,
    (any_function)rknnd_last_error,
    (any_function)rknnd_last_run,
    (any_function)rknnd_place_frame,
    (any_function)rknnd_set_input_frame,
    (any_function)rknnd_query_buffer_key,
    (any_function)rknnd_query_copies,
    (any_function)rknnd_query_kernels,
    (any_function)rknnd_query_layers,
    (any_function)rknnd_queue_create,
    (any_function)rknnd_queue_destroy,
    (any_function)rknnd_queue_fd,
    (any_function)rknnd_queue_next,
    (any_function)rknnd_set_io_mem,
    (any_function)rknnd_set_queue_policy,
    (any_function)rknnd_submit,
    (any_function)rknnd_wait,
    (any_function)rknnd_version,
    (any_function)rknnd_version_string,
};

int main(void) {
  rknn_input_output_num number;
  rknnd_copy_counters copies;
  rknnd_run_options options;
  rknnd_completion completion;
  unsigned i;

  for (i = 0; i < sizeof(all_functions) / sizeof(all_functions[0]); ++i) {
    if (all_functions[i] == 0) return 1;
  }
  if (rknn_query(0, RKNN_QUERY_IN_OUT_NUM, &number, sizeof(number)) !=
      RKNN_ERR_CTX_INVALID) {
    return 2;
  }
  if (rknnd_last_error()[0] == '\0') return 3;
  if (rknn_run(12345, 0) != RKNN_ERR_CTX_INVALID) return 4;
  if (rknn_destroy(0) != RKNN_ERR_CTX_INVALID) return 5;
  if (rknnd_query_copies(0, &copies, sizeof(copies)) != RKNN_ERR_CTX_INVALID) {
    return 6;
  }
  if (rknnd_version() < RKNND_VERSION) return 7;
  if (rknnd_version_string()[0] == '\0') return 8;
  if (get_format_string(RKNN_TENSOR_NHWC)[0] != 'N') return 9;
  if (get_matmul_type_string(RKNN_INT8_MM_INT8_TO_INT32)[0] != 'R') return 10;
  memset(&options, 0, sizeof(options));
  options.size = sizeof(options);
  if (rknnd_submit(0, &options, 0) != RKNN_ERR_CTX_INVALID) return 11;
  if (rknnd_wait(0, 0, 0, &completion, sizeof(completion)) !=
      RKNN_ERR_CTX_INVALID) {
    return 12;
  }
  if (rknnd_queue_next(0, &completion, sizeof(completion)) !=
      RKNN_ERR_PARAM_INVALID) {
    return 13;
  }
  if (rknnd_dispatch(12345, 0) != RKNN_ERR_PARAM_INVALID) return 14;
  return 0;
}
