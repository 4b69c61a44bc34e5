#include "driver/rknpu/kernel/self_test.h"

#include <array>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::rknpu {
namespace {

constexpr uint32_t kBytes = 16 * 4 * 8;
constexpr uint32_t kInput = 4096, kOutput = 8192, kRoom = 12288;
constexpr uint32_t kEnable = 0x18, kInterrupt = 0x300;

struct Register {
  uint16_t number;
  uint32_t value;
};

uint64_t Command(uint64_t target, uint16_t number, uint32_t value) {
  return target << 48 | uint64_t{value} << 16 | number;
}

std::vector<uint64_t> Commands(uint64_t address) {
  constexpr uint32_t kSurface = kBytes;
  const auto at = [address](uint32_t offset) {
    return static_cast<uint32_t>(address + offset);
  };
  std::vector<Register> registers = {
      {0x4004, 0xe},         {0x400c, 0x1e5},
      {0x4010, 0},           {0x4014, 0},
      {0x4020, at(kOutput)}, {0x4024, kSurface},
      {0x4038, 0},           {0x403c, 0xf000f},
      {0x4040, 0x53},        {0x4050, 2},
      {0x4054, 0},           {0x4058, 15},
      {0x405c, 0x30007},     {0x4060, 0x53},
      {0x4070, 0x383},       {0x407c, 0},
      {0x4080, 0},           {0x4084, 1},
      {0x4088, 0},           {0x40c0, kSurface},
      {0x40c4, 0},           {0x5004, 0xe},
      {0x500c, 7},           {0x5010, 3},
      {0x5014, 15},          {0x5018, at(kInput)},
      {0x501c, 0},           {0x5020, 0},
      {0x5028, 0},           {0x502c, 0},
      {0x5034, 1},           {0x5038, 0},
      {0x5040, 0},           {0x5044, 0x7801},
      {0x5048, 0},           {0x504c, 0},
      {0x5064, 0},           {0x506c, 0}};
  for (uint16_t number = 0x4090; number <= 0x40ac; number += 4) {
    registers.push_back({number, 0});
  }
  std::vector<uint64_t> words;
  for (const Register& r : registers) {
    words.push_back(
        Command(r.number < 0x5000 ? 0x1001 : 0x2001, r.number, r.value));
  }
  words.push_back(0);                           // no next task
  words.push_back(Command(0x0101, 0x0014, 0));  // nor its length
  words.push_back(Command(0x0041, 0, 0));
  words.push_back(Command(0x0081, 0x0008, kEnable));
  return words;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SelfTest>> SelfTest::Make(
    const std::shared_ptr<NpuFile>& file) {
  std::unique_ptr<SelfTest> test(new SelfTest(file));
  RKNND_ASSIGN_OR_RETURN(test->memory_, file->Create(kRoom, {}));
  RKNND_ASSIGN_OR_RETURN(test->tasks_, file->Create(sizeof(uapi::TaskRow),
                                                    {.is_task_table = true}));
  const std::vector<uint64_t> words = Commands(test->memory_->address());
  std::memcpy(test->memory_->bytes().data(), words.data(),
              words.size() * sizeof words[0]);
  uapi::TaskRow row;
  row.enable_mask = kEnable;
  row.int_mask = kInterrupt;
  row.int_clear = 0x1ffff;
  row.regcfg_amount = static_cast<uint32_t>(words.size()) - 4;
  row.regcmd_addr = test->memory_->address();
  std::memcpy(test->tasks_->bytes().data(), &row, sizeof row);
  RKNND_RETURN_IF_ERROR(
      test->tasks_->Sync(uapi::kToDevice, 0, test->tasks_->size()));
  return test;
}

absl::Status SelfTest::Run(uint32_t core, uint32_t timeout_ms) {
  std::array<std::byte, kBytes> expected = {};
  ++round_;
  for (uint32_t i = 0; i < kBytes; ++i) {
    expected[i] = static_cast<std::byte>(i * 37 + round_);
  }
  std::byte* const bytes = memory_->bytes().data();
  std::memcpy(bytes + kInput, expected.data(), kBytes);
  std::memset(bytes + kOutput, 0, kBytes);
  RKNND_RETURN_IF_ERROR(memory_->Sync(uapi::kToDevice, 0, memory_->size()));
  std::array<uapi::SubcoreTask, 3> ranges = {};
  ranges[core] = {0, 1};
  uint32_t counter = 0;
  int64_t ran = 0;
  const int error = file_->Submit({.tasks = tasks_.get(),
                                   .core_mask = 1U << core,
                                   .timeout_ms = timeout_ms,
                                   .ranges = ranges},
                                  &counter, &ran);
  if (error != 0) {
    return KernelError(error, absl::StrCat("self-test of core ", core));
  }
  RKNND_RETURN_IF_ERROR(memory_->Sync(uapi::kFromDevice, kOutput, kBytes));
  if (std::memcmp(bytes + kOutput, expected.data(), kBytes) != 0) {
    return absl::DataLossError(absl::StrCat("core ", core,
                                            " computed something else than its "
                                            "self-test's answer"));
  }
  return absl::OkStatus();
}

}  // namespace rknnd::rknpu
