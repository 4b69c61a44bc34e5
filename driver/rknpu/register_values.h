// The registers that the tasks of one core are executed with, followed through
// a job, together with where each address came from. Each block has two banks:
// a task writes into one, is executed with it, and the block turns to the
// other, so that what a task leaves out has the value of the task before last.
//
// For the checker, which has to know before a job what its tasks will touch. A
// register that no task of the same node has written counts as not there, since
// the hardware would take what another job left behind. Thread: one at a time.

#ifndef DRIVER_RKNPU_REGISTER_VALUES_H_
#define DRIVER_RKNPU_REGISTER_VALUES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "driver/rknpu/file/program_file.h"

namespace rknnd::rknpu {

class RegisterValues {
 public:
  struct Value {
    uint32_t value = 0;
    bool is_there = false;
    int32_t tensor = -1;  // whose address is to be added; -1: none
  };

  explicit RegisterValues(const ProgramFile& file);

  // Nothing is known of any register.
  void BeginJob();
  // Takes the task's words. INVALID_ARGUMENT: one of them is for a block that
  // the task does not use, or sets banks up in a way that is not known.
  absl::Status BeginTask(const TaskEntry& task);
  // The blocks that were used turn to their other bank.
  void EndTask();

  // Of the task that was begun. `number` is 0x1000 to 0x7fff.
  [[nodiscard]] Value At(uint16_t number) const;

 private:
  static constexpr size_t kRegisters = 1024;
  struct Entry {
    Value value;
    uint32_t epoch = 0;  // of the node that wrote it
  };
  struct BlockState {
    std::array<std::array<Entry, kRegisters>, 2> banks;
    uint32_t current = 0;
    bool is_used = false, stays = false;
  };
  absl::Status FindModes(const TaskEntry& task);
  [[nodiscard]] uint64_t WordAt(uint64_t at) const {
    return file_.commands[static_cast<size_t>(at)];
  }

  const ProgramFile& file_;
  std::vector<const Relocation*> addresses_;  // by word; null: no address
  std::vector<BlockState> blocks_;
  uint32_t epoch_ = 0, node_ = 0;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_REGISTER_VALUES_H_
