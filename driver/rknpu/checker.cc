#include "driver/rknpu/checker.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/rknpu/footprint.h"
#include "driver/rknpu/register_values.h"
#include "driver/rknpu/registers/registers.h"

namespace rknnd::rknpu {
namespace {

class Checker {
 public:
  Checker(const ProgramFile& file, const Placement& placement)
      : file_(file), placement_(placement), registers_(file) {
    ports_.may_be_bound.resize(file.tensors.size());
    ports_.touched.resize(file.tensors.size());
    ranges_.resize(file.tensors.size());
    for (size_t i = 0; i < file.tensors.size(); ++i) {
      const TensorClass kind = file.tensors[i].kind;
      ports_.may_be_bound[i] =
          kind == TensorClass::kInput || kind == TensorClass::kOutput;
    }
  }

  absl::Status CheckJob(const TaskRange& tasks) {
    registers_.BeginJob();
    for (uint32_t t = tasks.first; t < tasks.first + tasks.count; ++t) {
      const absl::Status status = CheckTask(file_.tasks[t]);
      if (status.ok()) continue;
      return base::Annotate(
          status, absl::StrCat("task ", t, " of node '",
                               file_.nodes[file_.tasks[t].node].name, "'"));
    }
    return absl::OkStatus();
  }

  CheckedPorts ports() && {
    for (size_t t = 0; t < ranges_.size(); ++t) {
      std::sort(ranges_[t].begin(), ranges_[t].end());
      int64_t& end = ports_.touched[t];
      for (const auto& [first, last] : ranges_[t]) {
        if (first <= end) end = std::max(end, last);
      }
    }
    return std::move(ports_);
  }

 private:
  absl::Status CheckTask(const TaskEntry& task) {
    if (!IsKnownMask(task.enable_mask)) {
      return absl::UnimplementedError(
          absl::StrCat("it uses the blocks 0x", absl::Hex(task.enable_mask),
                       ", which are not known together"));
    }
    RKNND_RETURN_IF_ERROR(registers_.BeginTask(task));
    RKNND_ASSIGN_OR_RETURN(const std::vector<Access> accesses,
                           FootprintOf(registers_, task.enable_mask));
    for (const Access& access : accesses) {
      RKNND_RETURN_IF_ERROR(CheckAccess(access));
    }
    registers_.EndTask();
    return absl::OkStatus();
  }

  absl::Status CheckAccess(const Access& access) {
    const RegisterValues::Value base = registers_.At(access.address_register);
    if (!base.is_there || base.tensor < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the address in ", NameOf(access.address_register),
                       " is no tensor's"));
    }
    const auto t = static_cast<size_t>(base.tensor);
    const Tensor& tensor = file_.tensors[t];
    const TensorHome& home = placement_.homes[t];
    const int64_t first = int64_t{base.value} + access.first;
    const int64_t end = int64_t{base.value} + access.end;
    const auto offset = static_cast<int64_t>(home.offset);
    const bool is_allowed = home.home != Home::kNowhere &&
                            !(access.writes && home.home == Home::kConstants) &&
                            offset + first >= 0 &&
                            offset + end <= SizeOf(home.home);
    if (!is_allowed) {
      return absl::InvalidArgumentError(absl::StrCat(
          access.writes ? "it writes" : "it reads", " the bytes ", first,
          " to ", end, " of tensor '", tensor.name, "', which has ",
          tensor.bytes, " (", NameOf(access.address_register), ")"));
    }
    const bool is_inside =
        first >= 0 && end <= static_cast<int64_t>(tensor.bytes);
    const bool is_input = tensor.kind == TensorClass::kInput;
    if (!is_inside || (access.writes && is_input)) {
      ports_.may_be_bound[t] = false;
    }
    if (ports_.may_be_bound[t] && access.writes != is_input) {
      ranges_[t].emplace_back(first, end);
    }
    return absl::OkStatus();
  }

  int64_t SizeOf(Home home) const {
    switch (home) {
      case Home::kNowhere:
        break;
      case Home::kConstants:
        return static_cast<int64_t>(placement_.constant_bytes);
      case Home::kPrivate:
        return static_cast<int64_t>(placement_.private_bytes);
      case Home::kInternal:
        return static_cast<int64_t>(file_.internal_bytes);
    }
    return 0;
  }

  const ProgramFile& file_;
  const Placement& placement_;
  RegisterValues registers_;
  CheckedPorts ports_;
  // By tensor: of ports, what tasks read or write.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> ranges_;
};

}  // namespace

bool IsKnownMask(uint32_t enable_mask) {
  return enable_mask == 0x1d || enable_mask == 0x0d || enable_mask == 0x18 ||
         enable_mask == 0x60;
}

absl::StatusOr<CheckedPorts> CheckProgram(
    const ProgramFile& file, const Placement& placement,
    std::span<const std::vector<Step>> schedules) {
  Checker checker(file, placement);
  for (const std::vector<Step>& schedule : schedules) {
    for (const Step& step : schedule) {
      if (step.on_cpu) continue;
      for (uint32_t core = 0; core < step.piece.cores; ++core) {
        RKNND_RETURN_IF_ERROR(checker.CheckJob(step.piece.ranges[core]));
      }
    }
  }
  return std::move(checker).ports();
}

}  // namespace rknnd::rknpu
