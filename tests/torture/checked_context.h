// A context of one of the networks, with sets of input and output memory bound
// to it: allocated by the daemon, or made by the program and imported.

#ifndef TESTS_TORTURE_CHECKED_CONTEXT_H_
#define TESTS_TORTURE_CHECKED_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "tests/torture/networks.h"
#include "tests/torture/witness.h"

namespace rknnd::torture {

// Thread: one. What fails is noted; the object is then not valid().
class CheckedContext {
 public:
  enum class From { kFile, kBytes };
  CheckedContext(const Witness& witness, const NetworkFile& file, From from);
  // One more of the same model.
  CheckedContext(const Witness& witness, const NetworkFile& file,
                 const CheckedContext& other);
  ~CheckedContext();
  CheckedContext(const CheckedContext&) = delete;
  CheckedContext& operator=(const CheckedContext&) = delete;

  [[nodiscard]] bool valid() const { return context_ != 0; }
  [[nodiscard]] rknn_context get() const { return context_; }
  [[nodiscard]] const Arithmetic& arithmetic() const { return arithmetic_; }
  [[nodiscard]] const Network& network() const { return network_; }

  // One set of memory, bound as the next set; false, and noted, when refused.
  bool AddAllocatedSet();
  bool AddImportedSet();
  // Its input is the part of `inputs` from `offset`, which others read too; its
  // output is allocated.
  bool AddSharedSet(int inputs, uint64_t offset);

  [[nodiscard]] size_t sets() const { return sets_.size(); }
  [[nodiscard]] int32_t* input(size_t set) const;
  [[nodiscard]] int32_t* output(size_t set) const;
  // As programs do with memory they brought; false, and noted, when refused.
  [[nodiscard]] bool SyncInput(size_t set) const;
  [[nodiscard]] bool SyncOutput(size_t set) const;

 private:
  struct Memory {
    rknn_tensor_mem* mem = nullptr;
    base::UniqueFd fd;      // of imported memory
    base::Mapping mapping;  // likewise
  };
  struct Set {
    Memory input, output;
  };

  std::optional<Memory> Allocate();
  std::optional<Memory> MakeAndImport();
  std::optional<Memory> Import(int fd, uint64_t offset);
  bool Add(std::optional<Memory> input, std::optional<Memory> output);
  bool Bind(size_t set, const Memory& memory, rknn_query_cmd which);
  bool Sync(const Memory& memory, rknn_mem_sync_mode mode) const;

  const Witness& witness_;
  const Network network_;
  const Arithmetic arithmetic_;
  rknn_context context_ = 0;
  std::vector<Set> sets_;
};

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_CHECKED_CONTEXT_H_
