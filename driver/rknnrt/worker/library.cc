#include "driver/rknnrt/worker/library.h"

#include <dlfcn.h>

#include <cstring>

namespace rknnd::rknnrt {
namespace {

using base::Code;
using base::Error;

// Before h_stride was appended.
constexpr uint32_t kOlderAttribute = offsetof(rknn_tensor_attr, h_stride);
static_assert(kOlderAttribute == 372);

struct KnownCode {
  int code;
  const char* name;
  Code ours;
};
constexpr KnownCode kKnownCodes[] = {
    {RKNN_ERR_FAIL, "RKNN_ERR_FAIL", Code::kInternal},
    {RKNN_ERR_TIMEOUT, "RKNN_ERR_TIMEOUT", Code::kDeadlineExceeded},
    {RKNN_ERR_DEVICE_UNAVAILABLE, "RKNN_ERR_DEVICE_UNAVAILABLE",
     Code::kUnavailable},
    {RKNN_ERR_MALLOC_FAIL, "RKNN_ERR_MALLOC_FAIL", Code::kResourceExhausted},
    {RKNN_ERR_PARAM_INVALID, "RKNN_ERR_PARAM_INVALID", Code::kInvalidArgument},
    {RKNN_ERR_MODEL_INVALID, "RKNN_ERR_MODEL_INVALID", Code::kInvalidArgument},
    {RKNN_ERR_CTX_INVALID, "RKNN_ERR_CTX_INVALID", Code::kInternal},
    {RKNN_ERR_INPUT_INVALID, "RKNN_ERR_INPUT_INVALID", Code::kInvalidArgument},
    {RKNN_ERR_OUTPUT_INVALID, "RKNN_ERR_OUTPUT_INVALID",
     Code::kInvalidArgument},
    {RKNN_ERR_DEVICE_UNMATCH, "RKNN_ERR_DEVICE_UNMATCH",
     Code::kFailedPrecondition},
    {RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL,
     "RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL", Code::kInvalidArgument},
    {RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION,
     "RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION", Code::kInvalidArgument},
    {RKNN_ERR_TARGET_PLATFORM_UNMATCH, "RKNN_ERR_TARGET_PLATFORM_UNMATCH",
     Code::kInvalidArgument},
};

template <class Function>
bool Find(void* library, const char* name, Function& function) {
  void* const symbol = dlsym(library, name);
  std::memcpy(&function, &symbol, sizeof symbol);
  return symbol != nullptr;
}

}  // namespace

base::Expected<Library> Library::Open(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is per thread
    const char* const reason = dlerror();
    return Error{Code::kInvalidArgument,
                 reason == nullptr ? "the linker gives no reason" : reason};
  }
  if (dlsym(handle, "rknnd_last_error") != nullptr) {
    return Error{
        Code::kInvalidArgument,
        "it is rknnd's own librknnrt.so, which would ask rknnd for its "
        "answers: name the vendor's"};
  }
  Library library;
  std::string missing;
  const auto need = [&](const char* name, auto& function) {
    if (!Find(handle, name, function)) {
      missing += (missing.empty() ? "" : ", ") + std::string(name);
    }
  };
  need("rknn_init", library.init);
  need("rknn_destroy", library.destroy);
  need("rknn_query", library.query);
  need("rknn_run", library.run);
  need("rknn_create_mem_from_fd", library.create_mem_from_fd);
  need("rknn_destroy_mem", library.destroy_mem);
  need("rknn_set_io_mem", library.set_io_mem);
  if (!missing.empty()) {
    return Error{Code::kInvalidArgument,
                 "it has no function " + missing +
                     ": a librknnrt.so of version 1.4 or later is needed"};
  }
  Find(handle, "rknn_dup_context", library.dup_context);
  Find(handle, "rknn_set_core_mask", library.set_core_mask);
  Find(handle, "rknn_set_internal_mem", library.set_internal_mem);
  Find(handle, "rknn_set_weight_mem", library.set_weight_mem);
  Find(handle, "rknn_set_input_shapes", library.set_input_shapes);
  return library;
}

base::Error Library::Failure(const char* function, int code) {
  std::string text = function + std::string(" of the vendor's library gives ") +
                     std::to_string(code);
  for (const KnownCode& known : kKnownCodes) {
    if (known.code == code) {
      return {known.ours, text + " (" + known.name + ")"};
    }
  }
  return {Code::kInternal, text};
}

int QueryAttribute(const Library& library, rknn_context context,
                   rknn_query_cmd command, uint32_t index,
                   rknn_tensor_attr& attribute) {
  attribute = {};
  attribute.index = index;
  const int code =
      library.query(context, command, &attribute, sizeof attribute);
  if (code != RKNN_ERR_PARAM_INVALID) return code;
  attribute = {};
  attribute.index = index;
  return library.query(context, command, &attribute, kOlderAttribute);
}

}  // namespace rknnd::rknnrt
