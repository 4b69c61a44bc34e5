// A stand-in for the vendor's librknnrt.so, of which no copy is here: its
// functions, as each version exports them (exports_*.map), with real answers by
// rknnd's own librknnrt.so with the target local:, and whatever goes wrong with
// the vendor's on demand.
//
// RKNND_STANDIN names what goes wrong, as "name=number" with commas between:
//
//   crash_init, crash_destroy, crash_exit, hang_init   =1
//   crash_run, crash_answer, hang_run, wrong   =N: at the N-th run of this
//   process;
//                                              crash_answer after it has
//                                              computed
//   random=N         at a random run up to the N-th, one of the four before
//   slow_init=MS     error_init=CODE, error_run=CODE: without the sign
//   leak_fd, leak_memory, use_freed, socket, file   =1: at each run
//   bomb=1           rknn_init takes memory until there is none
//   noise=LINES      to stdout, at each run
//   nice, thread     =1: in rknn_init
//   instant=1        rknn_run does nothing
//   older=1          rknn_tensor_attr of 372 bytes, and no other
//
// RKNND_STANDIN_ONCE: a file; what goes wrong at a run does so only for the
// process that can take it away. A .rknn file may hold an ONNX model
// (driver/rknnrt/testing/wrapped_model.h), which is run then.

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "driver/rknnrt/testing/wrapped_model.h"
#include "rknn_api.h"

#define STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// Of the one library that answers; found beside this one.
void* Real() {
  static void* const library = [] {
    Dl_info info = {};
    dladdr(reinterpret_cast<const void*>(&Real), &info);
    std::string path = info.dli_fname;
    path = path.substr(0, path.rfind('/') + 1) + "librknnrt.so";
    setenv("RKNND_TARGET", "local:", 1);
    void* const found = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (found == nullptr) {
      std::fprintf(stderr, "standin: %s\n", dlerror());
      std::abort();
    }
    return found;
  }();
  return library;
}

template <class Function>
Function Find(const char* name) {
  Function function = nullptr;
  void* const symbol = dlsym(Real(), name);
  std::memcpy(&function, &symbol, sizeof symbol);
  return function;
}
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): a function's own name
#define REAL(function) Find<decltype(&function)>(#function)

// The number behind `name` in RKNND_STANDIN; 0: it is not there.
int Wanted(const char* name) {
  static const std::string all = [] {
    const char* const text = std::getenv("RKNND_STANDIN");
    return "," + std::string(text == nullptr ? "" : text);
  }();
  const std::string key = "," + std::string(name) + "=";
  const size_t at = all.find(key);
  return at == std::string::npos ? 0 : std::atoi(all.c_str() + at + key.size());
}

// Whether this process is the one that something goes wrong in.
bool IsMyTurn() {
  static const bool mine = [] {
    const char* const file = std::getenv("RKNND_STANDIN_ONCE");
    return file == nullptr || unlink(file) == 0;
  }();
  return mine;
}

[[noreturn]] void Crash() {
  // Not into a sanitizer's handler.
  (void)signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
  std::abort();
}

[[noreturn]] void Hang() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  for (;;) usleep(1000000);
}

struct Bound {
  std::map<rknn_context, std::vector<rknn_tensor_mem*>> outputs;
  std::mutex mutex;
};
Bound& Outputs() {
  static auto* const bound = new Bound;
  return *bound;
}
std::atomic<char*> last_freed{nullptr};
std::atomic<int> runs{0};

void Misbehave() {
  if (Wanted("leak_fd") != 0) {
    (void)!fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  }
  if (Wanted("leak_memory") != 0) {
    void* volatile leaked = std::malloc(1 << 20);
    std::memset(leaked, 1, 1 << 20);
  }
  if (Wanted("socket") != 0)
    (void)socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (Wanted("file") != 0) {
    (void)open("/etc/passwd", O_RDONLY | O_CLOEXEC);
  }
  for (int i = Wanted("noise"); i > 0; --i) {
    std::printf("I RKNN: [12:00:00.000] line %d of a long story\n", i);
    std::fflush(stdout);
  }
  if (char* const freed = last_freed.load();
      Wanted("use_freed") != 0 && freed != nullptr) {
    *freed = 1;
  }
}

// What is to go wrong at this run, by its number in this process.
struct Trouble {
  bool crash = false, crash_answer = false, hang = false, wrong = false;
};
Trouble AtRun(int run) {
  static const int random_kind =
      Wanted("random") == 0 ? 0 : 1 + static_cast<int>(getpid()) % 3;
  static const int random_run =
      Wanted("random") == 0
          ? 0
          : Wanted("random") / 4 + 1 +
                static_cast<int>(getpid() * 2654435761U >> 8) %
                    std::max(1, Wanted("random") * 3 / 4);
  const bool is_random = random_kind != 0 && run == random_run;
  Trouble trouble;
  trouble.crash = run == Wanted("crash_run") || (is_random && random_kind == 1);
  trouble.crash_answer =
      run == Wanted("crash_answer") || (is_random && random_kind == 2);
  trouble.hang = run == Wanted("hang_run") || (is_random && random_kind == 3);
  trouble.wrong = run == Wanted("wrong");
  if (!IsMyTurn()) return {};
  return trouble;
}

}  // namespace

STANDIN_EXPORT int rknn_init(rknn_context* context, void* model, uint32_t size,
                             uint32_t flag, rknn_init_extend* extend) {
  if (Wanted("crash_init") != 0) Crash();
  if (Wanted("hang_init") != 0) Hang();
  if (Wanted("slow_init") != 0) {
    usleep(static_cast<useconds_t>(Wanted("slow_init")) * 1000);
  }
  if (Wanted("error_init") != 0) return -Wanted("error_init");
  if (Wanted("bomb") != 0) {
    std::vector<void*> taken;
    do {
      taken.push_back(std::malloc(size_t{256} << 20));
      // A machine may promise more than it has.
    } while (taken.back() != nullptr && taken.size() < 1024);
    const bool endless = taken.back() != nullptr;
    for (void* const memory : taken) std::free(memory);
    return endless ? RKNN_ERR_FAIL : RKNN_ERR_MALLOC_FAIL;
  }
  if (Wanted("nice") != 0) setpriority(PRIO_PROCESS, 0, 5);
  if (Wanted("thread") != 0) {
    std::thread([] {
      for (;;) usleep(1000000);
    }).detach();
  }
  if (Wanted("crash_exit") != 0) std::atexit([] { Crash(); });
  std::vector<char> onnx =
      rknnd::rknnrt::testing::Unwrap(static_cast<const char*>(model), size);
  if (!onnx.empty()) {
    return REAL(rknn_init)(context, onnx.data(),
                           static_cast<uint32_t>(onnx.size()), flag, extend);
  }
  return REAL(rknn_init)(context, model, size, flag, extend);
}

STANDIN_EXPORT int rknn_dup_context(rknn_context* in, rknn_context* out) {
  return REAL(rknn_dup_context)(in, out);
}

STANDIN_EXPORT int rknn_destroy(rknn_context context) {
  if (Wanted("crash_destroy") != 0) Crash();
  {
    std::lock_guard lock(Outputs().mutex);
    Outputs().outputs.erase(context);
  }
  return REAL(rknn_destroy)(context);
}

STANDIN_EXPORT int rknn_query(rknn_context context, rknn_query_cmd cmd,
                              void* info, uint32_t size) {
  static const bool is_older = Wanted("older") != 0;
  const bool is_attribute = cmd == RKNN_QUERY_INPUT_ATTR ||
                            cmd == RKNN_QUERY_OUTPUT_ATTR ||
                            cmd == RKNN_QUERY_NATIVE_INPUT_ATTR ||
                            cmd == RKNN_QUERY_NATIVE_OUTPUT_ATTR;
  if (is_older && is_attribute && size != 372) return RKNN_ERR_PARAM_INVALID;
  const int code = REAL(rknn_query)(context, cmd, info, size);
  if (code == 0 && cmd == RKNN_QUERY_SDK_VERSION) {
    auto* const version = static_cast<rknn_sdk_version*>(info);
    std::snprintf(version->api_version, sizeof version->api_version,
                  "%s (standin)", STANDIN_VERSION);
  }
  return code;
}

STANDIN_EXPORT int rknn_run(rknn_context context, rknn_run_extend* extend) {
  const Trouble trouble = AtRun(++runs);
  if (trouble.crash) Crash();
  if (trouble.hang) Hang();
  Misbehave();
  if (Wanted("error_run") != 0) return -Wanted("error_run");
  if (Wanted("instant") != 0) return 0;
  static const auto run = REAL(rknn_run);
  const int code = run(context, extend);
  if (trouble.crash_answer) Crash();
  if (trouble.wrong) {
    std::lock_guard lock(Outputs().mutex);
    for (rknn_tensor_mem* const mem : Outputs().outputs[context]) {
      auto* const bytes = static_cast<char*>(mem->virt_addr) + mem->offset;
      bytes[0] = static_cast<char>(bytes[0] ^ 0x55);
    }
  }
  return code;
}

// As the vendor's guide says of it, and as programs have seen.
STANDIN_EXPORT int rknn_wait(rknn_context /*context*/,
                             rknn_run_extend* /*extend*/) {
  return RKNN_ERR_FAIL;
}

STANDIN_EXPORT int rknn_set_io_mem(rknn_context ctx, rknn_tensor_mem* mem,
                                   rknn_tensor_attr* attr) {
  const int code = REAL(rknn_set_io_mem)(ctx, mem, attr);
  if (code == 0) {
    std::lock_guard lock(Outputs().mutex);
    Outputs().outputs[ctx].push_back(mem);
  }
  return code;
}

STANDIN_EXPORT int rknn_destroy_mem(rknn_context ctx, rknn_tensor_mem* mem) {
  last_freed = static_cast<char*>(mem->virt_addr) + mem->offset;
  {
    std::lock_guard lock(Outputs().mutex);
    for (auto& [context, outputs] : Outputs().outputs) {
      std::erase(outputs, mem);
    }
  }
  return REAL(rknn_destroy_mem)(ctx, mem);
}

STANDIN_EXPORT int rknn_inputs_set(rknn_context context, uint32_t n_inputs,
                                   rknn_input inputs[]) {
  return REAL(rknn_inputs_set)(context, n_inputs, inputs);
}
STANDIN_EXPORT int rknn_outputs_get(rknn_context context, uint32_t n_outputs,
                                    rknn_output outputs[],
                                    rknn_output_extend* extend) {
  return REAL(rknn_outputs_get)(context, n_outputs, outputs, extend);
}
STANDIN_EXPORT int rknn_outputs_release(rknn_context context, uint32_t n_ouputs,
                                        rknn_output outputs[]) {
  return REAL(rknn_outputs_release)(context, n_ouputs, outputs);
}
STANDIN_EXPORT int rknn_set_batch_core_num(rknn_context context, int core_num) {
  return REAL(rknn_set_batch_core_num)(context, core_num);
}
STANDIN_EXPORT int rknn_set_core_mask(rknn_context context,
                                      rknn_core_mask core_mask) {
  return REAL(rknn_set_core_mask)(context, core_mask);
}
STANDIN_EXPORT rknn_tensor_mem* rknn_create_mem_from_fd(rknn_context ctx,
                                                        int32_t fd,
                                                        void* virt_addr,
                                                        uint32_t size,
                                                        int32_t offset) {
  return REAL(rknn_create_mem_from_fd)(ctx, fd, virt_addr, size, offset);
}
STANDIN_EXPORT rknn_tensor_mem* rknn_create_mem_from_phys(rknn_context ctx,
                                                          uint64_t phys_addr,
                                                          void* virt_addr,
                                                          uint32_t size) {
  return REAL(rknn_create_mem_from_phys)(ctx, phys_addr, virt_addr, size);
}
STANDIN_EXPORT rknn_tensor_mem* rknn_create_mem(rknn_context ctx,
                                                uint32_t size) {
  return REAL(rknn_create_mem)(ctx, size);
}
STANDIN_EXPORT rknn_tensor_mem* rknn_create_mem2(rknn_context ctx,
                                                 uint64_t size,
                                                 uint64_t alloc_flags) {
  return REAL(rknn_create_mem2)(ctx, size, alloc_flags);
}
STANDIN_EXPORT int rknn_set_weight_mem(rknn_context ctx, rknn_tensor_mem* mem) {
  return REAL(rknn_set_weight_mem)(ctx, mem);
}
STANDIN_EXPORT int rknn_set_internal_mem(rknn_context ctx,
                                         rknn_tensor_mem* mem) {
  return REAL(rknn_set_internal_mem)(ctx, mem);
}
STANDIN_EXPORT int rknn_set_input_shape(rknn_context ctx,
                                        rknn_tensor_attr* attr) {
  return REAL(rknn_set_input_shape)(ctx, attr);
}
STANDIN_EXPORT int rknn_set_input_shapes(rknn_context ctx, uint32_t n_inputs,
                                         rknn_tensor_attr attr[]) {
  return REAL(rknn_set_input_shapes)(ctx, n_inputs, attr);
}
STANDIN_EXPORT int rknn_mem_sync(rknn_context context, rknn_tensor_mem* mem,
                                 rknn_mem_sync_mode mode) {
  return REAL(rknn_mem_sync)(context, mem, mode);
}
