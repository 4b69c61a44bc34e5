// Frames in a steady state, for a test that counts what each costs:
//
//   integration_hot_path MODEL FRAMES
//
// Says "ready" after the first frames; then, for each line of input, runs so
// many frames between two calls of getppid() and says how many allocations
// there were in this process meanwhile: "allocations 0", or "uncounted" where
// a sanitizer has the allocator.

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "client/include/rknn_api.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef COUNTS_ALLOCATIONS
#define COUNTS_ALLOCATIONS 1
#endif

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

#if COUNTS_ALLOCATIONS
// Those of all libraries in this process, the client library's among them.
extern "C" {
void* __libc_malloc(size_t size);                 // NOLINT: the C library's
void* __libc_calloc(size_t count, size_t size);   // NOLINT
void* __libc_realloc(void* memory, size_t size);  // NOLINT

void* malloc(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, size);
}
}
#endif

namespace {

int Fail(const char* what) {
  std::fprintf(stderr, "%s failed\n", what);
  return 1;
}

int Bind(rknn_context context, rknn_query_cmd which) {
  rknn_tensor_attr attr{};
  if (rknn_query(context, which, &attr, sizeof attr) != RKNN_SUCC) return 1;
  attr.type = RKNN_TENSOR_FLOAT32;
  rknn_tensor_mem* const memory =
      rknn_create_mem(context, attr.n_elems * sizeof(float));
  if (memory == nullptr) return 1;
  return rknn_set_io_mem(context, memory, &attr);
}

bool RunFrames(rknn_context context, int count) {
  for (int i = 0; i < count; ++i) {
    if (rknn_run(context, nullptr) != RKNN_SUCC) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return Fail("reading the arguments");
  std::ifstream file(argv[1], std::ios::binary);
  std::string model{std::istreambuf_iterator<char>(file), {}};
  const int frames = std::atoi(argv[2]);
  rknn_context context = 0;
  if (rknn_init(&context, model.data(), static_cast<uint32_t>(model.size()), 0,
                nullptr) != RKNN_SUCC) {
    return Fail("rknn_init");
  }
  if (Bind(context, RKNN_QUERY_INPUT_ATTR) != 0 ||
      Bind(context, RKNN_QUERY_OUTPUT_ATTR) != 0) {
    return Fail("binding");
  }
  if (!RunFrames(context, 10)) return Fail("rknn_run");
  std::puts("ready");
  std::fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line)) {
    static_cast<void>(getppid());
    const uint64_t before = allocations.load();
    const bool ran = RunFrames(context, frames);
    const uint64_t during = allocations.load() - before;
    static_cast<void>(getppid());
    if (!ran) return Fail("rknn_run");
    if (COUNTS_ALLOCATIONS != 0) {
      std::printf("allocations %llu\n",
                  static_cast<unsigned long long>(during));
    } else {
      std::puts("uncounted");
    }
    std::fflush(stdout);
  }
  rknn_destroy(context);
  return 0;
}
