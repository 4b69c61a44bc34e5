#include "driver/rknpu/emulated_backend.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/mapping.h"
#include "base/status/status.h"
#include "driver/rknpu/address_space.h"
#include "driver/rknpu/emulator/emulator.h"

namespace rknnd::rknpu {
namespace {

class EmulatedMemory final : public PlacedMemory {
 public:
  EmulatedMemory(std::shared_ptr<AddressSpace> space, uint64_t address,
                 std::span<std::byte> bytes, base::Mapping own)
      : space_(std::move(space)),
        address_(address),
        bytes_(bytes),
        own_(std::move(own)) {}
  ~EmulatedMemory() override { space_->GiveBack(address_); }

  [[nodiscard]] uint64_t address() const override { return address_; }
  [[nodiscard]] std::span<std::byte> bytes() const override { return bytes_; }

 private:
  const std::shared_ptr<AddressSpace> space_;
  const uint64_t address_;
  const std::span<std::byte> bytes_;
  const base::Mapping own_;  // empty where the bytes are somebody else's
};

class EmulatedTasks final : public PlacedTasks {
 public:
  EmulatedTasks(std::span<const TaskEntry> entries, uint64_t commands) {
    for (const TaskEntry& entry : entries) {
      tasks.push_back({.node = entry.node,
                       .enable_mask = entry.enable_mask,
                       .interrupt_mask = entry.interrupt_mask,
                       .words = entry.words,
                       .commands = commands + entry.commands});
    }
  }
  std::vector<Task> tasks;
};

class EmulatedBackend final : public Backend {
 public:
  explicit EmulatedBackend(Emulation emulation)
      : engine_(emulation == Emulation::kFast ? Engine::kFast
                                              : Engine::kPlain) {}

  absl::StatusOr<std::unique_ptr<PlacedMemory>> Allocate(
      uint64_t bytes) override {
    RKNND_ASSIGN_OR_RETURN(const uint64_t address, space_->Take(bytes));
    absl::StatusOr<base::Mapping> mapping =
        base::ToStatusOr(base::Mapping::Anonymous(
            static_cast<size_t>(std::max<uint64_t>(bytes, 1))));
    if (!mapping.ok()) {
      space_->GiveBack(address);
      return mapping.status();
    }
    const std::span<std::byte> span(mapping->data(),
                                    static_cast<size_t>(bytes));
    return std::make_unique<EmulatedMemory>(space_, address, span,
                                            *std::move(mapping));
  }

  absl::StatusOr<std::unique_ptr<PlacedMemory>> Place(
      std::span<std::byte> bytes) override {
    RKNND_ASSIGN_OR_RETURN(const uint64_t address, space_->Take(bytes.size()));
    return std::make_unique<EmulatedMemory>(space_, address, bytes,
                                            base::Mapping());
  }

  absl::StatusOr<std::unique_ptr<PlacedTasks>> PlaceTable(
      std::span<const TaskEntry> tasks, uint64_t commands) override {
    return std::make_unique<EmulatedTasks>(tasks, commands);
  }

  absl::Status Run(const NpuJob& job) override {
    Memory memory;
    for (const ReachableMemory& reachable : job.memory) {
      if (reachable.memory->bytes().empty()) continue;
      RKNND_RETURN_IF_ERROR(
          memory.Attach({reachable.memory->address(), reachable.memory->bytes(),
                         reachable.writable}));
    }
    const std::span<const Task> tasks =
        static_cast<const EmulatedTasks*>(job.table)->tasks;
    std::array<std::span<const Task>, kCores> lists;
    for (const CoreTasks& core : job.cores) {
      if (core.core >= kCores) {
        return absl::InvalidArgumentError(
            absl::StrCat("the NPU has no core ", core.core));
      }
      lists[core.core] = tasks.subspan(core.tasks.first, core.tasks.count);
    }
    return machine_.Run(
        memory, lists,
        {.engine = engine_, .stop = job.stop, .stop_too = job.stop_too});
  }

  absl::Status Reset() override {
    machine_.Reset();
    return absl::OkStatus();
  }

 private:
  const Engine engine_;
  const std::shared_ptr<AddressSpace> space_ = std::make_shared<AddressSpace>();
  Machine machine_;
};

}  // namespace

std::unique_ptr<Backend> MakeEmulatedBackend(Emulation emulation) {
  return std::make_unique<EmulatedBackend>(emulation);
}

}  // namespace rknnd::rknpu
