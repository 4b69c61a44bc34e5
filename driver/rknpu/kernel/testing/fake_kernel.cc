#include "driver/rknpu/kernel/testing/fake_kernel.h"

#include <drm.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <span>

namespace rknnd::rknpu::testing {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kOffsetOfHandle = 0x100000000;
constexpr uint32_t kNumberMask = 0xff;

std::byte* MapFd(int fd, size_t size) {
  void* const data =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

}  // namespace

// A buffer: the file that a program maps, and what the NPU sees.
struct FakeKernel::Object {
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() {
    // Freed memory holds nothing good for the NPU.
    if (cached) delete[] npu;
    if (cpu != nullptr) munmap(cpu, size);
    if (fd >= 0) close(fd);
  }
  int fd = -1;
  uint64_t size = 0, token = 0, address = 0, sram = 0;
  uint32_t flags = 0;
  bool foreign = false, cached = false;
  std::byte* cpu = nullptr;
  std::byte* npu = nullptr;  // cpu, unless cached
};

FakeKernel::FakeKernel() = default;

FakeKernel::~FakeKernel() {
  for (const auto& [fd, path] : files_) close(fd);
}

void FakeKernel::FailCall(uint64_t number, int error) {
  const Lock lock(mutex_);
  failures_[number] = error;
}

void FakeKernel::Expect(std::vector<SubmitFault> faults) {
  const Lock lock(mutex_);
  faults_.assign(faults.begin(), faults.end());
}

uint64_t FakeKernel::calls() const {
  const Lock lock(mutex_);
  return calls_;
}

uint64_t FakeKernel::TakeCount(uapi::Number number) {
  const Lock lock(mutex_);
  return std::exchange(counts_[number], 0);
}

size_t FakeKernel::buffers() const {
  const Lock lock(mutex_);
  return handles_.size();
}

size_t FakeKernel::open_files() const {
  const Lock lock(mutex_);
  return files_.size();
}

std::vector<std::string> FakeKernel::complaints() const {
  const Lock lock(mutex_);
  return complaints_;
}

uint64_t FakeKernel::resets() const {
  const Lock lock(mutex_);
  return resets_;
}

int FakeKernel::Fate() {
  const auto found = failures_.find(calls_++);
  return found == failures_.end() ? 0 : found->second;
}

std::vector<std::string> FakeKernel::List(const std::string& folder) {
  const Lock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [path, node] : nodes) {
    if (path.compare(0, folder.size() + 1, folder + "/") != 0) continue;
    const std::string name = path.substr(folder.size() + 1);
    if (name.find('/') == std::string::npos) names.push_back(name);
  }
  return names;
}

int FakeKernel::MakeFd(uint64_t size) {
  const int fd = memfd_create("fake", MFD_CLOEXEC);
  if (fd >= 0 && ftruncate(fd, static_cast<off_t>(size)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

int FakeKernel::Open(const std::string& path) {
  const Lock lock(mutex_);
  if (const int error = Fate(); error != 0) return -error;
  const auto node = nodes.find(path);
  if (node == nodes.end()) return -ENOENT;
  if (node->second.open_error != 0) return -node->second.open_error;
  const int fd = MakeFd(0);
  if (fd < 0) return -EMFILE;
  files_[fd] = path;
  return fd;
}

void FakeKernel::Close(int fd) {
  const Lock lock(mutex_);
  if (files_.erase(fd) > 0) {
    // Handles go with their file.
    if (files_.empty()) handles_.clear();
  } else {
    handles_.erase(static_cast<uint32_t>(fd));
  }
  close(fd);
}

int FakeKernel::RestartedIoctl(int fd, uint64_t request, void* argument) {
  return Ioctl(fd, request, argument);
}

int FakeKernel::Ioctl(int fd, uint64_t request, void* argument) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (const int error = Fate(); error != 0) return -error;
  const auto file = files_.find(fd);
  if (file == files_.end()) {
    Complain("a call on a file that is not open");
    return -EBADF;
  }
  const FakeNode& node = nodes[file->second];
  const bool drm = file->second != "/dev/rknpu";
  if (request == DRM_IOCTL_VERSION) {
    auto& about = *static_cast<drm_version*>(argument);
    std::strncpy(about.name, node.driver.c_str(), about.name_len);
    std::strncpy(about.desc, node.description.c_str(), about.desc_len);
    return drm ? 0 : -ENOTTY;
  }
  if (node.driver != "rknpu") return -ENOTTY;
  if (request == DRM_IOCTL_PRIME_HANDLE_TO_FD) {
    auto& prime = *static_cast<drm_prime_handle*>(argument);
    const auto object = handles_.find(prime.handle);
    if (object == handles_.end()) return -ENOENT;
    prime.fd = fcntl(object->second->fd, F_DUPFD_CLOEXEC, 0);
    if (prime.fd < 0) return -errno;
    // The descriptor keeps the object, and what it is: cached or not.
    exported_.push_back(object->second);
    return 0;
  }
  if (request == DRM_IOCTL_PRIME_FD_TO_HANDLE) {
    auto& prime = *static_cast<drm_prime_handle*>(argument);
    const std::shared_ptr<Object> object = OfFd(prime.fd);
    if (object == nullptr) return -EINVAL;
    for (const auto& [handle, known] : handles_) {
      if (known == object) {
        prime.handle = handle;
        return 0;
      }
    }
    prime.handle = next_handle_++;
    handles_[prime.handle] = object;
    return 0;
  }
  const uint32_t number = (request & kNumberMask) - (drm ? uapi::kDrmBase : 0);
  ++counts_[number];
  switch (number) {
    case uapi::kAction:
      return Act(static_cast<uapi::Action*>(argument));
    case uapi::kMemCreate:
      return Create(static_cast<uapi::MemCreate*>(argument), drm);
    case uapi::kMemMap: {
      auto& map = *static_cast<uapi::MemMap*>(argument);
      if (!drm || handles_.count(map.handle) == 0) return -EINVAL;
      map.offset = kOffsetOfHandle * map.handle;
      return 0;
    }
    case uapi::kMemDestroy:
      return Destroy(*static_cast<uapi::MemDestroy*>(argument));
    case uapi::kMemSync:
      return Sync(*static_cast<uapi::MemSync*>(argument));
    case uapi::kSubmit:
      lock.unlock();  // other cores go on meanwhile
      return Submit(static_cast<uapi::Submit*>(argument));
    default:
      Complain("an unknown call");
      return -ENOTTY;
  }
}

int FakeKernel::Act(uapi::Action* call) {
  switch (call->flags) {
    case uapi::kGetHardwareVersion:
      call->value = uapi::kRk3588Hardware;
      return 0;
    case uapi::kGetDriverVersion:
      call->value = version;
      return 0;
    case uapi::kGetFrequency:
      call->value = 1000000000;
      return 0;
    case uapi::kReset:
      ++resets_;
      return 0;
    case uapi::kGetTotalSram:
    case uapi::kGetFreeSram:
      call->value = static_cast<uint32_t>(sram);
      return 0;
    case 4:
      Complain("GET_VOLT, which crashes boards without a supply");
      return -EINVAL;
    default:
      return -EINVAL;
  }
}

std::shared_ptr<FakeKernel::Object> FakeKernel::OfToken(uint64_t token) const {
  for (const std::weak_ptr<Object>& weak : objects_) {
    const std::shared_ptr<Object> object = weak.lock();
    if (object != nullptr && object->token == token) return object;
  }
  return nullptr;
}

// The object of a dma-buf, which any memfd is here; made where it is new.
std::shared_ptr<FakeKernel::Object> FakeKernel::OfFd(int fd) {
  struct stat about = {};
  if (fstat(fd, &about) != 0 || about.st_size == 0) return nullptr;
  for (const std::weak_ptr<Object>& weak : objects_) {
    const std::shared_ptr<Object> object = weak.lock();
    struct stat own = {};
    if (object != nullptr && fstat(object->fd, &own) == 0 &&
        own.st_dev == about.st_dev && own.st_ino == about.st_ino) {
      return object;
    }
  }
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return nullptr;
  const std::shared_ptr<Object> object =
      MakeObject(static_cast<uint64_t>(about.st_size), 0, copy);
  object->foreign = true;
  return object;
}

std::shared_ptr<FakeKernel::Object> FakeKernel::MakeObject(uint64_t size,
                                                           uint32_t flags,
                                                           int memfd) {
  auto object = std::make_shared<Object>();
  object->fd = memfd;
  object->size = (size + kPage - 1) / kPage * kPage;
  object->flags = flags;
  object->cpu = MapFd(memfd, object->size);
  object->npu = object->cpu;
  object->cached = (flags & uapi::kCacheable) != 0;
  if (object->cached) {
    object->npu = new std::byte[object->size];
    // What lies in DDR is not what the CPU's cache holds.
    std::fill_n(object->npu, object->size, std::byte{0xa5});
  }
  object->token = next_token_;
  next_token_ += 64;
  next_address_ -= object->size + kPage;
  object->address = next_address_;
  objects_.push_back(object);
  return object;
}

int FakeKernel::Create(uapi::MemCreate* call, bool drm) {
  std::shared_ptr<Object> object;
  const auto known = handles_.find(call->handle);
  if (drm && call->handle != 0 && known != handles_.end()) {
    object = known->second;
  } else if (!drm && call->handle != 0) {
    object = OfFd(static_cast<int>(call->handle));
    if (object == nullptr) return -EINVAL;
    handles_[call->handle] = object;
  } else {
    if (call->size == 0) return -EINVAL;
    if (!drm && (call->flags & uapi::kNonContiguous) != 0) return -EINVAL;
    if (call->size > next_address_) return -ENOMEM;
    const uint64_t size = (call->size + kPage - 1) / kPage * kPage;
    const int fd = MakeFd(size);
    if (fd < 0) return -ENOMEM;
    object = MakeObject(size, call->flags, fd);
    if ((call->flags & uapi::kTrySram) != 0) {
      object->sram = std::min({size, call->sram_size, sram});
      std::fill_n(object->cpu, object->sram, std::byte{0x5a});
    }
    call->handle = drm ? next_handle_++
                       : static_cast<uint32_t>(fcntl(fd, F_DUPFD_CLOEXEC, 1));
    handles_[call->handle] = object;
  }
  call->size = object->size;
  call->obj_addr = object->token;
  call->dma_addr = object->address;
  call->sram_size = object->sram;
  return 0;
}

int FakeKernel::Destroy(const uapi::MemDestroy& call) {
  if (handles_.erase(call.handle) == 0) {
    Complain("MEM_DESTROY of a handle that is not there");
    return -EINVAL;
  }
  return 0;
}

int FakeKernel::Sync(const uapi::MemSync& call) {
  const std::shared_ptr<Object> object = OfToken(call.obj_addr);
  if (object == nullptr) {
    Complain("MEM_SYNC of a token that is not there");
    return -EINVAL;
  }
  if (!object->cached) return -EINVAL;
  if (call.offset > object->size || call.size > object->size - call.offset) {
    Complain("MEM_SYNC beyond the end of a buffer");
    return 0;
  }
  if ((call.flags & uapi::kToDevice) != 0) {
    std::memcpy(object->npu + call.offset, object->cpu + call.offset,
                call.size);
  }
  if ((call.flags & uapi::kFromDevice) != 0) {
    std::memcpy(object->cpu + call.offset, object->npu + call.offset,
                call.size);
  }
  return 0;
}

int FakeKernel::Submit(uapi::Submit* call) {
  std::shared_ptr<Object> tasks;
  SubmitFault fault = SubmitFault::kNone;
  {
    const Lock lock(mutex_);
    tasks = OfToken(call->task_obj_addr);
    if (tasks == nullptr || (tasks->flags & uapi::kKernelMapping) == 0) {
      Complain("SUBMIT with a task table that crashes the kernel");
      return -EINVAL;
    }
    const uint32_t mask = call->core_mask;
    if (mask != 1 && mask != 2 && mask != 4 && mask != 3 && mask != 7) {
      Complain("SUBMIT for cores that never start");
      return -ETIMEDOUT;
    }
    if ((busy_ & mask) != 0) Complain("two jobs for one core in the driver");
    if (std::popcount(mask) > 1 && busy_ != 0) {
      Complain("a gang beside another job in the driver");
    }
    if ((call->flags & uapi::kPc) == 0) Complain("SUBMIT without PC");
    busy_ |= mask;
    if (!faults_.empty()) {
      fault = faults_.front();
      faults_.pop_front();
    }
    for (const uint32_t core : dead_cores) {
      if ((mask >> core & 1) != 0) fault = SubmitFault::kHang;
    }
    if (fault == SubmitFault::kHang) ++resets_;
  }
  uint32_t done = 0;
  int result = 0;
  switch (fault) {
    case SubmitFault::kHang:
      result = -ETIMEDOUT;
      break;
    case SubmitFault::kReset:
      result = -EINVAL;
      break;
    case SubmitFault::kGone:
      result = -ENODEV;
      break;
    case SubmitFault::kMemory:
      result = -ENOMEM;
      break;
    case SubmitFault::kCounterZero:
      break;
    case SubmitFault::kNone:
      result = Execute(*call, *tasks, &done);
      break;
  }
  call->task_counter = done;
  const Lock lock(mutex_);
  busy_ &= ~call->core_mask;
  return result;
}

int FakeKernel::Execute(const uapi::Submit& call, const Object& tasks,
                        uint32_t* done) {
  Memory memory;
  std::vector<std::shared_ptr<Object>> held;
  {
    const Lock lock(mutex_);
    for (const auto& [handle, object] : handles_) {
      if (std::find(held.begin(), held.end(), object) != held.end()) continue;
      held.push_back(object);
      const absl::Status status =
          memory.Attach({object->address, {object->npu, object->size}, true});
      if (!status.ok()) Complain(std::string(status.message()));
    }
  }
  std::array<std::vector<Task>, kCores> lists;
  std::array<std::span<const Task>, kCores> spans;
  const auto* const rows = reinterpret_cast<const uapi::TaskRow*>(tasks.npu);
  const size_t first = std::popcount(call.core_mask) == 3 ? 2 : 0;
  for (uint32_t core = 0; core < kCores; ++core) {
    if ((call.core_mask >> core & 1) == 0) continue;
    const uapi::SubcoreTask& range = call.subcore_task[first + core];
    for (uint32_t i = 0; i < range.task_number; ++i) {
      const uapi::TaskRow& row = rows[range.task_start + i];
      lists[core].push_back({.node = row.op_idx,
                             .enable_mask = row.enable_mask,
                             .interrupt_mask = row.int_mask,
                             .words = row.regcfg_amount,
                             .commands = row.regcmd_addr});
    }
    *done += range.task_number;
    spans[core] = lists[core];
  }
  if (*done != call.task_number) {
    const Lock lock(mutex_);
    Complain("SUBMIT with a sum of tasks that is wrong");
  }
  const absl::Status status = machine_.Run(memory, spans, {});
  if (status.ok()) return 0;
  *done = 0;
  const Lock lock(mutex_);
  Complain("a job of the NPU: " + std::string(status.message()));
  ++resets_;
  return -ETIMEDOUT;
}

std::byte* FakeKernel::Map(int fd, uint64_t offset, size_t size, int* error) {
  const Lock lock(mutex_);
  if (*error = Fate(); *error != 0) return nullptr;
  const uint64_t handle = files_.count(fd) > 0 ? offset / kOffsetOfHandle
                                               : static_cast<uint64_t>(fd);
  const auto object = handles_.find(static_cast<uint32_t>(handle));
  if (object == handles_.end() || size != object->second->size) {
    Complain("mmap of something else than a whole buffer");
    *error = EINVAL;
    return nullptr;
  }
  std::byte* const data = MapFd(object->second->fd, size);
  if (data == nullptr) *error = errno;
  return data;
}

void FakeKernel::Unmap(std::byte* data, size_t size) { munmap(data, size); }

bool FakeKernel::Identify(int fd, uint64_t* device, uint64_t* inode) {
  struct stat about = {};
  if (fstat(fd, &about) != 0) return false;
  *device = about.st_dev;
  *inode = about.st_ino;
  return true;
}

}  // namespace rknnd::rknpu::testing
