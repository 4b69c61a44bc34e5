// Register programs as a compiled model may bring them: whatever the registers
// say, the emulator ends with a reason, or both of its engines leave the same
// bytes; and nothing outside of the memory that it was given is touched.
//
// The first bytes choose a task and the rest changes its registers: three bytes
// and a value of four, each.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>

#include "driver/rknpu/emulator/kernels/kernels.h"
#include "driver/rknpu/emulator/testing/both_engines.h"
#include "driver/soft/tiles/cpu_level.h"

namespace {

void Require(bool holds, const std::string& otherwise) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", otherwise.c_str());
  std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  uint32_t Take(size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value = value << 8 | (at_ < size_ ? data_[at_] : 0U);
      ++at_;
    }
    return value;
  }

 private:
  const uint8_t* const data_;
  const size_t size_;
  size_t at_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace testing = rknnd::rknpu::testing;
  Input input(data, size);
  testing::AnyTask task = testing::ChooseTask(
      [&](uint32_t below) { return input.Take(below > 256 ? 4 : 1) % below; });
  while (!input.empty()) {
    const uint32_t place = input.Take(2);
    auto at = task.registers.begin();
    std::advance(at, place % task.registers.size());
    const uint32_t how = input.Take(1);
    const uint32_t value = input.Take(4);
    at->second = how % 2 == 0 ? value : at->second ^ (1U << value % 32);
  }
  const testing::Comparison result = testing::RunBoth(
      task, {1, 250, 3, 0, 128, 7, 0, 0, 99},
      rknnd::rknpu::fast::KernelsFor(rknnd::soft::CurrentCpuLevel()));
  Require(result.difference.empty(), result.difference);
  Require(result.ran == result.refusal.empty(), "refused, and yet it ran");
  return 0;
}
