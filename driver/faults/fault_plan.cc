#include "driver/faults/fault_plan.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::driver {
namespace {

// So many at once are no test any more.
constexpr size_t kMaxFaults = 256;
// Fewer digits of a hash may be a name.
constexpr size_t kLeastDigits = 8;

bool SamePrefix(const std::string& sha256, const std::string& digits) {
  if (digits.size() < kLeastDigits || digits.size() > sha256.size()) {
    return false;
  }
  return std::equal(digits.begin(), digits.end(), sha256.begin(),
                    [](unsigned char given, unsigned char known) {
                      return std::tolower(given) == known;
                    });
}

bool IsAbout(const Fault& fault, const ModelNames& model) {
  return fault.model.empty() || fault.model == model.file ||
         fault.model == model.graph || SamePrefix(model.sha256, fault.model);
}

bool IsAbout(const Fault& fault, uint32_t core_mask) {
  return !fault.core.has_value() || (core_mask >> *fault.core & 1) != 0;
}

}  // namespace

FaultPlan::FaultPlan(uint32_t cores, bool has_clock)
    : cores_(cores), has_clock_(has_clock) {}

absl::StatusOr<FaultReport> FaultPlan::Set(const Fault& fault) {
  RKNND_RETURN_IF_ERROR(CheckFault(fault, cores_));
  if (fault.kind == FaultKind::kThrottle && !has_clock_) {
    return absl::FailedPreconditionError(
        "'throttle' needs a device that models a clock: start rknnd with "
        "--pace on, or use 'slow'");
  }
  FaultReport set;
  {
    base::MutexLock lock(mutex_);
    if (faults_.size() >= kMaxFaults) {
      return absl::ResourceExhaustedError(absl::StrCat(
          faults_.size(), " faults are set: clear some of them first"));
    }
    set.id = next_id_++;
    set.fault = fault;
    faults_[set.id] = set;
    Recount();
  }
  if (changed_) changed_(set, true);
  return set;
}

std::vector<FaultReport> FaultPlan::List() const {
  base::MutexLock lock(mutex_);
  std::vector<FaultReport> reports;
  for (const auto& [id, fault] : faults_) reports.push_back(fault);
  return reports;
}

absl::Status FaultPlan::Clear(uint64_t id) {
  std::map<uint64_t, FaultReport> cleared;
  {
    base::MutexLock lock(mutex_);
    if (id == 0) {
      cleared.swap(faults_);
    } else if (auto found = faults_.extract(id)) {
      cleared.insert(std::move(found));
    } else {
      return absl::NotFoundError(
          absl::StrCat("fault ", id, " is not set: rknnctl fault list"));
    }
    Recount();
  }
  for (const auto& [number, fault] : cleared) {
    if (changed_) changed_(fault, false);
  }
  return absl::OkStatus();
}

void FaultPlan::Recount() {
  any_ = !faults_.empty();
  incoherent_ =
      std::any_of(faults_.begin(), faults_.end(), [](const auto& numbered) {
        return numbered.second.fault.kind == FaultKind::kIncoherent;
      });
}

bool FaultPlan::Count(FaultReport& report) {
  const Fault& fault = report.fault;
  const uint64_t place = report.matched++;
  if (place < fault.after) return false;
  if ((place - fault.after + 1) % fault.every != 0) return false;
  if (fault.times != 0 && report.fired >= fault.times) return false;
  ++report.fired;
  return true;
}

JobFaults FaultPlan::OnJob(uint32_t core_mask, const ModelNames& model) {
  JobFaults hits;
  if (!any_.load(std::memory_order_relaxed)) return hits;
  base::MutexLock lock(mutex_);
  for (auto& [id, report] : faults_) {
    const Fault& fault = report.fault;
    JobFaults::Hit* hit = nullptr;
    switch (fault.kind) {
      case FaultKind::kCrash:
        hit = &hits.crash;
        break;
      case FaultKind::kDeadCore:
        hit = &hits.dead_core;
        break;
      case FaultKind::kHang:
        hit = &hits.hang;
        break;
      case FaultKind::kWrongStatus:
        hit = &hits.wrong_status;
        break;
      case FaultKind::kSlow:
        hit = &hits.slow;
        break;
      case FaultKind::kOutOfMemory:
      case FaultKind::kIncoherent:
      case FaultKind::kThrottle:
        continue;
    }
    if (!IsAbout(fault, core_mask) || !IsAbout(fault, model)) continue;
    if (!Count(report)) continue;
    *hit = {id, fault.ms, fault.factor, fault.status.value_or(1)};
  }
  return hits;
}

absl::Status FaultPlan::OnMemory(uint64_t bytes) {
  return Refuse(bytes, nullptr);
}

absl::Status FaultPlan::OnLoad(uint64_t bytes, const ModelNames& model) {
  return Refuse(bytes, &model);
}

absl::Status FaultPlan::Refuse(uint64_t bytes, const ModelNames* model) {
  if (!any_.load(std::memory_order_relaxed)) return absl::OkStatus();
  base::MutexLock lock(mutex_);
  for (auto& [id, report] : faults_) {
    const Fault& fault = report.fault;
    if (fault.kind != FaultKind::kOutOfMemory) continue;
    if (fault.bytes != 0 && bytes <= fault.bytes) continue;
    // One about a model lets memory alone.
    if (!fault.model.empty() && (model == nullptr || !IsAbout(fault, *model))) {
      continue;
    }
    if (!Count(report)) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        "the device has no memory left for ",
        model == nullptr ? std::string()
                         : absl::StrCat("model '", model->file, "' of "),
        bytes, " bytes (fault ", id, " on demand)"));
  }
  return absl::OkStatus();
}

bool FaultPlan::Has(uint64_t id) const {
  base::MutexLock lock(mutex_);
  return faults_.contains(id);
}

double FaultPlan::throttle() const {
  base::MutexLock lock(mutex_);
  double factor = 1;
  for (const auto& [id, report] : faults_) {
    if (report.fault.kind == FaultKind::kThrottle) {
      factor = std::max(factor, report.fault.factor);
    }
  }
  return factor;
}

}  // namespace rknnd::driver
