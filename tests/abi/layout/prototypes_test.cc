// Every function of the public headers has the type that programs were compiled
// with. A failure is a failure to compile.

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"
#include "rknnd.h"

namespace {

template <class Expected, class Actual>
constexpr bool Is(Actual* /*function*/) {
  return std::is_same_v<Expected, Actual>;
}

static_assert(Is<int(rknn_context*, void*, uint32_t, uint32_t,
                     rknn_init_extend*)>(rknn_init));
static_assert(Is<int(rknn_context*, rknn_context*)>(rknn_dup_context));
static_assert(Is<int(rknn_context)>(rknn_destroy));
static_assert(
    Is<int(rknn_context, rknn_query_cmd, void*, uint32_t)>(rknn_query));
static_assert(Is<int(rknn_context, uint32_t, rknn_input*)>(rknn_inputs_set));
static_assert(Is<int(rknn_context, int)>(rknn_set_batch_core_num));
static_assert(Is<int(rknn_context, rknn_core_mask)>(rknn_set_core_mask));
static_assert(Is<int(rknn_context, rknn_run_extend*)>(rknn_run));
static_assert(Is<int(rknn_context, rknn_run_extend*)>(rknn_wait));
static_assert(Is<int(rknn_context, uint32_t, rknn_output*,
                     rknn_output_extend*)>(rknn_outputs_get));
static_assert(
    Is<int(rknn_context, uint32_t, rknn_output*)>(rknn_outputs_release));
static_assert(Is<rknn_tensor_mem*(rknn_context, uint64_t, void*, uint32_t)>(
    rknn_create_mem_from_phys));
static_assert(Is<rknn_tensor_mem*(rknn_context, int32_t, void*, uint32_t,
                                  int32_t)>(rknn_create_mem_from_fd));
static_assert(Is<rknn_tensor_mem*(rknn_context, void*, int32_t)>(
    rknn_create_mem_from_mb_blk));
static_assert(Is<rknn_tensor_mem*(rknn_context, uint32_t)>(rknn_create_mem));
static_assert(
    Is<rknn_tensor_mem*(rknn_context, uint64_t, uint64_t)>(rknn_create_mem2));
static_assert(Is<int(rknn_context, rknn_tensor_mem*)>(rknn_destroy_mem));
static_assert(Is<int(rknn_context, rknn_tensor_mem*)>(rknn_set_weight_mem));
static_assert(Is<int(rknn_context, rknn_tensor_mem*)>(rknn_set_internal_mem));
static_assert(Is<int(rknn_context, rknn_tensor_mem*, rknn_tensor_attr*)>(
    rknn_set_io_mem));
static_assert(Is<int(rknn_context, rknn_tensor_attr*)>(rknn_set_input_shape));
static_assert(
    Is<int(rknn_context, uint32_t, rknn_tensor_attr*)>(rknn_set_input_shapes));
static_assert(
    Is<int(rknn_context, rknn_tensor_mem*, rknn_mem_sync_mode)>(rknn_mem_sync));
static_assert(Is<int(rknn_matmul_ctx*, rknn_matmul_info*,
                     rknn_matmul_io_attr*)>(rknn_matmul_create));
static_assert(
    Is<int(rknn_matmul_ctx*, rknn_matmul_info*, int, rknn_matmul_shape*,
           rknn_matmul_io_attr*)>(rknn_matmul_create_dynamic_shape));
static_assert(Is<int(rknn_matmul_ctx, rknn_tensor_mem*,
                     rknn_matmul_tensor_attr*)>(rknn_matmul_set_io_mem));
static_assert(
    Is<int(rknn_matmul_ctx, rknn_core_mask)>(rknn_matmul_set_core_mask));
static_assert(
    Is<int(rknn_matmul_ctx, rknn_quant_params*)>(rknn_matmul_set_quant_params));
static_assert(Is<int(rknn_matmul_ctx, rknn_quant_params*, float*)>(
    rknn_matmul_get_quant_params));
static_assert(Is<int(rknn_matmul_ctx, rknn_matmul_shape*)>(
    rknn_matmul_set_dynamic_shape));
static_assert(Is<int(rknn_matmul_ctx)>(rknn_matmul_run));
static_assert(Is<int(rknn_matmul_ctx)>(rknn_matmul_destroy));
static_assert(Is<int(void*, void*, int, int, rknn_matmul_info*)>(
    rknn_B_normal_layout_to_native_layout));
static_assert(
    Is<int(rknn_context, rknn_custom_op*, uint32_t)>(rknn_register_custom_ops));
static_assert(Is<void(rknn_custom_op_context*, const char*,
                      rknn_custom_op_attr*)>(rknn_custom_op_get_op_attr));

static_assert(Is<uint32_t()>(rknnd_version));
static_assert(Is<const char*()>(rknnd_version_string));
static_assert(Is<const char*()>(rknnd_last_error));
static_assert(
    Is<int(rknn_context, rknnd_copy_counters*, uint32_t)>(rknnd_query_copies));
static_assert(Is<int(rknn_context, rknn_tensor_mem*, rknnd_buffer_key*,
                     uint32_t)>(rknnd_query_buffer_key));
static_assert(Is<int(rknn_context, rknnd_run_report*)>(rknnd_last_run));
static_assert(
    Is<int(rknn_context, const rknnd_layer**, uint32_t*)>(rknnd_query_layers));
static_assert(Is<int(rknn_context, const rknnd_kernel**, uint32_t*)>(
    rknnd_query_kernels));
static_assert(Is<int(rknn_context, const char*)>(rknnd_dump));
static_assert(Is<int(rknnd_progress, void*)>(rknnd_set_progress));
static_assert(
    Is<int(rknn_context, uint32_t, const rknnd_frame*)>(rknnd_set_input_frame));
static_assert(Is<int(rknn_context, uint32_t, const rknnd_frame*,
                     rknnd_placement*, uint32_t)>(rknnd_place_frame));

static_assert(Is<int(rknn_context, uint32_t, rknn_tensor_mem*,
                     rknn_tensor_attr*)>(rknnd_set_io_mem));
static_assert(
    Is<int(rknn_context, const rknnd_run_options*, uint64_t*)>(rknnd_submit));
static_assert(Is<int(rknn_context, uint64_t, int32_t, rknnd_completion*,
                     uint32_t)>(rknnd_wait));
static_assert(Is<int(rknn_context, uint64_t, uint32_t*)>(rknnd_cancel));
static_assert(Is<int(rknnd_queue*)>(rknnd_queue_create));
static_assert(Is<int(rknnd_queue)>(rknnd_queue_fd));
static_assert(
    Is<int(rknnd_queue, rknnd_completion*, uint32_t)>(rknnd_queue_next));
static_assert(Is<int(rknnd_queue, uint32_t*)>(rknnd_dispatch));
static_assert(Is<int(rknnd_queue)>(rknnd_queue_destroy));
static_assert(
    Is<int(rknn_context, const rknnd_queue_policy*)>(rknnd_set_queue_policy));

// Our own structs, as programs of this version are compiled: longer ones may
// follow, with these fields at these places.
static_assert(std::is_same_v<rknnd_queue, uint64_t>);
static_assert(sizeof(rknnd_buffer_key) == 88 &&
              offsetof(rknnd_buffer_key, offset) == 40 &&
              offsetof(rknnd_buffer_key, size) == 48);
static_assert(sizeof(void*) != 8 ||
              (sizeof(rknnd_run_options) == 136 &&
               offsetof(rknnd_run_options, flags) == 4 &&
               offsetof(rknnd_run_options, frame_id) == 8 &&
               offsetof(rknnd_run_options, deadline_ns) == 16 &&
               offsetof(rknnd_run_options, timeout_ms) == 24 &&
               offsetof(rknnd_run_options, set) == 28 &&
               offsetof(rknnd_run_options, fence_in) == 32 &&
               offsetof(rknnd_run_options, use_fence_in) == 36 &&
               offsetof(rknnd_run_options, fence_out) == 40 &&
               offsetof(rknnd_run_options, queue) == 48 &&
               offsetof(rknnd_run_options, callback) == 56 &&
               offsetof(rknnd_run_options, user) == 64 &&
               offsetof(rknnd_run_options, reserved) == 72));
static_assert(sizeof(void*) != 8 ||
              (sizeof(rknnd_completion) == 128 &&
               offsetof(rknnd_completion, frame_id) == 8 &&
               offsetof(rknnd_completion, user) == 16 &&
               offsetof(rknnd_completion, code) == 24 &&
               offsetof(rknnd_completion, core) == 28 &&
               offsetof(rknnd_completion, queue_ns) == 32 &&
               offsetof(rknnd_completion, run_ns) == 40 &&
               offsetof(rknnd_completion, total_ns) == 48 &&
               offsetof(rknnd_completion, drops) == 56 &&
               offsetof(rknnd_completion, set) == 60 &&
               offsetof(rknnd_completion, reserved) == 64));
static_assert(sizeof(rknnd_queue_policy) == 48 &&
              offsetof(rknnd_queue_policy, policy) == 4 &&
              offsetof(rknnd_queue_policy, depth) == 8 &&
              offsetof(rknnd_queue_policy, max_age_ms) == 12 &&
              offsetof(rknnd_queue_policy, reserved) == 16);

static_assert(std::is_same_v<rknn_matmul_ctx, rknn_context>);
static_assert(std::is_same_v<get_custom_op_func, rknn_custom_op* (*)()>);
static_assert(
    std::is_same_v<decltype(rknn_input_range::dyn_range), uint32_t[512][16]>);

TEST(PrototypesTest, AllAreAsProgramsWereCompiledWith) {
  SUCCEED() << "checked when this file was compiled";
}

}  // namespace
