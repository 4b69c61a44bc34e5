#include "driver/rknpu/kernel/kernel_backend.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/posix/blocked_signals.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "driver/memory/cache_sync.h"
#include "driver/rknpu/schedule.h"

namespace rknnd::rknpu {
namespace {

constexpr char kHeapName[] = "rknpu";
// Older drivers lose jobs of cores 1 and 2.
constexpr uint32_t kFirstSound = 906;

// A part of a buffer.
class KernelMemory final : public PlacedMemory {
 public:
  KernelMemory(std::shared_ptr<const NpuBuffer> buffer, uint64_t offset,
               std::span<std::byte> bytes, base::UniqueFd dma_buf)
      : buffer_(std::move(buffer)),
        offset_(offset),
        bytes_(bytes),
        dma_buf_(std::move(dma_buf)) {}

  [[nodiscard]] uint64_t address() const override {
    return buffer_->address() + offset_;
  }
  [[nodiscard]] std::span<std::byte> bytes() const override { return bytes_; }

  absl::Status Sync(uint64_t offset, uint64_t bytes, SyncSide side) const {
    const absl::Status status = buffer_->Sync(
        side == SyncSide::kToNpu ? uapi::kToDevice : uapi::kFromDevice,
        offset_ + offset, bytes);
    if (!absl::IsFailedPrecondition(status)) return status;
    // Another driver's memory, or memory that no CPU caches.
    return SyncByDmaBuf(side);
  }

 private:
  absl::Status SyncByDmaBuf(SyncSide side) const {
    if (!dma_buf_.valid() || !driver::IsDmaBuf(dma_buf_.get())) {
      return absl::OkStatus();
    }
    return side == SyncSide::kToNpu
               ? driver::EndCpuAccess(dma_buf_.get(), driver::CpuAccess::kWrite)
               : driver::BeginCpuAccess(dma_buf_.get(),
                                        driver::CpuAccess::kRead);
  }

  const std::shared_ptr<const NpuBuffer> buffer_;
  const uint64_t offset_;
  const std::span<std::byte> bytes_;
  const base::UniqueFd dma_buf_;  // of memory that is not the driver's
};

class KernelTasks final : public PlacedTasks {
 public:
  KernelTasks(std::unique_ptr<NpuBuffer> table, uint32_t tasks)
      : buffer(std::move(table)), count(tasks) {}
  const std::unique_ptr<NpuBuffer> buffer;
  const uint32_t count;
};

// Each piece of memory is a buffer of the driver's, handed on as a dma-buf.
class NpuHeap final : public driver::Heap {
 public:
  explicit NpuHeap(std::shared_ptr<NpuFile> file) : file_(std::move(file)) {}
  [[nodiscard]] const std::string& name() const override { return name_; }

  absl::StatusOr<driver::Allocation> Allocate(uint64_t size) override {
    return AllocateWithSram(size, 0);
  }
  absl::StatusOr<driver::Allocation> AllocateWithSram(uint64_t size,
                                                      uint64_t sram) override {
    if (size == 0) {
      return absl::InvalidArgumentError("a buffer cannot have 0 bytes");
    }
    // The memory is the dma-buf's from now on; whoever wants the NPU to reach
    // it imports that.
    RKNND_ASSIGN_OR_RETURN(
        const std::unique_ptr<NpuBuffer> buffer,
        file_->Create(size, {.sram = sram, .map = sram > 0}));
    RKNND_ASSIGN_OR_RETURN(const int fd, buffer->Export());
    return driver::Allocation{base::UniqueFd(fd), buffer->size(), traits(),
                              buffer->sram()};
  }

 private:
  const std::string name_ = kHeapName;
  const std::shared_ptr<NpuFile> file_;
};

std::string CoresText(uint32_t cores) {
  std::string text = std::popcount(cores) > 1 ? "cores" : "core";
  for (uint32_t core = 0; core < 32; ++core) {
    if ((cores >> core & 1) != 0) absl::StrAppend(&text, " ", core);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelBackend>> KernelBackend::Open(
    KernelCalls& kernel, const NpuNode& node, const KernelOptions& options) {
  if (options.cores == 0 || options.cores > kMostCores) {
    return absl::InvalidArgumentError(
        absl::StrCat("an NPU with ", options.cores, " cores is not known"));
  }
  RKNND_ASSIGN_OR_RETURN(std::shared_ptr<NpuFile> file,
                         NpuFile::Open(kernel, node));
  // Before any core is asked for anything: the self-test is a program of that
  // SoC's, and so are all compiled models that are run.
  if (file->hardware() != uapi::kRk3588Hardware) {
    return absl::FailedPreconditionError(
        absl::StrCat("the NPU at '", node.path,
                     "' is not an RK3588's, whose compiled models "
                     "alone are run"));
  }
  std::unique_ptr<KernelBackend> backend(
      new KernelBackend(std::move(file), options));
  RKNND_ASSIGN_OR_RETURN(backend->self_test_, SelfTest::Make(backend->file_));
  backend->gate_.EnterAlone();
  const uint32_t failed = backend->TestCores((1U << options.cores) - 1);
  backend->gate_.SetLost(failed);
  backend->gate_.LeaveAlone();
  if (std::popcount(failed) == static_cast<int>(options.cores)) {
    return absl::UnavailableError(absl::StrCat(
        "no core of the NPU passed its self-test (rknpu ",
        backend->file_->version().Text(),
        "): see 'dmesg | grep -i rknpu', and boot the board again"));
  }
  return backend;
}

// --- memory ------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<PlacedMemory>> KernelBackend::Allocate(
    uint64_t bytes) {
  RKNND_ASSIGN_OR_RETURN(std::shared_ptr<const NpuBuffer> buffer,
                         file_->Create(bytes, {}));
  const std::span<std::byte> span =
      buffer->bytes().first(static_cast<size_t>(bytes));
  return std::make_unique<KernelMemory>(std::move(buffer), 0, span,
                                        base::UniqueFd());
}

absl::StatusOr<std::unique_ptr<PlacedMemory>> KernelBackend::Place(
    std::span<std::byte> bytes) {
  return absl::UnimplementedError(absl::StrCat(
      bytes.size(),
      " bytes of memory are no dma-buf, which is all that the "
      "NPU's driver can reach: let rknnd make the memory (rknn_create_mem), or "
      "bring a dma-buf"));
}

std::shared_ptr<const void> KernelBackend::Import(int dma_buf) {
  absl::StatusOr<std::shared_ptr<NpuBuffer>> buffer = file_->Import(dma_buf);
  // A job that wants it is told why not.
  return buffer.ok() ? *std::move(buffer) : nullptr;
}

absl::StatusOr<std::unique_ptr<PlacedMemory>> KernelBackend::PlaceDmaBuf(
    int dma_buf, uint64_t offset, std::span<std::byte> bytes) {
  if (dma_buf < 0) return Place(bytes);
  RKNND_ASSIGN_OR_RETURN(std::shared_ptr<const NpuBuffer> buffer,
                         file_->Import(dma_buf));
  if (offset > buffer->size() || bytes.size() > buffer->size() - offset) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory has ", buffer->size(), " bytes for the NPU, and ",
                     bytes.size(), " from ", offset, " are wanted"));
  }
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd copy,
                         base::ToStatusOr(base::Duplicate(dma_buf)));
  return std::make_unique<KernelMemory>(std::move(buffer), offset, bytes,
                                        std::move(copy));
}

absl::StatusOr<std::unique_ptr<PlacedTasks>> KernelBackend::PlaceTable(
    std::span<const TaskEntry> tasks, uint64_t commands) {
  RKNND_ASSIGN_OR_RETURN(std::unique_ptr<NpuBuffer> buffer,
                         file_->Create(tasks.size() * sizeof(uapi::TaskRow),
                                       {.is_task_table = true}));
  std::byte* to = buffer->bytes().data();
  for (const TaskEntry& task : tasks) {
    uapi::TaskRow row;
    row.flags = task.flags;
    row.op_idx = task.node;
    row.enable_mask = task.enable_mask;
    row.int_mask = task.interrupt_mask;
    row.int_clear = task.interrupt_clear;
    row.regcfg_amount = task.words;
    row.regcfg_offset = task.first_word;
    row.regcmd_addr = commands + task.commands;
    std::memcpy(to, &row, sizeof row);
    to += sizeof row;
  }
  RKNND_RETURN_IF_ERROR(buffer->Sync(uapi::kToDevice, 0, buffer->size()));
  return std::make_unique<KernelTasks>(std::move(buffer),
                                       static_cast<uint32_t>(tasks.size()));
}

absl::Status KernelBackend::Sync(const PlacedMemory& memory, uint64_t offset,
                                 uint64_t bytes, SyncSide side) {
  return static_cast<const KernelMemory&>(memory).Sync(offset, bytes, side);
}

std::unique_ptr<driver::Heap> KernelBackend::MakeHeap() const {
  return std::make_unique<NpuHeap>(file_);
}

// --- jobs --------------------------------------------------------------------

bool KernelBackend::CanGang(uint32_t cores) const {
  // The driver takes 5 and 6, starts nothing, and waits.
  const bool known = cores == 3 || cores == 7;
  return std::popcount(cores) < 2 || (known && (cores & ~gate_.usable()) == 0);
}

absl::Status KernelBackend::Run(const NpuJob& job) {
  const auto& table = static_cast<const KernelTasks&>(*job.table);
  uint32_t wanted = 0;
  uint32_t tasks = 0;
  for (const CoreTasks& core : job.cores) {
    if (core.core >= options_.cores) {
      return absl::InvalidArgumentError(
          absl::StrCat("the NPU has no core ", core.core));
    }
    if (core.tasks.count == 0 || core.tasks.first > table.count ||
        core.tasks.count > table.count - core.tasks.first) {
      return absl::InvalidArgumentError(
          absl::StrCat("tasks ", core.tasks.first, " and ", core.tasks.count,
                       " further ones are not in a table of ", table.count));
    }
    wanted |= 1U << core.core;
    tasks += core.tasks.count;
  }
  if (wanted == 0 ||
      std::popcount(wanted) != static_cast<int>(job.cores.size()) ||
      (std::popcount(wanted) > 1 && wanted != 3 && wanted != 7)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the driver has no jobs for cores with mask ", wanted));
  }
  const auto stopped = [&job] {
    return (job.stop != nullptr && job.stop->load()) ||
           (job.stop_too != nullptr && job.stop_too->load());
  };
  const uint32_t cores = gate_.Enter(wanted);
  if (cores == 0) {
    return absl::UnavailableError(absl::StrCat(
        CoresText(wanted),
        " of the NPU failed the self-test and cannot be "
        "used: see 'dmesg | grep -i rknpu', and boot the board again"));
  }
  const uint64_t era = era_.load();
  int error = 0;
  uint32_t counter = 0;
  int64_t ran = 0;
  bool cancelled = false;
  {
    const absl::Cleanup leave = [this, cores] { gate_.Leave(cores); };
    cancelled = stopped();
    if (!cancelled) {
      std::array<uapi::SubcoreTask, kMostCores> ranges = {};
      for (const CoreTasks& core : job.cores) {
        const uint32_t on =
            cores == wanted ? core.core
                            : static_cast<uint32_t>(std::countr_zero(cores));
        ranges[on] = {core.tasks.first, core.tasks.count};
      }
      // Older drivers end a job that a signal interrupts while the hardware
      // goes on with it.
      const base::BlockedSignals no_signals;
      error = file_->Submit({.tasks = table.buffer.get(),
                             .core_mask = cores,
                             .timeout_ms = options_.deadline_ms,
                             .ranges = ranges},
                            &counter, &ran);
    }
  }
  if (cancelled) return absl::CancelledError("the job was stopped");
  if (error == 0 && counter == tasks) return absl::OkStatus();
  if (error == ENODEV || error == ENXIO) {
    return absl::UnavailableError("the NPU's driver has gone away");
  }
  if (error == ENOMEM || error == EACCES || error == EPERM || error == EBADF ||
      error == EFAULT || error == ENOTTY) {
    // It was not begun.
    return KernelError(error, "SUBMIT");
  }
  // A job that the hardware did not finish ends with ETIMEDOUT, after a reset.
  // EINVAL is what all others get when somebody resets the NPU, and what one
  // gets that never began. Neither is a reason to reset it again, under other
  // programs, while cores pass their self-test.
  const bool hung = error != EINVAL;
  const bool first =
      Recover(era, /*was_reset=*/error == ETIMEDOUT || error == EINVAL);
  if (!hung) {
    return absl::AbortedError(
        absl::StrCat("the NPU was reset under the job on ", CoresText(cores),
                     first ? ", by another program or by its driver" : ""));
  }
  if (error == 0) {
    return absl::DeadlineExceededError(
        absl::StrCat("the NPU reported the end of ", counter, " of ", tasks,
                     " tasks on ", CoresText(cores), ", and was reset"));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "the job did not finish on ", CoresText(cores), " within ",
      options_.deadline_ms, " ms (", std::strerror(error), " after task ",
      counter, " of ", tasks, "), and the NPU was reset"));
}

uint32_t KernelBackend::TestCores(uint32_t cores) {
  const base::BlockedSignals no_signals;
  uint32_t failed = 0;
  for (uint32_t core = 0; core < options_.cores; ++core) {
    if ((cores >> core & 1) == 0) continue;
    const absl::Status status = self_test_->Run(core, options_.self_test_ms);
    if (status.ok()) continue;
    failed |= 1U << core;
    const bool old = file_->version().number < kFirstSound;
    Log(absl::StrCat("core ", core,
                     " of the NPU failed its self-test: ", status.message(),
                     old ? absl::StrCat(". Driver ", file_->version().Text(),
                                        " has known faults on cores 1 and 2: "
                                        "update to 0.9.6 or later")
                         : ""));
  }
  return failed;
}

bool KernelBackend::Recover(uint64_t era, bool was_reset) {
  // All that are in the driver come back first.
  gate_.EnterAlone();
  const absl::Cleanup leave = [this] { gate_.LeaveAlone(); };
  if (era_.load() != era) return false;
  ++era_;
  ++resets_;
  absl::Status reset;
  if (!was_reset) reset = file_->Reset();
  // A core that is lost is lost until the daemon starts again: in the driver a
  // job of it may still be registered whose memory is gone.
  uint32_t failed = TestCores(gate_.usable());
  // What the driver did by itself may not have been enough.
  if (failed != 0) {
    ++resets_;
    reset.Update(file_->Reset());
    failed = TestCores(failed);
    gate_.SetLost(failed);
  }
  Log(absl::StrCat("the NPU was reset",
                   reset.ok() ? "" : absl::StrCat(" (", reset.message(), ")"),
                   failed == 0
                       ? "; all cores passed their self-test"
                       : absl::StrCat("; ", CoresText(failed),
                                      " failed the self-test again, and is not "
                                      "used until rknnd starts again")));
  return true;
}

absl::Status KernelBackend::Reset() {
  gate_.EnterAlone();
  const absl::Cleanup leave = [this] { gate_.LeaveAlone(); };
  ++era_;
  ++resets_;
  RKNND_RETURN_IF_ERROR(file_->Reset());
  const uint32_t failed = TestCores(gate_.usable());
  gate_.SetLost(failed);
  if (failed == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(CoresText(failed), " failed the self-test after a reset"));
}

}  // namespace rknnd::rknpu
