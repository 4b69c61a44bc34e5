#include "driver/rknpu/relocated_commands.h"

#include <algorithm>

namespace rknnd::rknpu {
namespace {

// The first word behind a task's own leads to the next task; without one it is
// zero.
constexpr uint64_t kNextTask = 0x0101000000000010;

bool IsChain(uint64_t command) { return WithValue(command, 0) == kNextTask; }

}  // namespace

AddressWords::AddressWords(const ProgramFile& file)
    : words_(file.relocations), starts_(file.tensors.size() + 1) {
  std::stable_sort(words_.begin(), words_.end(),
                   [](const Relocation& a, const Relocation& b) {
                     return a.tensor < b.tensor;
                   });
  for (const Relocation& word : words_) ++starts_[word.tensor + 1];
  for (size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
}

RelocatedCommands::RelocatedCommands(const ProgramFile& file,
                                     const AddressWords& places,
                                     std::span<uint64_t> words,
                                     uint64_t address)
    : places_(places),
      words_(words),
      address_(address),
      addresses_(places.tensors(), 0),
      changed_{0, static_cast<uint32_t>(words.size())} {
  std::copy(file.commands.begin(), file.commands.end(), words_.begin());
  for (const TaskEntry& task : file.tasks) {
    const size_t at = task.commands / sizeof(uint64_t) + task.words;
    const uint64_t command = file.commands[at];
    if (!IsChain(command)) continue;
    // Several entries share commands: taken from the file, not added again.
    words_[at] =
        WithValue(command, static_cast<uint32_t>(ValueOf(command) + address_));
  }
  for (uint32_t tensor = 0; tensor < places_.tensors(); ++tensor) {
    for (const Relocation& word : places_.Of(tensor)) {
      words_[word.word] = WithValue(words_[word.word], word.addend);
    }
  }
}

void RelocatedCommands::Move(uint32_t tensor, uint64_t address) {
  if (addresses_[tensor] == address) return;
  addresses_[tensor] = address;
  for (const Relocation& word : places_.Of(tensor)) {
    words_[word.word] = WithValue(words_[word.word],
                                  static_cast<uint32_t>(address + word.addend));
    changed_.begin = std::min(changed_.begin, word.word);
    changed_.end = std::max(changed_.end, word.word + 1);
  }
}

void RelocatedCommands::MoveAll(std::span<const uint64_t> addresses) {
  for (uint32_t tensor = 0; tensor < places_.tensors(); ++tensor) {
    Move(tensor, addresses[tensor]);
  }
}

}  // namespace rknnd::rknpu
