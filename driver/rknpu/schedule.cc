#include "driver/rknpu/schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/rknpu/relocated_commands.h"

namespace rknnd::rknpu {
namespace {

constexpr uint32_t kPooling = 0x60;  // enable mask of PPU and PPU_RDMA
constexpr uint64_t kPoolingOutput = 0x4001000000006070;

// The index of the first list of a set; -1: there is none.
int FirstListOf(const ProgramFile& file, uint32_t cores) {
  for (size_t l = 0; l < file.lists.size(); ++l) {
    if (file.lists[l].cores == cores && file.lists[l].core == 0) {
      return static_cast<int>(l);
    }
  }
  return -1;
}

class Cutter {
 public:
  Cutter(const ProgramFile& file, uint32_t cores, uint32_t first_list)
      : file_(file), cores_(cores), first_list_(first_list) {}

  absl::StatusOr<std::vector<Step>> Cut() {
    for (uint32_t n = 0; n < file_.nodes.size(); ++n) {
      RKNND_RETURN_IF_ERROR(AddNode(n));
    }
    EndPiece();
    for (const Step& step : steps_) {
      if (step.on_cpu) continue;
      for (const TaskRange& range : step.piece.ranges) {
        RKNND_RETURN_IF_ERROR(CheckLinks(range));
      }
    }
    return std::move(steps_);
  }

 private:
  uint32_t TasksOf(uint32_t node, uint32_t core) const {
    return file_.nodes[node].task_counts[first_list_ + core];
  }

  // How many of the set's cores share the node; 0: it has no tasks.
  absl::StatusOr<uint32_t> CoresOf(uint32_t n) const {
    const uint32_t count = TasksOf(n, 0);
    uint32_t sharing = 0;
    for (uint32_t core = 0; core < cores_; ++core) {
      const uint32_t own = TasksOf(n, core);
      if (own == 0) continue;
      if (own != count) sharing = cores_ + 1;
      ++sharing;
    }
    if (sharing == 0 || sharing == cores_ || (sharing == 1 && count != 0)) {
      return sharing;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", cores_, " cores have different numbers of tasks for node '",
        file_.nodes[n].name, "'"));
  }

  absl::Status AddNode(uint32_t n) {
    const Node& node = file_.nodes[n];
    RKNND_ASSIGN_OR_RETURN(const uint32_t sharing, CoresOf(n));
    if (sharing == 0) {
      if (node.on_npu || IsPortNode(node)) return absl::OkStatus();
      EndPiece();
      steps_.push_back({.on_cpu = true, .node = n, .piece = {}});
      return absl::OkStatus();
    }
    if (!node.on_npu && !IsPortNode(node)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "node '", node.name, "' is for the CPU and has tasks of the NPU"));
    }
    for (uint32_t k = 0; k < TasksOf(n, 0); ++k) {
      if (piece_ != nullptr && piece_->cores != sharing) EndPiece();
      if (piece_ == nullptr) BeginPiece(n, k, sharing);
      for (uint32_t core = 0; core < sharing; ++core) {
        ++piece_->ranges[core].count;
      }
      piece_->last_node = n;
      RKNND_ASSIGN_OR_RETURN(const bool is_barrier, IsBarrier(n, k, sharing));
      if (is_barrier) EndPiece();
    }
    return absl::OkStatus();
  }

  void BeginPiece(uint32_t n, uint32_t k, uint32_t sharing) {
    steps_.emplace_back();
    piece_ = &steps_.back().piece;
    piece_->cores = sharing;
    piece_->first_node = n;
    for (uint32_t core = 0; core < sharing; ++core) {
      piece_->ranges[core].first =
          file_.nodes[n].first_tasks[first_list_ + core] + k;
    }
  }
  void EndPiece() { piece_ = nullptr; }

  // Whether task k of the node only makes the cores wait for each other.
  absl::StatusOr<bool> IsBarrier(uint32_t n, uint32_t k,
                                 uint32_t sharing) const {
    uint32_t barriers = 0;
    for (uint32_t core = 0; core < sharing; ++core) {
      const uint32_t task = file_.nodes[n].first_tasks[first_list_ + core] + k;
      barriers += WritesConstant(file_.tasks[task]) ? 1 : 0;
    }
    if (barriers == 0 || barriers == sharing) return barriers != 0;
    return absl::InvalidArgumentError(absl::StrCat(
        "not all ", sharing, " cores wait for each other after task ", k,
        " of node '", file_.nodes[n].name, "'"));
  }

  // A pooling whose output is a constant of the file: nobody reads it.
  bool WritesConstant(const TaskEntry& task) const {
    if (task.enable_mask != kPooling) return false;
    const uint64_t first = task.commands / sizeof(uint64_t);
    const uint64_t end = first + task.words;
    auto relocation = std::lower_bound(
        file_.relocations.begin(), file_.relocations.end(), first,
        [](const Relocation& a, uint64_t word) { return a.word < word; });
    for (; relocation != file_.relocations.end() && relocation->word < end;
         ++relocation) {
      const uint64_t command = file_.commands[relocation->word];
      if (WithValue(command, 0) != kPoolingOutput) continue;
      const TensorClass kind = file_.tensors[relocation->tensor].kind;
      return kind == TensorClass::kWeights || kind == TensorClass::kConstant;
    }
    return false;
  }

  // The hardware is told of the first task only and follows the links.
  absl::Status CheckLinks(const TaskRange& range) const {
    for (uint32_t i = 1; i < range.count; ++i) {
      const uint32_t number = range.first + i;
      const TaskEntry& task = file_.tasks[number - 1];
      const TaskEntry& next = file_.tasks[number];
      const uint64_t link = task.commands / sizeof(uint64_t) + task.words;
      constexpr uint64_t kAddress = 0x0101000000000010;
      constexpr uint64_t kLength = 0x0101000000000014;
      const uint64_t address = file_.commands[link];
      const uint64_t length = file_.commands[link + 1];
      const uint32_t pairs = (next.words + kChainWords + 1) / 2 - 1;
      constexpr uint32_t kLengthBits = 0xffff;
      if (WithValue(address, 0) == kAddress &&
          ValueOf(address) == next.commands &&
          WithValue(length, 0) == kLength &&
          (ValueOf(length) & kLengthBits) == pairs) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "task ", number - 1, " of node '", file_.nodes[task.node].name,
          "' does not lead to task ", number, ", which follows it"));
    }
    return absl::OkStatus();
  }

  const ProgramFile& file_;
  const uint32_t cores_, first_list_;
  std::vector<Step> steps_;
  Piece* piece_ = nullptr;  // the one that tasks are added to
};

}  // namespace

bool IsPortNode(const Node& node) {
  return node.type == "InputOperator" || node.type == "OutputOperator";
}

bool HasLists(const ProgramFile& file, uint32_t cores) {
  return FirstListOf(file, cores) >= 0;
}

absl::StatusOr<std::vector<Step>> MakeSchedule(const ProgramFile& file,
                                               uint32_t cores) {
  const int first_list = FirstListOf(file, cores);
  if (first_list < 0 || cores > kMostCores) {
    return absl::FailedPreconditionError(
        absl::StrCat("the file has no lists of tasks for ", cores, " cores"));
  }
  return Cutter(file, cores, static_cast<uint32_t>(first_list)).Cut();
}

}  // namespace rknnd::rknpu
