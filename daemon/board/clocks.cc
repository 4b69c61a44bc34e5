// The record is a file of ours, but it names files that root may write: only
// clocks are put back by it.

#include "daemon/board/clocks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"

namespace rknnd::board {
namespace {

constexpr char kDevfreq[] = "/sys/class/devfreq/";
constexpr char kCpufreq[] = "/sys/devices/system/cpu/cpufreq/";
constexpr uint64_t kKilohertz = 1000;

bool IsClockFile(const std::string& path) {
  return (absl::StartsWith(path, kDevfreq) ||
          absl::StartsWith(path, kCpufreq)) &&
         !absl::StrContains(path, "..");
}

}  // namespace

// Where the kernel keeps what.
struct Clocks::Clock {
  std::string name, folder;
  uint64_t unit = 1;  // of the numbers in its files, in Hz
  std::string governor, governors, now, min, max, set;
};

std::vector<Clocks::Clock> Clocks::Find() const {
  std::vector<Clock> clocks;
  for (const std::string& device : files_.List(kDevfreq)) {
    // "fdab0000.npu", "dmc"; a GPU's is none of ours.
    const char* name = absl::StrContains(device, "npu")   ? "npu"
                       : absl::StrContains(device, "dmc") ? "ddr"
                                                          : nullptr;
    if (name == nullptr) continue;
    const std::string folder = absl::StrCat(kDevfreq, device, "/");
    clocks.push_back({name, folder, 1, folder + "governor",
                      folder + "available_governors", folder + "cur_freq",
                      folder + "min_freq", folder + "max_freq",
                      folder + "userspace/set_freq"});
  }
  for (const std::string& policy : files_.List(kCpufreq)) {
    if (!absl::StartsWith(policy, "policy")) continue;
    const std::string folder = absl::StrCat(kCpufreq, policy, "/");
    clocks.push_back(
        {absl::StrCat("cpu", policy.substr(6)), folder, kKilohertz,
         folder + "scaling_governor", folder + "scaling_available_governors",
         folder + "scaling_cur_freq", folder + "scaling_min_freq",
         folder + "scaling_max_freq", folder + "scaling_setspeed"});
  }
  // NPU first, then DDR, then the CPU's clusters.
  std::stable_sort(
      clocks.begin(), clocks.end(), [](const Clock& a, const Clock& b) {
        const auto rank = [](const Clock& clock) {
          return clock.name == "npu" ? 0 : clock.name == "ddr" ? 1 : 2;
        };
        return rank(a) < rank(b);
      });
  return clocks;
}

transport::BoardClock Clocks::ReadClock(const Clock& clock) const {
  transport::BoardClock out;
  out.name = clock.name;
  out.hz = files_.Number(clock.now).value_or(0) * clock.unit;
  out.min_hz = files_.Number(clock.min).value_or(0) * clock.unit;
  out.max_hz = files_.Number(clock.max).value_or(0) * clock.unit;
  out.governor = files_.Line(clock.governor).value_or("");
  out.pinned =
      std::any_of(saved_.begin(), saved_.end(), [&](const Saved& saved) {
        return absl::StartsWith(saved.path, clock.folder);
      });
  return out;
}

std::vector<transport::BoardClock> Clocks::Read() const {
  std::vector<transport::BoardClock> clocks;
  for (const Clock& clock : Find()) clocks.push_back(ReadClock(clock));
  return clocks;
}

absl::StatusOr<std::vector<std::string>> Clocks::Pin() {
  std::vector<std::string> complaints;
  if (pins_ > 0) {
    ++pins_;
    return complaints;
  }
  const std::vector<Clock> clocks = Find();
  if (clocks.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this kernel shows no clock that could be pinned: there "
        "is none in '",
        files_.root(), kDevfreq, "' and '", files_.root(), kCpufreq, "'"));
  }
  for (const Clock& clock : clocks) {
    const absl::Status pinned = PinClock(clock);
    if (pinned.ok()) continue;
    complaints.push_back(
        absl::StrCat("clock '", clock.name,
                     "' cannot be pinned: ", std::string(pinned.message())));
  }
  if (saved_.empty()) return absl::FailedPreconditionError(complaints.front());
  pins_ = 1;
  return complaints;
}

absl::Status Clocks::PinClock(const Clock& clock) {
  const std::vector<std::string> governors =
      Words(files_.Line(clock.governors).value_or(""));
  const auto offers = [&](const char* governor) {
    return std::find(governors.begin(), governors.end(), governor) !=
           governors.end();
  };
  // The highest that the user's own limit allows, in the file's unit.
  const std::optional<uint64_t> highest = files_.Number(clock.max);
  absl::Status status = absl::NotFoundError(
      absl::StrCat("'", files_.root(), clock.max, "' says no rate"));
  if (offers("performance")) {
    status = Set(clock.governor, "performance");
    if (status.ok()) return status;
  }
  if (!highest.has_value()) return status;
  const std::string rate = absl::StrCat(*highest);
  if (offers("userspace")) {
    const size_t before = saved_.size();
    // What is there under another governor is no setting.
    status = Set(clock.governor, "userspace");
    if (status.ok()) status = Set(clock.set, rate);
    if (status.ok()) return status;
    PutBack(before);
  }
  const absl::Status floor = Set(clock.min, rate);
  // The first reason is nearer to what the user can change.
  return floor.ok() || absl::IsNotFound(status) ? floor : status;
}

absl::Status Clocks::Set(const std::string& path, const std::string& value) {
  const std::optional<std::string> before = files_.Line(path);
  if (!before.has_value()) {
    return absl::NotFoundError(
        absl::StrCat("'", files_.root(), path, "' cannot be read"));
  }
  saved_.push_back({path, *before});
  absl::Status status = WriteRecord();
  if (status.ok()) status = files_.Write(path, value);
  if (status.ok()) return status;
  saved_.pop_back();
  // A record of what was not changed does no harm.
  static_cast<void>(WriteRecord());
  return status;
}

std::vector<std::string> Clocks::PutBack(size_t count) {
  std::vector<std::string> complaints;
  std::vector<Saved> failed;
  while (saved_.size() > count) {
    Saved last = std::move(saved_.back());
    saved_.pop_back();
    // A clock that has gone has nothing to be put back.
    if (!files_.Exists(last.path)) continue;
    const absl::Status status = files_.Write(last.path, last.value);
    if (status.ok()) continue;
    complaints.push_back(
        absl::StrCat("a pinned clock could not be put back to "
                     "'",
                     last.value, "': ", std::string(status.message())));
    failed.push_back(std::move(last));
  }
  // The next start tries those again.
  const size_t kept = saved_.size();
  saved_.insert(saved_.end(), failed.rbegin(), failed.rend());
  static_cast<void>(WriteRecord());
  saved_.resize(kept);
  return complaints;
}

std::vector<std::string> Clocks::Unpin() {
  if (pins_ == 0 || --pins_ > 0) return {};
  return PutBack(0);
}

std::vector<std::string> Clocks::UnpinAll() {
  if (std::exchange(pins_, 0) == 0) return {};
  return PutBack(0);
}

std::vector<std::string> Clocks::Recover() {
  // The record is outside the root: it is this daemon's.
  const std::optional<std::string> text = Files().Text(record_);
  if (record_.empty() || !text.has_value()) return {};
  std::vector<std::string> lines;
  for (const absl::string_view line :
       absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits('\t', 1));
    if (parts.size() != 2 || !IsClockFile(parts[0])) {
      lines.push_back(absl::StrCat("'", record_, "': a line is no clock's"));
      continue;
    }
    saved_.push_back({parts[0], parts[1]});
  }
  const size_t count = saved_.size();
  for (std::string& complaint : PutBack(0)) lines.push_back(complaint);
  lines.push_back(absl::StrCat(
      "clocks that were pinned when the daemon ended without warning: ", count,
      " settings are as they were before"));
  return lines;
}

absl::Status Clocks::WriteRecord() const {
  if (record_.empty()) return absl::OkStatus();
  const auto failed = [](const char* what, const std::string& path) {
    return base::ToStatus(
        base::ErrnoError(errno, absl::StrCat(what, " '", path, "'")));
  };
  if (saved_.empty()) {
    if (unlink(record_.c_str()) == 0 || errno == ENOENT) {
      return absl::OkStatus();
    }
    return failed("unlink", record_);
  }
  std::string text;
  for (const Saved& saved : saved_) {
    absl::StrAppend(&text, saved.path, "\t", saved.value, "\n");
  }
  // Whole or not at all, also where the power goes.
  const std::string draft = record_ + ".new";
  const base::UniqueFd fd(
      open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) return failed("open", draft);
  if (write(fd.get(), text.data(), text.size()) !=
          static_cast<ssize_t>(text.size()) ||
      fsync(fd.get()) != 0) {
    return failed("write", draft);
  }
  if (std::rename(draft.c_str(), record_.c_str()) != 0) {
    return failed("rename", draft);
  }
  return absl::OkStatus();
}

}  // namespace rknnd::board
