// cpp_api_memory MODEL CONTEXTS yes|no: the NPU memory of one context, and of
// so many, duplicated from the first or each loaded by itself. Prints "weight
// internal" of both. A C++17 program that sees nothing of rknnd but rknnd.hpp.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "rknnd.hpp"

namespace {

void Print(const char* model, int contexts, bool duplicate) {
  std::vector<rknnd::Context> held;
  for (int i = 0; i < contexts; ++i) {
    held.push_back(duplicate && i > 0 ? held[0].Duplicate()
                                      : rknnd::Context::FromFile(model));
  }
  const rknnd_memory memory = held.back().NpuMemory();
  std::printf("%" PRIu64 " %" PRIu64 "\n", memory.weight, memory.internal);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    Print(argv[1], 1, false);
    Print(argv[1], std::atoi(argv[2]), std::strcmp(argv[3], "yes") == 0);
  } catch (const rknnd::Error& error) {
    std::fprintf(stderr, "%d: %s\n", error.code(), error.what());
    return 1;
  }
  return 0;
}
