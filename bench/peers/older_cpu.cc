// The older CPU: a module of Node.js that loads the library which
// RKNND_OLDER_LIBRARY names, a copy of ONNX Runtime's whose questions for the
// CPU's features are marked (marked_library.h), and answers these questions
// itself: without what CPUs of the level that RKNND_OLDER_CPU names do not
// have. So the library chooses the kernels that it would choose on such a CPU.
//
// Loaded once, before anything loads the library. A mark is an instruction
// that no CPU has: the kernel sends SIGILL, and the handler executes CPUID in
// its place and steps over it. The handler takes no locks and allocates
// nothing.

#include <dlfcn.h>
#include <ucontext.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/peers/cpu_level.h"

namespace {

using rknnd::bench::CpuFeatures;

CpuFeatures hidden;

// The registers as CPUID would leave them.
void AnswerCpuid(greg_t* registers) {
  const auto leaf = static_cast<uint32_t>(registers[REG_RAX]);
  const auto subleaf = static_cast<uint32_t>(registers[REG_RCX]);
  uint32_t a = leaf, b = 0, c = subleaf, d = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (leaf == 1) {
    c &= ~hidden.ecx_1;
  } else if (leaf == 7 && subleaf == 0) {
    b &= ~hidden.ebx_7;
    c &= ~hidden.ecx_7;
    d &= ~hidden.edx_7;
  } else if (leaf == 7 && subleaf == 1) {
    a &= ~hidden.eax_7_1;
    d &= ~hidden.edx_7_1;
  }
  registers[REG_RAX] = a;
  registers[REG_RBX] = b;
  registers[REG_RCX] = c;
  registers[REG_RDX] = d;
  registers[REG_RIP] += sizeof rknnd::bench::kMark;
}

void OnIllegalInstruction(int, siginfo_t*, void* context) {
  using rknnd::bench::kMark;
  greg_t* const registers =
      static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto at = static_cast<uintptr_t>(registers[REG_RIP]);
  if (std::memcmp(reinterpret_cast<const void*>(at), kMark,  // NOLINT
                  sizeof kMark) == 0) {
    AnswerCpuid(registers);
  } else {
    // Executed again, the instruction ends the process.
    std::signal(SIGILL, SIG_DFL);
  }
}

[[noreturn]] void Fail(const char* reason) {
  std::fprintf(stderr, "rknnd-older-cpu: %s\n", reason);
  std::exit(1);
}

}  // namespace

// What Node.js calls when the module is required; its answer is the module's
// value.
extern "C" __attribute__((visibility("default"))) void* napi_register_module_v1(
    void* /*env*/, void* exports) {
  const char* const name = std::getenv(rknnd::bench::kOlderCpuVariable);
  const char* const library = std::getenv(rknnd::bench::kOlderLibraryVariable);
  if (name == nullptr || library == nullptr) Fail("no level or no library");
  const rknnd::bench::CpuLevel* const level = rknnd::bench::FindCpuLevel(name);
  if (level == nullptr) Fail("no such level");
  hidden = rknnd::bench::HiddenFeatures(*level);
  struct sigaction action = {};
  action.sa_sigaction = OnIllegalInstruction;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  if (sigaction(SIGILL, &action, nullptr) != 0) Fail("no handler of SIGILL");
  // Never closed: whoever asks for a library of its name later gets this one.
  if (dlopen(library, RTLD_NOW | RTLD_GLOBAL) == nullptr) Fail(dlerror());
  return exports;
}
