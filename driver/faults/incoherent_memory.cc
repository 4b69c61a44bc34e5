// Nothing here looks at what the bytes mean. The CPU's side may be a client's
// mapping, whose pages can go away: every access to it stands under the guard.

#include "driver/faults/incoherent_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"
#include "base/values/overflow.h"
#include "driver/memory/fault_guard.h"

namespace rknnd::driver {
namespace {

// A cache line of the CPUs beside these NPUs.
constexpr uint64_t kLine = 64;

}  // namespace

absl::StatusOr<std::shared_ptr<ShadowMemory>> ShadowMemory::Make(
    Device& device, const MemoryRef& memory, MemoryAccess access) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t lead = memory.offset % page;
  const auto length = base::CheckedAdd(memory.size, lead);
  if (!length || *length > std::numeric_limits<size_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory of ", memory.size, " bytes has no shadow"));
  }
  std::shared_ptr<ShadowMemory> shadow(new ShadowMemory);
  shadow->writable_ = access == MemoryAccess::kReadWrite;
  RKNND_ASSIGN_OR_RETURN(
      shadow->cpu_mapping_,
      base::ToStatusOr(base::Mapping::OfFd(
          memory.fd, memory.offset - lead, static_cast<size_t>(*length),
          shadow->writable_ ? base::Mapping::Access::kReadWrite
                            : base::Mapping::Access::kRead)));
  RKNND_ASSIGN_OR_RETURN(
      const base::UniqueFd copy,
      base::ToStatusOr(base::MakeMemfd("rknnd-shadow", memory.size)));
  RKNND_ASSIGN_OR_RETURN(shadow->device_mapping_,
                         base::ToStatusOr(base::Mapping::OfFd(
                             copy.get(), 0, static_cast<size_t>(memory.size),
                             base::Mapping::Access::kReadWrite)));
  shadow->cpu_ =
      shadow->cpu_mapping_.bytes().subspan(static_cast<size_t>(lead));
  shadow->device_ = shadow->device_mapping_.bytes();
  // Not of the heap: a client chose the size.
  RKNND_ASSIGN_OR_RETURN(shadow->known_mapping_,
                         base::ToStatusOr(base::Mapping::Anonymous(
                             static_cast<size_t>(memory.size))));
  RKNND_RETURN_IF_ERROR(shadow->CopyAll());
  RKNND_ASSIGN_OR_RETURN(shadow->memory_,
                         device.Attach({copy.get(), 0, memory.size}, access));
  return shadow;
}

absl::Status ShadowMemory::CopyAll() {
  base::MutexLock lock(mutex_);
  known_ = known_mapping_.bytes().first(cpu_.size());
  const std::span<std::byte> known = known_;
  if (!Guarded(cpu_, [this, known] {
        std::memcpy(known.data(), cpu_.data(), known.size());
      })) {
    return absl::DataLossError("memory went away while it was copied");
  }
  std::memcpy(device_.data(), known.data(), known.size());
  return absl::OkStatus();
}

std::span<std::byte> ShadowMemory::Lines(std::span<std::byte> of,
                                         uint64_t offset,
                                         uint64_t bytes) const {
  if (offset >= of.size()) return {};
  const uint64_t first = offset / kLine * kLine;
  const uint64_t end =
      bytes >= of.size() - offset
          ? of.size()
          : std::min<uint64_t>(of.size(),
                               (offset + bytes + kLine - 1) / kLine * kLine);
  return of.subspan(static_cast<size_t>(first),
                    static_cast<size_t>(end - first));
}

void ShadowMemory::Clean(uint64_t offset, uint64_t bytes) {
  base::MutexLock lock(mutex_);
  const std::span<std::byte> cpu = Lines(cpu_, offset, bytes);
  const std::span<std::byte> device = Lines(device_, offset, bytes);
  const std::span<std::byte> known = Lines(known_, offset, bytes);
  // Pages that are gone hold nothing to clean.
  (void)Guarded(cpu, [&] {
    for (size_t at = 0; at < cpu.size(); at += kLine) {
      const size_t size = std::min<size_t>(kLine, cpu.size() - at);
      if (std::memcmp(&cpu[at], &known[at], size) == 0) continue;
      std::memcpy(&known[at], &cpu[at], size);
      std::memcpy(&device[at], &known[at], size);
    }
  });
}

void ShadowMemory::Invalidate(uint64_t offset, uint64_t bytes) {
  if (!writable_) return;
  base::MutexLock lock(mutex_);
  const std::span<std::byte> cpu = Lines(cpu_, offset, bytes);
  const std::span<std::byte> device = Lines(device_, offset, bytes);
  const std::span<std::byte> known = Lines(known_, offset, bytes);
  if (known.empty()) return;
  std::memcpy(known.data(), device.data(), known.size());
  (void)Guarded(cpu,
                [&] { std::memcpy(cpu.data(), known.data(), known.size()); });
}

void ShadowedMemory::SetIncoherent(Device& device, bool incoherent) {
  if (incoherent) {
    auto made =
        ShadowMemory::Make(device, {fd_.get(), offset_, size_}, access_);
    if (!made.ok()) return;
    base::MutexLock lock(mutex_);
    shadow_ = *std::move(made);
    return;
  }
  std::shared_ptr<ShadowMemory> ended;
  {
    base::MutexLock lock(mutex_);
    ended.swap(shadow_);
  }
  if (ended == nullptr) return;
  ended->Retire();
  ended->Clean(0, size_);
  ended->Invalidate(0, size_);
}

std::shared_ptr<ShadowMemory> ShadowedMemory::shadow() const {
  base::MutexLock lock(mutex_);
  return shadow_;
}

void MemoryRegister::SetIncoherent(Device& device, bool incoherent) {
  base::MutexLock alone(changing_);
  std::vector<std::shared_ptr<ShadowedMemory>> all;
  {
    base::MutexLock lock(mutex_);
    if (incoherent == incoherent_) return;
    incoherent_ = incoherent;
    all.assign(all_.begin(), all_.end());
  }
  for (const auto& memory : all) memory->SetIncoherent(device, incoherent);
}

void MemoryRegister::Add(Device& device,
                         const std::shared_ptr<ShadowedMemory>& memory) {
  // Copied before it is among the others, whom a change takes along: then it
  // belongs to the mode that there was, or is made to follow here.
  bool has = false;
  for (;;) {
    bool wanted = false;
    {
      base::MutexLock lock(mutex_);
      wanted = incoherent_;
      if (wanted == has) {
        all_.insert(memory);
        return;
      }
    }
    memory->SetIncoherent(device, wanted);
    has = wanted;
  }
}

void MemoryRegister::Remove(const std::shared_ptr<ShadowedMemory>& memory) {
  base::MutexLock lock(mutex_);
  all_.erase(memory);
}

absl::StatusOr<std::unique_ptr<Memory>> IncoherentMemory::Attach(
    Device& device, std::shared_ptr<MemoryRegister> all,
    const MemoryRef& memory, MemoryAccess access) {
  RKNND_ASSIGN_OR_RETURN(std::unique_ptr<Memory> direct,
                         device.Attach(memory, access));
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd fd,
                         base::ToStatusOr(base::Duplicate(memory.fd)));
  auto shadowed = std::make_shared<ShadowedMemory>(std::move(fd), memory.offset,
                                                   direct->size(), access);
  all->Add(device, shadowed);
  return std::unique_ptr<Memory>(new IncoherentMemory(
      std::move(direct), std::move(all), std::move(shadowed)));
}

void IncoherentMemory::Synchronize(CacheSide side) {
  direct_->Synchronize(side);
  const std::shared_ptr<ShadowMemory> now = shadow();
  if (now == nullptr) return;
  if (side != CacheSide::kFromDevice) now->Clean(0, size());
  if (side != CacheSide::kToDevice) now->Invalidate(0, size());
}

}  // namespace rknnd::driver
