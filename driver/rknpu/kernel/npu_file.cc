#include "driver/rknpu/kernel/npu_file.h"

#include <drm.h>
#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::rknpu {
namespace {

// Before it there is one queue for all cores.
constexpr uint32_t kOldest = 800;
// Its flag keeps addresses from getting lost.
constexpr uint32_t kFirstWithLimit = 907;
constexpr uint64_t kAddresses = uint64_t{1} << 32;

}  // namespace

std::string DriverVersion::Text() const {
  return absl::StrCat(number / 10000, ".", number / 100 % 100, ".",
                      number % 100);
}

// --- buffers -----------------------------------------------------------------

NpuBuffer::~NpuBuffer() { file_->Destroy(*this); }

absl::Status NpuBuffer::Sync(uint32_t flags, uint64_t offset,
                             uint64_t size) const {
  // The driver checks neither.
  if (offset > size_ || size > size_ - offset) {
    return absl::OutOfRangeError(
        absl::StrCat(size, " bytes from ", offset, " of a buffer of ", size_));
  }
  if (size == 0) return absl::OkStatus();
  constexpr char kNotForThis[] =
      "the NPU's driver has no caches to synchronise for this memory";
  if (!may_sync_.load(std::memory_order_relaxed)) {
    return absl::FailedPreconditionError(kNotForThis);
  }
  uapi::MemSync sync;
  sync.flags = flags;
  sync.obj_addr = token_;
  sync.offset = offset;
  sync.size = size;
  const int result = file_->Call(uapi::kMemSync, &sync);
  if (result == -EINVAL) {
    may_sync_.store(false, std::memory_order_relaxed);
    return absl::FailedPreconditionError(kNotForThis);
  }
  return result < 0 ? KernelError(-result, "MEM_SYNC") : absl::OkStatus();
}

absl::StatusOr<int> NpuBuffer::Export() const {
  if (!file_->node_.drm) {
    const int fd = static_cast<int>(handle_);
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return KernelError(errno, "a second fd of a dma-buf");
    return copy;
  }
  drm_prime_handle prime = {};
  prime.handle = handle_;
  prime.flags = DRM_CLOEXEC | DRM_RDWR;
  const int result = file_->kernel_.RestartedIoctl(
      file_->fd_, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime);
  if (result < 0) return KernelError(-result, "PRIME_HANDLE_TO_FD");
  return prime.fd;
}

// --- the file ----------------------------------------------------------------

absl::StatusOr<std::shared_ptr<NpuFile>> NpuFile::Open(KernelCalls& kernel,
                                                       const NpuNode& node) {
  const int fd = kernel.Open(node.path);
  if (fd < 0) {
    return KernelError(-fd, absl::StrCat("open '", node.path, "'"));
  }
  std::shared_ptr<NpuFile> file(new NpuFile(kernel, node, fd));
  RKNND_ASSIGN_OR_RETURN(file->version_.number,
                         file->Act(uapi::kGetDriverVersion, "GET_DRV_VERSION"));
  if (file->version_.number < kOldest) {
    return absl::UnimplementedError(absl::StrCat(
        "'", node.path, "': rknpu ", file->version_.Text(),
        " is too old for rknnd, which needs 0.8.0 or later (0.9.6 or later for "
        "more than one core): update the kernel"));
  }
  RKNND_ASSIGN_OR_RETURN(
      file->hardware_, file->Act(uapi::kGetHardwareVersion, "GET_HW_VERSION"));
  // Drivers that have none refuse, or answer 0.
  if (node.drm) {
    file->total_sram_ =
        file->Act(uapi::kGetTotalSram, "GET_TOTAL_SRAM_SIZE").value_or(0);
  }
  return file;
}

NpuFile::~NpuFile() { kernel_.Close(fd_); }

absl::StatusOr<uint32_t> NpuFile::Act(uint32_t action, const char* name) {
  uapi::Action call;
  call.flags = action;
  const int result = Call(uapi::kAction, &call);
  if (result < 0) {
    return KernelError(-result, absl::StrCat("ACTION ", name));
  }
  return call.value;
}

absl::StatusOr<uint32_t> NpuFile::Frequency() {
  return Act(uapi::kGetFrequency, "GET_FREQ");
}

absl::StatusOr<uint64_t> NpuFile::FreeSram() {
  if (total_sram_ == 0) return uint64_t{0};
  RKNND_ASSIGN_OR_RETURN(const uint32_t free,
                         Act(uapi::kGetFreeSram, "GET_FREE_SRAM_SIZE"));
  return uint64_t{free};
}

absl::StatusOr<std::unique_ptr<NpuBuffer>> NpuFile::Create(uint64_t size,
                                                           const Wish& wish) {
  uapi::MemCreate create;
  create.size = std::max<uint64_t>(size, 1);
  if (create.size > kAddresses) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the NPU's 4 GiB of addresses have no room for ", size, " bytes"));
  }
  if (node_.drm) create.flags |= uapi::kNonContiguous;
  create.flags |= wish.cached ? uapi::kCacheable : uapi::kWriteCombine;
  if (wish.is_task_table) create.flags |= uapi::kKernelMapping;
  if (version_.number >= kFirstWithLimit) create.flags |= uapi::kLimitAlignment;
  if (!node_.drm) create.flags |= uapi::kZeroing;
  if (wish.sram > 0 && total_sram_ > 0) {
    create.flags |= uapi::kTrySram;
    create.sram_size = wish.sram;
  }
  std::unique_ptr<NpuBuffer> buffer(new NpuBuffer(shared_from_this()));
  {
    base::MutexLock lock(mutex_);
    const int result = Call(uapi::kMemCreate, &create);
    if (result == -EFAULT) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the NPU's 4 GiB of addresses have no room for ", size,
                       " bytes: unload models, or end other users of the NPU"));
    }
    if (result < 0) {
      return KernelError(-result,
                         absl::StrCat("MEM_CREATE of ", size, " bytes"));
    }
  }
  buffer->handle_ = create.handle;
  buffer->size_ = create.size;
  buffer->token_ = create.obj_addr;
  buffer->address_ = create.dma_addr;
  buffer->sram_ = (create.flags & uapi::kTrySram) != 0
                      ? std::min(create.sram_size, create.size)
                      : 0;
  if (create.dma_addr > kAddresses - 1 ||
      create.size > kAddresses - create.dma_addr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the driver gave ", create.size,
        " bytes at an address beyond the 32 "
        "bits of the NPU's registers: this needs the NPU's IOMMU"));
  }
  if (wish.map) RKNND_RETURN_IF_ERROR(MapBuffer(*buffer));
  // Only the driver's ordinary pages are zero.
  if (buffer->sram_ > 0 && wish.map) {
    std::fill_n(buffer->bytes_.begin(), static_cast<ptrdiff_t>(buffer->sram_),
                std::byte{0});
    // What the CPU's cache holds of it must not come down on what the NPU
    // writes there later.
    const absl::Status clean = buffer->Sync(uapi::kToDevice, 0, buffer->sram_);
    if (!absl::IsFailedPrecondition(clean)) RKNND_RETURN_IF_ERROR(clean);
  }
  return buffer;
}

absl::Status NpuFile::MapBuffer(NpuBuffer& buffer) {
  uapi::MemMap map;
  map.handle = buffer.handle_;
  int fd = fd_;
  if (node_.drm) {
    const int result = Call(uapi::kMemMap, &map);
    if (result < 0) return KernelError(-result, "MEM_MAP");
  } else {
    fd = static_cast<int>(buffer.handle_);
  }
  // The whole object, always: less runs past the mapping where it has SRAM.
  const auto size = static_cast<size_t>(buffer.size_);
  int error = 0;
  std::byte* const data = kernel_.Map(fd, map.offset, size, &error);
  if (data == nullptr) {
    return KernelError(error, absl::StrCat("mmap of ", size, " bytes"));
  }
  buffer.bytes_ = {data, size};
  return absl::OkStatus();
}

void NpuFile::Destroy(NpuBuffer& buffer) {
  if (buffer.bytes_.data() != nullptr) {
    kernel_.Unmap(buffer.bytes_.data(), buffer.bytes_.size());
  }
  if (buffer.handle_ == 0) return;
  base::MutexLock lock(mutex_);
  if (buffer.imported_) {
    const auto found = imports_.find(buffer.identity_);
    if (found != imports_.end()) {
      if (found->second.expired()) {
        imports_.erase(found);
      } else if (node_.drm) {
        return;  // a later import of the same memory has the handle now
      }
    }
  }
  if (!node_.drm) {
    kernel_.Close(static_cast<int>(buffer.handle_));
    return;
  }
  uapi::MemDestroy destroy;
  destroy.handle = buffer.handle_;
  destroy.obj_addr = buffer.token_;
  // What cannot be given back is the kernel's to keep; nobody can act on it.
  (void)Call(uapi::kMemDestroy, &destroy);
}

absl::StatusOr<std::shared_ptr<NpuBuffer>> NpuFile::Import(int dma_buf) {
  std::pair<uint64_t, uint64_t> identity;
  if (!kernel_.Identify(dma_buf, &identity.first, &identity.second)) {
    return absl::InvalidArgumentError("not a descriptor of memory");
  }
  // Outlives the lock, as its end takes it.
  std::shared_ptr<NpuBuffer> buffer;
  base::MutexLock lock(mutex_);
  std::weak_ptr<NpuBuffer>& known = imports_[identity];
  buffer = known.lock();
  if (buffer != nullptr) return buffer;
  uapi::MemCreate query;
  if (node_.drm) {
    drm_prime_handle prime = {};
    prime.fd = dma_buf;
    const int result =
        kernel_.RestartedIoctl(fd_, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime);
    if (result < 0) {
      imports_.erase(identity);
      return KernelError(-result, "PRIME_FD_TO_HANDLE of a program's memory");
    }
    query.handle = prime.handle;
  } else {
    // The driver takes a reference of its own, under the same number.
    const int copy = fcntl(dma_buf, F_DUPFD_CLOEXEC, 1);
    if (copy < 0) {
      imports_.erase(identity);
      return KernelError(errno, "a second fd of a dma-buf");
    }
    query.handle = static_cast<uint32_t>(copy);
  }
  const int result = Call(uapi::kMemCreate, &query);
  if (result < 0) {
    imports_.erase(identity);
    if (node_.drm) {
      uapi::MemDestroy destroy;
      destroy.handle = query.handle;
      (void)Call(uapi::kMemDestroy, &destroy);
    } else {
      kernel_.Close(static_cast<int>(query.handle));
    }
    return KernelError(-result, "MEM_CREATE of a program's memory");
  }
  buffer.reset(new NpuBuffer(shared_from_this()));
  buffer->handle_ = query.handle;
  buffer->size_ = query.size;
  buffer->token_ = query.obj_addr;
  buffer->address_ = query.dma_addr;
  buffer->imported_ = true;
  buffer->identity_ = identity;
  known = buffer;
  return buffer;
}

int NpuFile::Submit(const Submission& job, uint32_t* counter, int64_t* ran) {
  uapi::Submit submit;
  submit.flags = uapi::kPc | uapi::kPingPong;
  submit.timeout = job.timeout_ms;
  submit.task_obj_addr = job.tasks->token_;
  submit.core_mask = job.core_mask;
  // Three cores have places of their own.
  const size_t first = std::popcount(job.core_mask) == 3 ? 2 : 0;
  for (size_t core = 0; core < job.ranges.size(); ++core) {
    submit.subcore_task[first + core] = job.ranges[core];
    submit.task_number += job.ranges[core].task_number;
  }
  // Chips with one core look here.
  submit.task_start = job.ranges[0].task_start;
  // Never restarted: it would run twice.
  const int result = kernel_.Ioctl(
      fd_, uapi::Request<uapi::Submit>(node_.drm, uapi::kSubmit), &submit);
  *counter = submit.task_counter;
  *ran = submit.hw_elapse_time;
  return -result;
}

absl::Status NpuFile::Reset() {
  return Act(uapi::kReset, "ACT_RESET").status();
}

}  // namespace rknnd::rknpu
