// The commands of a program as the NPU reads them: a copy of the file's, in
// which every address is that of the memory a core works in. A job that brings
// other memory for an input or an output changes the few words that name it.
//
// A core's copy is changed only while that core runs nothing. Thread: one at a
// time.

#ifndef DRIVER_RKNPU_RELOCATED_COMMANDS_H_
#define DRIVER_RKNPU_RELOCATED_COMMANDS_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "driver/rknpu/file/program_file.h"

namespace rknnd::rknpu {

// Where the addresses of each tensor stand. One for all copies of a program.
class AddressWords {
 public:
  explicit AddressWords(const ProgramFile& file);

  // The words that hold addresses of `tensor`.
  [[nodiscard]] std::span<const Relocation> Of(uint32_t tensor) const {
    return std::span(words_).subspan(starts_[tensor],
                                     starts_[tensor + 1] - starts_[tensor]);
  }
  [[nodiscard]] uint32_t tensors() const {
    return static_cast<uint32_t>(starts_.size() - 1);
  }

 private:
  std::vector<Relocation> words_;  // by tensor
  std::vector<size_t> starts_;     // one more than tensors
};

class RelocatedCommands {
 public:
  // Writes the file's commands to `words`, which has room for as many and which
  // the NPU sees from `address` on; chains lead to this copy. All borrowed for
  // the object's life. Tensors are at address 0 until they are moved.
  RelocatedCommands(const ProgramFile& file, const AddressWords& places,
                    std::span<uint64_t> words, uint64_t address);

  // Tensor `tensor` is at `address` from now on. An address that does not fit
  // the 32 bits of a register must not be given.
  void Move(uint32_t tensor, uint64_t address);
  // The same of all of them, in order.
  void MoveAll(std::span<const uint64_t> addresses);

  // The words that changed since the last question, or since the beginning:
  // from the first to behind the last one.
  struct Changed {
    uint32_t begin = 0, end = 0;
  };
  [[nodiscard]] Changed TakeChanged() {
    return std::exchange(changed_, Changed{UINT32_MAX, 0});
  }

  [[nodiscard]] uint64_t address() const { return address_; }
  [[nodiscard]] std::span<const uint64_t> words() const { return words_; }
  // A task's first command, as the NPU sees it.
  [[nodiscard]] uint64_t AddressOf(const TaskEntry& task) const {
    return address_ + task.commands;
  }

 private:
  const AddressWords& places_;
  const std::span<uint64_t> words_;
  const uint64_t address_;
  std::vector<uint64_t> addresses_;  // by tensor
  Changed changed_;
};

// The value of a command: 32 bits between its register and its target.
constexpr uint32_t ValueOf(uint64_t command) {
  return static_cast<uint32_t>(command >> 16);
}
constexpr uint64_t WithValue(uint64_t command, uint32_t value) {
  return (command & 0xffff00000000ffff) | uint64_t{value} << 16;
}

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_RELOCATED_COMMANDS_H_
