// What the runner does: one command of a test is one call of the C API, with
// names for contexts and memories. Commands may be wrong on purpose: what the
// library answers is the reply.

#ifndef TESTS_INTEGRATION_PROGRAMS_COMMANDS_H_
#define TESTS_INTEGRATION_PROGRAMS_COMMANDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/posix/unique_fd.h"
#include "rknn_api.h"

namespace rknnd::integration {

// The API's number, and a value or rknnd_last_error().
struct Reply {
  int code = RKNN_SUCC;
  std::string text;
};

// Fails of the runner's own: below all numbers of the API.
inline constexpr int kBadCommand = -1000;
inline constexpr int kNotOnThisMachine = -1001;

using Words = std::vector<std::string>;

// FNV-1a: equal bytes, equal text.
class Hash {
 public:
  void Add(const void* bytes, size_t size) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    for (size_t i = 0; i < size; ++i) state_ = (state_ ^ at[i]) * kPrime;
  }
  [[nodiscard]] std::string text() const { return std::to_string(state_); }

 private:
  static constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t state_ = 0xcbf29ce484222325;
};

// Thread: any, one at a time.
class Commands {
 public:
  // words[0] is the command, as listed in commands.cc.
  Reply Do(const Words& words);

 private:
  struct Memory {
    rknn_tensor_mem* mem = nullptr;
    rknn_context context = 0;
    base::UniqueFd fd;  // of those we brought
  };

  using Method = Reply (Commands::*)(const Words&);
  struct Entry {
    Method method;
    size_t arguments;  // at least
  };
  static const std::map<std::string, Entry>& Table();

  Reply Init(const Words& words);
  Reply InitBytes(const Words& words);
  Reply InitShared(const Words& words);
  Reply InitBytesShared(const Words& words);
  Reply InitStorm(const Words& words);
  Reply Duplicate(const Words& words);
  Reply Destroy(const Words& words);
  Reply SetCoreMask(const Words& words);
  Reply SetBatchCores(const Words& words);
  Reply SetShape(const Words& words);
  Reply SetInputs(const Words& words);
  Reply SetPixels(const Words& words);
  Reply SetOneInput(const Words& words);
  Reply Run(const Words& words);
  Reply Repeat(const Words& words);
  Reply GetOutputs(const Words& words);
  Reply Compare(const Words& words);
  Reply CountCopies(const Words& words);
  Reply Report(const Words& words);
  Reply TellTime(const Words& words);
  Reply AskMemorySize(const Words& words);
  Reply AskSramSize(const Words& words);
  Reply Describe(const Words& words);

  Reply Create(const Words& words);
  Reply Import(const Words& words);
  Reply DestroyMemory(const Words& words);
  Reply Bind(const Words& words);
  Reply BindAll(const Words& words);
  Reply SetFrame(const Words& words);
  Reply Fill(const Words& words);
  Reply HashMemory(const Words& words);
  Reply CompareMemory(const Words& words);
  Reply PunchHole(const Words& words);
  Reply Shrink(const Words& words);
  Reply CloseFd(const Words& words);
  Reply ChurnMemories(const Words& words);
  Reply ChurnImports(const Words& words);
  Reply ChurnContexts(const Words& words);
  Reply SetCameraFrame(const Words& words);
  Reply PlaceFrame(const Words& words);
  Reply CreatePhysical(const Words& words);
  Reply SetInternal(const Words& words);
  Reply SetWeights(const Words& words);
  Reply AskInternalSize(const Words& words);
  Reply ImportOf(const Words& words);
  Reply Listen(const Words& words);
  Reply Hand(const Words& words);
  Reply Flip(const Words& words);
  Reply InitZeroCopy(const Words& words);
  Reply AskModelMemory(const Words& words);
  Reply ChurnFree(const Words& words);
  Reply TellToken(const Words& words);
  Reply InitFromToken(const Words& words);

  Reply Admit(const Words& words);

  Reply AskKey(const Words& words);
  Reply Peek(const Words& words);
  Reply Poke(const Words& words);

  // 0, which is no context, for names never heard.
  rknn_context Context(const std::string& name) const;
  rknn_tensor_mem* Mem(const std::string& name) const;

  // Handles and pointers stay when they are destroyed: tests use them again.
  std::map<std::string, rknn_context> contexts_;
  std::map<std::string, Memory> memories_;
  base::UniqueFd listener_;
};

// ---- shared by the files of the runner -------------------------------------

Reply Answer(int code, const std::string& text = "");
std::vector<char> ReadFile(const std::string& path);
// The attributes of all inputs or outputs; empty if the library gives none.
std::vector<rknn_tensor_attr> Attributes(rknn_context context, bool inputs);
// Largest |got - wanted| over the largest |wanted|; 1e30 for other sizes.
double RelativeError(const float* got, size_t count,
                     const std::vector<char>& wanted);

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_PROGRAMS_COMMANDS_H_
