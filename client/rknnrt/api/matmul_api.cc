// The C API's matrix products. Called by programs, on any of their threads.

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "client/include/rknn_matmul_api.h"
#include "client/rknnrt/call.h"
#include "client/rknnrt/matmul/matmul.h"
#include "client/rknnrt/tensor.h"

namespace rknnd::client {
namespace {

// Runs body(context, its product).
template <class Body>
int CallOnMatmul(const char* function, rknn_matmul_ctx handle, Body body) {
  return CallOn(function, handle, [&](Context& context) -> Outcome {
    const std::shared_ptr<Matmul> matmul = context.matmul();
    if (matmul == nullptr) {
      return WrongParameter(
          "the context is one of a model: this function takes those of "
          "rknn_matmul_create");
    }
    return body(context, *matmul);
  });
}

Outcome MakeNativeB(const void* from, void* to, int k, int n,
                    const rknn_matmul_info& info) {
  const rknn_matmul_shape shape = {1, k, n};
  base::Expected<matmul::Spec> spec = SpecOf(info, {&shape, 1});
  if (!spec.ok()) return Failure{std::move(spec).error(), Subject::kNone};
  spec->b_layout = matmul::Layout::kNative;
  // Which blocks is the SoC's matter.
  base::Expected<std::shared_ptr<Target>> target = Runtime::Get().target();
  if (!target.ok()) return Failure{std::move(target).error(), Subject::kNone};
  const std::string soc = (*target)->info().soc;
  if (base::Expected<void> checked = matmul::Check(*spec, soc); !checked.ok()) {
    return Failure{std::move(checked).error(), Subject::kNone};
  }
  matmul::MakeNative(
      spec->type, spec->shapes[0], matmul::BlocksOf(spec->type, soc),
      static_cast<const std::byte*>(from), static_cast<std::byte*>(to));
  return {};
}

}  // namespace
}  // namespace rknnd::client

using rknnd::client::Call;
using rknnd::client::CallOn;
using rknnd::client::CallOnMatmul;
using rknnd::client::Context;
using rknnd::client::Failure;
using rknnd::client::Matmul;
using rknnd::client::Outcome;
using rknnd::client::Runtime;
using rknnd::client::Subject;
using rknnd::client::ToOutcome;
using rknnd::client::WrongParameter;

extern "C" {

RKNND_API int rknn_matmul_create(rknn_matmul_ctx* ctx, rknn_matmul_info* info,
                                 rknn_matmul_io_attr* io_attr) {
  return Call("rknn_matmul_create", [&]() -> Outcome {
    if (ctx == nullptr || info == nullptr || io_attr == nullptr) {
      return WrongParameter("ctx, info or io_attr is NULL");
    }
    const rknn_matmul_shape shape = {info->M, info->K, info->N};
    return rknnd::client::CreateMatmul(*info, {&shape, 1}, ctx, {io_attr, 1});
  });
}

RKNND_API int rknn_matmul_create_dynamic_shape(
    rknn_matmul_ctx* ctx, rknn_matmul_info* info, int shape_num,
    rknn_matmul_shape dynamic_shapes[], rknn_matmul_io_attr io_attrs[]) {
  return Call("rknn_matmul_create_dynamic_shape", [&]() -> Outcome {
    if (ctx == nullptr || info == nullptr || dynamic_shapes == nullptr ||
        io_attrs == nullptr) {
      return WrongParameter("ctx, info, dynamic_shapes or io_attrs is NULL");
    }
    if (shape_num < 1) return WrongParameter("shape_num is less than 1");
    const auto count = static_cast<size_t>(shape_num);
    return rknnd::client::CreateMatmul(*info, {dynamic_shapes, count}, ctx,
                                       {io_attrs, count});
  });
}

RKNND_API int rknn_matmul_set_io_mem(rknn_matmul_ctx ctx, rknn_tensor_mem* mem,
                                     rknn_matmul_tensor_attr* attr) {
  return CallOnMatmul(
      "rknn_matmul_set_io_mem", ctx,
      [&](Context& context, Matmul& matmul) -> Outcome {
        if (mem == nullptr || attr == nullptr) {
          return WrongParameter("mem or attr is NULL");
        }
        auto memory = Runtime::Get().FindMemory(mem);
        if (!memory.ok()) {
          return Failure{std::move(memory).error(), Subject::kNone};
        }
        return matmul.Bind(
            context, *(*memory)->buffer,
            {attr->name, strnlen(attr->name, sizeof attr->name)});
      });
}

RKNND_API int rknn_matmul_set_core_mask(rknn_matmul_ctx context,
                                        rknn_core_mask core_mask) {
  return CallOnMatmul(
      "rknn_matmul_set_core_mask", context,
      [&](Context& found, Matmul&) -> Outcome {
        const rknnd::client::TargetInfo info = found.target().info();
        if (info.cores == 1) {
          return Failure{{rknnd::base::Code::kFailedPrecondition,
                          "the " + info.soc + " has one core: none is chosen"},
                         Subject::kContext};
        }
        return found.SetCoreMask(rknnd::client::RawNumber(core_mask));
      });
}

RKNND_API int rknn_matmul_set_quant_params(rknn_matmul_ctx context,
                                           rknn_quant_params* params) {
  return CallOnMatmul("rknn_matmul_set_quant_params", context,
                      [&](Context&, Matmul& matmul) -> Outcome {
                        if (params == nullptr) {
                          return WrongParameter("params is NULL");
                        }
                        return matmul.SetQuantParams(*params);
                      });
}

RKNND_API int rknn_matmul_get_quant_params(rknn_matmul_ctx ctx,
                                           rknn_quant_params* params,
                                           float* scale) {
  return CallOnMatmul("rknn_matmul_get_quant_params", ctx,
                      [&](Context&, Matmul& matmul) -> Outcome {
                        if (params == nullptr || scale == nullptr) {
                          return WrongParameter("params or scale is NULL");
                        }
                        return matmul.GetQuantParams(params, scale);
                      });
}

RKNND_API int rknn_matmul_set_dynamic_shape(rknn_matmul_ctx ctx,
                                            rknn_matmul_shape* shape) {
  return CallOnMatmul(
      "rknn_matmul_set_dynamic_shape", ctx,
      [&](Context& context, Matmul& matmul) -> Outcome {
        if (shape == nullptr) {
          return WrongParameter("shape is NULL");
        }
        return matmul.SetShape(context, {shape->M, shape->K, shape->N});
      });
}

RKNND_API int rknn_matmul_run(rknn_matmul_ctx ctx) {
  return CallOnMatmul(
      "rknn_matmul_run", ctx,
      [](Context& context, Matmul& matmul) { return matmul.Run(context); });
}

RKNND_API int rknn_matmul_destroy(rknn_matmul_ctx ctx) {
  const int checked =
      CallOnMatmul("rknn_matmul_destroy", ctx,
                   [](Context&, Matmul&) -> Outcome { return {}; });
  if (checked != RKNN_SUCC) return checked;
  return Call("rknn_matmul_destroy", [&]() -> Outcome {
    auto removed = Runtime::Get().RemoveContext(ctx);
    if (!removed.ok()) {
      return Failure{std::move(removed).error(), Subject::kContext};
    }
    return ToOutcome((*removed)->Destroy(), Subject::kContext);
  });
}

RKNND_API int rknn_B_normal_layout_to_native_layout(void* B_input,
                                                    void* B_output, int K,
                                                    int N,
                                                    rknn_matmul_info* info) {
  return Call("rknn_B_normal_layout_to_native_layout", [&]() -> Outcome {
    if (B_input == nullptr || B_output == nullptr || info == nullptr) {
      return WrongParameter("B_input, B_output or info is NULL");
    }
    return rknnd::client::MakeNativeB(B_input, B_output, K, N, *info);
  });
}

}  // extern "C"
