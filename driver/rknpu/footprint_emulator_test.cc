// Two readings of the same registers: the emulator, which was written apart
// from the checker, executes each task of the published programs with nothing
// in its memory but the bytes that the checker says the task touches. One
// access outside ends the task.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "driver/rknpu/checker.h"
#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/file/testing/shared_programs.h"
#include "driver/rknpu/footprint.h"
#include "driver/rknpu/placement.h"
#include "driver/rknpu/register_values.h"
#include "driver/rknpu/registers/registers.h"
#include "driver/rknpu/schedule.h"

namespace rknnd::rknpu {
namespace {

using testing::ReadShared;

constexpr uint16_t kTableSelect = 0x4100, kTableEntry = 0x4104;
constexpr uint64_t kCommands = 0x1000;
constexpr uint64_t kConstants = 0x40000000;
constexpr uint64_t kPrivate = 0x60000000;
constexpr uint64_t kInternal = 0x80000000;

// A range of addresses, and whether something in it is written.
struct Range {
  uint64_t first = 0, end = 0;
  bool writes = false;
};

std::vector<Range> Joined(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  std::vector<Range> joined;
  for (const Range& range : ranges) {
    if (joined.empty() || range.first > joined.back().end) {
      joined.push_back(range);
      continue;
    }
    joined.back().end = std::max(joined.back().end, range.end);
    joined.back().writes |= range.writes;
  }
  return joined;
}

// So many bytes less of one access of each task.
struct Trim {
  size_t access = 0;
  int64_t at_first = 0, at_end = 0;
};

// A program in memory, and the tasks of one job of it, one after the other.
class Lonely {
 public:
  explicit Lonely(const ProgramFile& file)
      : file_(file),
        placement_(*PlaceTensors(file)),
        constants_(placement_.constant_bytes),
        private_(placement_.private_bytes),
        internal_(file.internal_bytes),
        addresses_(AddressesOf(placement_, {.constants = kConstants,
                                            .private_memory = kPrivate,
                                            .internal = kInternal})) {
    FillMemory(file, placement_, Home::kConstants, constants_);
    FillMemory(file, placement_, Home::kPrivate, private_);
  }

  // Each task of the range by itself; the first one that fails.
  absl::Status Run(const TaskRange& tasks, const Trim& trim = {}) {
    RegisterValues registers(file_);
    uint32_t node = UINT32_MAX;
    std::vector<uint64_t>
        loaders;  // words of tasks that load the node's tables
    std::vector<Range> loaders_touch;
    std::vector<Task> loader_tasks;
    for (uint32_t t = tasks.first; t < tasks.first + tasks.count; ++t) {
      const TaskEntry& entry = file_.tasks[t];
      if (entry.node != node) {
        node = entry.node;
        loaders.clear();
        loaders_touch.clear();
        loader_tasks.clear();
      }
      if (absl::Status status = registers.BeginTask(entry); !status.ok()) {
        return status;
      }
      auto accesses = FootprintOf(registers, entry.enable_mask);
      if (!accesses.ok()) return accesses.status();
      if (trim.access < accesses->size()) {
        (*accesses)[trim.access].first += trim.at_first;
        (*accesses)[trim.access].end -= trim.at_end;
      }
      std::vector<Range> touched = loaders_touch;
      for (const Access& access : *accesses) {
        const auto base = registers.At(access.address_register);
        const auto address = static_cast<int64_t>(
            addresses_[static_cast<size_t>(base.tensor)] + base.value);
        touched.push_back({static_cast<uint64_t>(address + access.first),
                           static_cast<uint64_t>(address + access.end),
                           access.writes});
      }
      std::vector<uint64_t> words = loaders;
      std::vector<Task> job = loader_tasks;
      Append(registers, entry, words, job);
      if (IsLoader(entry)) {
        loaders = words;
        loader_tasks = job;
        loaders_touch = touched;
      }
      if (absl::Status status = RunJob(job, words, touched); !status.ok()) {
        return absl::Status(status.code(),
                            "task " + std::to_string(t) + " of node '" +
                                file_.nodes[entry.node].name +
                                "': " + std::string(status.message()));
      }
      registers.EndTask();
    }
    return absl::OkStatus();
  }

 private:
  bool IsLoader(const TaskEntry& entry) const {
    const size_t first = entry.commands / sizeof(uint64_t);
    for (size_t at = first; at < first + entry.words; ++at) {
      if (Decode(file_.commands[at]).reg == kTableEntry) return true;
    }
    return false;
  }

  // The task as a whole one: all registers it is executed with.
  void Append(const RegisterValues& registers, const TaskEntry& entry,
              std::vector<uint64_t>& words, std::vector<Task>& job) const {
    Task task;
    task.node = entry.node;
    task.enable_mask = entry.enable_mask;
    task.interrupt_mask = entry.interrupt_mask;
    task.commands = kCommands + words.size() * sizeof(uint64_t);
    const size_t first = words.size();
    for (const RegisterInfo& info : Registers()) {
      if (info.reg == kTableSelect || info.reg == kTableEntry) continue;
      const auto value = registers.At(info.reg);
      if (!value.is_there) continue;
      const uint64_t base =
          value.tensor < 0 ? 0 : addresses_[static_cast<size_t>(value.tensor)];
      for (const BlockInfo& block : Blocks()) {
        if (block.page != info.reg >> 12) continue;
        words.push_back(
            Encode({block.target, static_cast<uint32_t>(base + value.value),
                    info.reg}));
      }
    }
    const size_t from = entry.commands / sizeof(uint64_t);
    for (size_t at = from; at < from + entry.words; ++at) {
      const uint16_t reg = Decode(file_.commands[at]).reg;
      if (reg != kTableSelect && reg != kTableEntry) continue;
      words.push_back(file_.commands[at]);
    }
    task.words = static_cast<uint32_t>(words.size() - first);
    // A job that goes on is linked when the next task is appended.
    if (!job.empty()) {
      const Task& last = job.back();
      const size_t link =
          (last.commands - kCommands) / sizeof(uint64_t) + last.words;
      words[link] =
          Encode({0x0101, static_cast<uint32_t>(task.commands), 0x10});
      words[link + 1] =
          Encode({0x0101, (task.words + kChainWords + 1) / 2 - 1, 0x14});
    }
    words.push_back(0);
    words.push_back(Encode({0x0101, 0, 0x14}));
    words.push_back(Encode({kSyncTarget, 0, 0}));
    words.push_back(Encode({kEnableTarget, entry.enable_mask, 8}));
    while (words.size() % 8 != 0) words.push_back(0);
    job.push_back(task);
  }

  absl::Status RunJob(const std::vector<Task>& job,
                      std::vector<uint64_t>& words,
                      const std::vector<Range>& touched) {
    Memory memory;
    absl::Status status = memory.Attach(
        {kCommands, std::as_writable_bytes(std::span(words)), false});
    for (const Range& range : Joined(touched)) {
      status.Update(memory.Attach({range.first, Bytes(range), range.writes}));
    }
    if (!status.ok()) return status;
    const std::span<const Task> list(job);
    return machine_.Run(memory, {&list, 1}, {});
  }

  std::span<std::byte> Bytes(const Range& range) {
    const size_t size = range.end - range.first;
    if (range.first >= kInternal) {
      return std::span(internal_).subspan(range.first - kInternal, size);
    }
    if (range.first >= kPrivate) {
      return std::span(private_).subspan(range.first - kPrivate, size);
    }
    return std::span(constants_).subspan(range.first - kConstants, size);
  }

  const ProgramFile& file_;
  const Placement placement_;
  std::vector<std::byte> constants_, private_, internal_;
  const std::vector<uint64_t> addresses_;
  Machine machine_;
};

TEST(FootprintTest, TheEmulatorReachesNothingElse) {
  for (const char* name : testing::kRk3588Programs) {
    const std::vector<std::byte> bytes = ReadShared(name);
    if (bytes.empty()) GTEST_SKIP() << "no published files in RKNND_SHARED";
    const auto file = Read(bytes);
    ASSERT_TRUE(file.ok()) << file.error().message;
    Lonely lonely(*file);
    for (const uint32_t cores : {1U, 3U}) {
      const auto schedule = MakeSchedule(*file, cores);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      for (const Step& step : *schedule) {
        if (step.on_cpu) continue;
        for (uint32_t core = 0; core < step.piece.cores; ++core) {
          const absl::Status status = lonely.Run(step.piece.ranges[core]);
          ASSERT_TRUE(status.ok()) << name << ": " << status;
        }
      }
    }
  }
}

// The ranges are no larger than they have to be, so that the test above would
// see one that is too small.
TEST(FootprintTest, OneByteLessIsTooLittle) {
  const std::vector<std::byte> bytes =
      ReadShared("multiple_input_demo_v6_rk3588.rknn");
  if (bytes.empty()) GTEST_SKIP() << "no published files in RKNND_SHARED";
  const auto file = Read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message;
  Lonely lonely(*file);
  // A convolution that adds an operand: feature, weights, coefficients, both
  // addresses of the operand, output.
  const TaskRange convolution = {1, 1};
  RegisterValues registers(*file);
  ASSERT_TRUE(registers.BeginTask(file->tasks[1]).ok());
  const auto accesses = FootprintOf(registers, file->tasks[1].enable_mask);
  ASSERT_TRUE(accesses.ok()) << accesses.status();
  ASSERT_EQ(accesses->size(), 6U);
  ASSERT_TRUE(lonely.Run(convolution).ok());
  for (size_t access = 0; access < accesses->size(); ++access) {
    EXPECT_FALSE(lonely.Run(convolution, {access, 1, 0}).ok()) << access;
    EXPECT_FALSE(lonely.Run(convolution, {access, 0, 1}).ok()) << access;
  }
}

}  // namespace
}  // namespace rknnd::rknpu
