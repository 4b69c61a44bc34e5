// The NPU of a guest: computes what the stand-in for its driver
// (rknpu_standin.c) was given, by the emulator, on the same memory.
//
//   vm_npu        says "ready", and works until it is killed; a job that cannot
//                 be computed is told on stderr

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/posix/mapping.h"
#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/kernel/uapi.h"
#include "tests/vm/npu/standin.h"

namespace rknnd::vm {
namespace {

using rknpu::Task;

// The NPU's sides of all buffers. Thread: any.
class Mappings {
 public:
  explicit Mappings(int fd) : fd_(fd) {}

  // Of these regions; others are let go. Null: one of them is gone already.
  std::vector<std::shared_ptr<base::Mapping>> Of(
      std::span<const standin_region> regions) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::map<uint64_t, std::shared_ptr<base::Mapping>> kept;
    std::vector<std::shared_ptr<base::Mapping>> found;
    for (const standin_region& region : regions) {
      std::shared_ptr<base::Mapping>& mapping = kept[region.token];
      const auto known = known_.find(region.token);
      if (known != known_.end()) {
        mapping = known->second;
      } else {
        auto made = base::Mapping::OfFd(fd_, region.token,
                                        static_cast<size_t>(region.size),
                                        base::Mapping::Access::kReadWrite);
        // It went between the job and this.
        if (made.ok()) {
          mapping = std::make_shared<base::Mapping>(*std::move(made));
        }
      }
      found.push_back(mapping);
    }
    known_ = std::move(kept);
    return found;
  }

 private:
  const int fd_;
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<base::Mapping>> known_;
};

// Whether the NPU would have done it.
bool Compute(rknpu::Machine& machine, const standin_job& job,
             std::span<const standin_region> regions,
             const std::vector<std::shared_ptr<base::Mapping>>& mappings) {
  rknpu::Memory memory;
  for (size_t i = 0; i < regions.size(); ++i) {
    if (mappings[i] == nullptr) continue;
    const absl::Status attached =
        memory.Attach({regions[i].address, mappings[i]->bytes(), true});
    if (!attached.ok()) std::cerr << "vm_npu: " << attached << std::endl;
  }
  std::array<std::vector<Task>, rknpu::kCores> lists;
  std::array<std::span<const Task>, rknpu::kCores> spans;
  for (size_t core = 0; core < rknpu::kCores; ++core) {
    if ((job.core_mask >> core & 1) == 0) continue;
    for (uint32_t i = 0; i < job.ranges[core].number; ++i) {
      const uint64_t at = job.tasks + (uint64_t{job.ranges[core].start} + i) *
                                          sizeof(rknpu::uapi::TaskRow);
      const std::byte* const bytes =
          memory.Readable(at, sizeof(rknpu::uapi::TaskRow));
      if (bytes == nullptr) return false;
      rknpu::uapi::TaskRow row;
      std::memcpy(&row, bytes, sizeof row);
      lists[core].push_back({.node = row.op_idx,
                             .enable_mask = row.enable_mask,
                             .interrupt_mask = row.int_mask,
                             .words = row.regcfg_amount,
                             .commands = row.regcmd_addr});
    }
    spans[core] = lists[core];
  }
  const absl::Status status = machine.Run(memory, spans, {});
  if (!status.ok()) std::cerr << "vm_npu: " << status << std::endl;
  return status.ok();
}

void Work(int fd, rknpu::Machine& machine, Mappings& mappings) {
  std::vector<standin_region> regions(STANDIN_MOST_REGIONS);
  for (;;) {
    standin_job job = {};
    job.regions = reinterpret_cast<uint64_t>(regions.data());
    if (ioctl(fd, STANDIN_NEXT, &job) != 0) continue;
    const std::span<const standin_region> there =
        std::span(regions).first(job.region_count);
    const bool good = Compute(machine, job, there, mappings.Of(there));
    standin_done done = {job.id, good ? 0U : 1U, 0};
    ioctl(fd, STANDIN_DONE, &done);
  }
}

int Main() {
  const int fd = open("/dev/rknpu_standin", O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    std::perror("vm_npu: open '/dev/rknpu_standin'");
    return 1;
  }
  rknpu::Machine machine;
  Mappings mappings(fd);
  std::cout << "ready" << std::endl;
  std::vector<std::thread> cores;
  for (size_t core = 0; core < rknpu::kCores; ++core) {
    cores.emplace_back([&] { Work(fd, machine, mappings); });
  }
  for (std::thread& core : cores) core.join();
  return 0;
}

}  // namespace
}  // namespace rknnd::vm

int main() { return rknnd::vm::Main(); }
