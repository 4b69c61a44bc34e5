#include "client/rknnrt/custom/opencl.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/posix/unique_fd.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr char kLibrary[] = "libOpenCL.so.1";
constexpr uint64_t kMostSource = uint64_t{64} << 20;

// What is used of Khronos's OpenCL 1.2, whose objects are pointers.
constexpr int32_t kSuccess = 0;
constexpr uint64_t kDeviceGpu = 1U << 2, kDeviceAll = 0xffffffff;
constexpr uint32_t kBuildLog = 0x1183;
struct Functions {
  int32_t (*clGetPlatformIDs)(uint32_t, void**, uint32_t*);
  int32_t (*clGetDeviceIDs)(void*, uint64_t, uint32_t, void**, uint32_t*);
  void* (*clCreateContext)(const intptr_t*, uint32_t, void* const*,
                           void (*)(const char*, const void*, size_t, void*),
                           void*, int32_t*);
  void* (*clCreateCommandQueue)(void*, void*, uint64_t, int32_t*);
  void* (*clCreateProgramWithSource)(void*, uint32_t, const char**,
                                     const size_t*, int32_t*);
  int32_t (*clBuildProgram)(void*, uint32_t, void* const*, const char*,
                            void (*)(void*, void*), void*);
  int32_t (*clGetProgramBuildInfo)(void*, void*, uint32_t, size_t, void*,
                                   size_t*);
  void* (*clCreateKernel)(void*, const char*, int32_t*);
  int32_t (*clReleaseKernel)(void*);
  int32_t (*clReleaseProgram)(void*);
};

// Of the process; stays until its end.
struct OpenCl {
  Functions call = {};
  void* device = nullptr;
  void* context = nullptr;
  void* queue = nullptr;
};

Error NoOpenCl(const std::string& why) {
  return {Code::kUnimplemented,
          "RKNN_TARGET_TYPE_GPU needs OpenCL, which is not here (" + why +
              "): install the GPU's OpenCL driver, or register a CPU operator"};
}

template <class Function>
bool Find(void* library, const char* name, Function* function) {
  void* const symbol = dlsym(library, name);
  std::memcpy(function, &symbol, sizeof symbol);
  return symbol != nullptr;
}

Expected<Functions> LoadFunctions() {
  // Never unloaded: drivers of GPUs have threads of their own.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is per thread
    const char* const error = dlerror();
    return NoOpenCl(error == nullptr ? kLibrary : error);
  }
  Functions call = {};
#define RKNND_FIND(name) Find(library, #name, &call.name)
  if (!(RKNND_FIND(clGetPlatformIDs) && RKNND_FIND(clGetDeviceIDs) &&
        RKNND_FIND(clCreateContext) && RKNND_FIND(clCreateCommandQueue) &&
        RKNND_FIND(clCreateProgramWithSource) && RKNND_FIND(clBuildProgram) &&
        RKNND_FIND(clGetProgramBuildInfo) && RKNND_FIND(clCreateKernel) &&
        RKNND_FIND(clReleaseKernel) && RKNND_FIND(clReleaseProgram))) {
    return NoOpenCl(std::string(kLibrary) + " lacks functions of OpenCL 1.2");
  }
#undef RKNND_FIND
  return call;
}

// The first GPU of all platforms, or else the first device of any kind.
void* FindDevice(const Functions& call) {
  std::array<void*, 16> platforms = {};
  uint32_t count = 0;
  if (call.clGetPlatformIDs(platforms.size(), platforms.data(), &count) !=
      kSuccess) {
    return nullptr;
  }
  count = std::min<uint32_t>(count, platforms.size());
  for (const uint64_t kind : {kDeviceGpu, kDeviceAll}) {
    for (uint32_t i = 0; i < count; ++i) {
      void* device = nullptr;
      uint32_t devices = 0;
      if (call.clGetDeviceIDs(platforms[i], kind, 1, &device, &devices) ==
              kSuccess &&
          devices > 0) {
        return device;
      }
    }
  }
  return nullptr;
}

Expected<OpenCl> OpenTheRuntime() {
  Expected<Functions> functions = LoadFunctions();
  if (!functions.ok()) return std::move(functions).error();
  OpenCl runtime;
  runtime.call = *functions;
  runtime.device = FindDevice(runtime.call);
  if (runtime.device == nullptr) {
    return NoOpenCl("no platform of it has a device");
  }
  int32_t code = kSuccess;
  runtime.context = runtime.call.clCreateContext(nullptr, 1, &runtime.device,
                                                 nullptr, nullptr, &code);
  if (runtime.context == nullptr) {
    return NoOpenCl("clCreateContext gives " + std::to_string(code));
  }
  runtime.queue = runtime.call.clCreateCommandQueue(runtime.context,
                                                    runtime.device, 0, &code);
  if (runtime.queue == nullptr) {
    return NoOpenCl("clCreateCommandQueue gives " + std::to_string(code));
  }
  return runtime;
}

const Expected<OpenCl>& TheOpenCl() {
  static const auto* const runtime = new Expected<OpenCl>(OpenTheRuntime());
  return *runtime;
}

// "" where it does not end.
template <size_t kSize>
std::string_view TextOf(const char (&text)[kSize]) {
  const size_t size = strnlen(text, kSize);
  return size == kSize ? std::string_view() : std::string_view(text, size);
}

Expected<std::string> ReadSource(const char* path) {
  const base::UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (!file.valid() || fstat(file.get(), &status) != 0) {
    return base::ErrnoError(
        errno, "open cl_kernel_source '" + std::string(path) + "'");
  }
  if (!S_ISREG(status.st_mode) || status.st_size <= 0 ||
      static_cast<uint64_t>(status.st_size) > kMostSource) {
    return Error{
        Code::kInvalidArgument,
        "cl_kernel_source '" + std::string(path) + "' is no file of text"};
  }
  std::string text(static_cast<size_t>(status.st_size), '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), 0);
  if (got < 0) {
    return base::ErrnoError(
        errno, "read cl_kernel_source '" + std::string(path) + "'");
  }
  text.resize(static_cast<size_t>(got));
  return text;
}

Expected<std::string> SourceOf(const rknn_custom_op& op) {
  if (op.cl_kernel_source == nullptr) {
    return Error{Code::kInvalidArgument,
                 "cl_kernel_source is NULL: give the kernel's text, or a path "
                 "and cl_source_size 0"};
  }
  if (op.cl_source_size > kMostSource) {
    return Error{Code::kInvalidArgument, "cl_source_size is " +
                                             std::to_string(op.cl_source_size) +
                                             ", more than any text has"};
  }
  if (op.cl_source_size > 0) {
    return std::string(op.cl_kernel_source, op.cl_source_size);
  }
  if (op.cl_kernel_source[0] != '/') {
    return Error{Code::kInvalidArgument,
                 "cl_source_size is 0, and cl_kernel_source '" +
                     std::string(op.cl_kernel_source) +
                     "' is not an absolute path"};
  }
  return ReadSource(op.cl_kernel_source);
}

std::string BuildLog(const OpenCl& runtime, void* program) {
  size_t size = 0;
  runtime.call.clGetProgramBuildInfo(program, runtime.device, kBuildLog, 0,
                                     nullptr, &size);
  std::string log(std::min<size_t>(size, 4096), '\0');
  if (size == 0 || size > log.size() ||
      runtime.call.clGetProgramBuildInfo(program, runtime.device, kBuildLog,
                                         log.size(), log.data(),
                                         nullptr) != kSuccess) {
    return "";
  }
  return log.c_str();
}

}  // namespace

Expected<void> GpuKernel::Check() {
  const Expected<OpenCl>& opened = TheOpenCl();
  if (!opened.ok()) return opened.error();
  return {};
}

Expected<std::unique_ptr<GpuKernel>> GpuKernel::Build(
    const rknn_custom_op& op) {
  const Expected<OpenCl>& opened = TheOpenCl();
  if (!opened.ok()) return opened.error();
  const OpenCl& runtime = *opened;
  Expected<std::string> source = SourceOf(op);
  if (!source.ok()) return std::move(source).error();
  const std::string name(TextOf(op.cl_kernel_name));
  if (name.empty()) {
    return Error{Code::kInvalidArgument,
                 "cl_kernel_name is empty, or does not end"};
  }
  const std::string options(TextOf(op.cl_build_options));
  if (options.empty() && op.cl_build_options[0] != '\0') {
    return Error{Code::kInvalidArgument, "cl_build_options does not end"};
  }
  std::unique_ptr<GpuKernel> kernel(new GpuKernel);
  const char* const text = source->data();
  const size_t size = source->size();
  int32_t code = kSuccess;
  kernel->program_ = runtime.call.clCreateProgramWithSource(
      runtime.context, 1, const_cast<const char**>(&text), &size, &code);
  if (kernel->program_ == nullptr) {
    return Error{Code::kInvalidArgument,
                 "clCreateProgramWithSource gives " + std::to_string(code)};
  }
  code = runtime.call.clBuildProgram(kernel->program_, 1, &runtime.device,
                                     options.c_str(), nullptr, nullptr);
  if (code != kSuccess) {
    return Error{Code::kInvalidArgument,
                 "OpenCL refuses cl_kernel_source (clBuildProgram gives " +
                     std::to_string(code) +
                     "): " + BuildLog(runtime, kernel->program_)};
  }
  void* const made =
      runtime.call.clCreateKernel(kernel->program_, name.c_str(), &code);
  if (made == nullptr) {
    return Error{Code::kInvalidArgument, "cl_kernel_source has no kernel '" +
                                             name + "' (clCreateKernel gives " +
                                             std::to_string(code) + ")"};
  }
  kernel->handles_ = {runtime.context, runtime.queue, made};
  return kernel;
}

GpuKernel::~GpuKernel() {
  const Expected<OpenCl>& runtime = TheOpenCl();
  if (!runtime.ok()) return;
  if (handles_.cl_kernel != nullptr) {
    runtime->call.clReleaseKernel(handles_.cl_kernel);
  }
  if (program_ != nullptr) runtime->call.clReleaseProgram(program_);
}

}  // namespace rknnd::client
