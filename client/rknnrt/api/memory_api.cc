// The C API's memories: make, wrap, bind, synchronise, destroy. Called by
// programs, on any of their threads, with pointers that may be stale.
//
// What a program sees of a memory: `size` as asked; `fd` a descriptor of its
// own, never 0; `offset` 0 unless it gave one; `phys_addr` 0 unless it gave
// that, because the device's addresses are the daemon's business.

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "client/rknnrt/buffer.h"
#include "client/rknnrt/call.h"
#include "client/rknnrt/copy_fitting.h"
#include "client/rknnrt/media_block.h"
#include "client/rknnrt/runtime.h"
#include "client/rknnrt/tensor.h"
#include "proto/wire/features.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// The target a new memory belongs to: that of its context, or without one
// (RKNN_MEM_FLAG_ALLOC_NO_CONTEXT) the process's.
Expected<std::shared_ptr<Target>> TargetFor(uint64_t context,
                                            bool may_be_none) {
  Runtime& runtime = Runtime::Get();
  if (context == 0 && may_be_none) return runtime.target();
  Expected<std::shared_ptr<Context>> found = runtime.FindContext(context);
  if (!found.ok()) return std::move(found).error();
  return (*found)->shared_target();
}

rknn_tensor_mem* Register(std::unique_ptr<Buffer> buffer, void* address, int fd,
                          rknn_tensor_mem_flags origin) {
  auto memory = std::make_shared<TensorMemory>();
  memory->api.virt_addr = address;
  memory->api.phys_addr = 0;
  memory->api.fd = fd;
  memory->api.offset = static_cast<int32_t>(buffer->offset());
  memory->api.size = static_cast<uint32_t>(buffer->size());
  memory->api.flags = static_cast<uint32_t>(origin);
  memory->api.priv_data = memory.get();
  memory->buffer = std::move(buffer);
  return Runtime::Get().memories().Add(std::move(memory));
}

constexpr uint64_t kHeapFlags = RKNN_FLAG_MEMORY_CACHEABLE |
                                RKNN_FLAG_MEMORY_NON_CACHEABLE |
                                RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM;
constexpr uint64_t kCreateFlags = kHeapFlags | RKNN_MEM_FLAG_ALLOC_NO_CONTEXT |
                                  RKNND_MEMORY_DMA32 | RKNND_MEMORY_CONTIGUOUS;

Outcome Create(uint64_t context, uint64_t size, uint64_t flags,
               rknn_tensor_mem** result) {
  if ((flags & ~kCreateFlags) != 0) {
    // The lowest; the next call would name the next.
    const int bit = __builtin_ctzll(flags & ~kCreateFlags);
    return Failure{
        {Code::kInvalidArgument,
         "alloc_flags " + std::to_string(flags) + " has bit " +
             std::to_string(bit) +
             ", which is no flag of a memory: use RKNN_FLAG_MEMORY_CACHEABLE, "
             "_NON_CACHEABLE, _TRY_ALLOC_SRAM, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT "
             "or those of rknnd.h"},
        Subject::kNone};
  }
  if (size == 0 || size > std::numeric_limits<uint32_t>::max()) {
    return Failure{{Code::kInvalidArgument,
                    "a memory of " + std::to_string(size) +
                        " bytes is not possible: 1 byte to 4 GiB less one"},
                   Subject::kNone};
  }
  Expected<std::shared_ptr<Target>> target =
      TargetFor(context, (flags & RKNN_MEM_FLAG_ALLOC_NO_CONTEXT) != 0);
  if (!target.ok()) {
    return Failure{std::move(target).error(), Subject::kContext};
  }
  auto heap_flags = static_cast<uint32_t>(flags & kHeapFlags);
  if ((flags & RKNND_MEMORY_DMA32) != 0) heap_flags |= wire::kBufferDma32;
  if ((flags & RKNND_MEMORY_CONTIGUOUS) != 0) {
    heap_flags |= wire::kBufferContiguous;
  }
  Expected<std::unique_ptr<Buffer>> buffer =
      Buffer::Allocate(*std::move(target), size, heap_flags);
  if (!buffer.ok()) return Failure{std::move(buffer).error(), Subject::kNone};
  void* const address = (*buffer)->bytes().data();
  const int fd = (*buffer)->fd();
  *result = Register(*std::move(buffer), address, fd,
                     RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE);
  return {};
}

// What the daemon would find too, in the program's own numbers.
Outcome CheckRange(int32_t fd, int32_t offset, uint32_t size) {
  const auto wrong = [](std::string message) {
    return Failure{{Code::kInvalidArgument, std::move(message)},
                   Subject::kNone};
  };
  if (fd < 0) {
    return wrong("fd " + std::to_string(fd) +
                 " is negative: give an open descriptor");
  }
  if (size == 0) return wrong("size is 0");
  if (offset < 0) {
    return wrong("offset " + std::to_string(offset) + " is negative");
  }
  const Expected<uint64_t> there = SizeOfMemory(fd);
  if (!there.ok()) return Failure{there.error(), Subject::kNone};
  const uint64_t end = static_cast<uint64_t>(offset) + size;
  if (*there == 0 || end <= *there) return {};
  return wrong("size " + std::to_string(size) + " from offset " +
               std::to_string(offset) + " ends at " + std::to_string(end) +
               ", past the end of fd " + std::to_string(fd) + ", which has " +
               std::to_string(*there) + " bytes");
}

Outcome CreateFromFd(uint64_t context, int32_t fd, void* virt_addr,
                     uint32_t size, int32_t offset, rknn_tensor_mem** result) {
  if (Outcome checked = CheckRange(fd, offset, size); !checked.ok())
    return checked;
  Expected<std::shared_ptr<Target>> target = TargetFor(context, false);
  if (!target.ok()) {
    return Failure{std::move(target).error(), Subject::kContext};
  }
  Expected<std::unique_ptr<Buffer>> buffer =
      Buffer::Import(*std::move(target), fd, static_cast<uint64_t>(offset),
                     size, virt_addr == nullptr);
  if (!buffer.ok()) return Failure{std::move(buffer).error(), Subject::kNone};
  if (virt_addr == nullptr) virt_addr = (*buffer)->bytes().data();
  *result = Register(*std::move(buffer), virt_addr, fd,
                     RKNN_TENSOR_MEMORY_FLAGS_FROM_FD);
  return {};
}

Outcome CreateFromPhysical(uint64_t context, uint64_t address, void* virt_addr,
                           uint32_t size, rknn_tensor_mem** result) {
  if (size == 0) return WrongParameter("size is 0");
  Expected<std::shared_ptr<Target>> target = TargetFor(context, false);
  if (!target.ok()) {
    return Failure{std::move(target).error(), Subject::kContext};
  }
  Expected<std::unique_ptr<Buffer>> buffer =
      Buffer::ImportPhysical(*std::move(target), address, size);
  if (!buffer.ok()) return Failure{std::move(buffer).error(), Subject::kNone};
  *result = Register(*std::move(buffer), virt_addr, -1,
                     RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS);
  (*result)->phys_addr = address;
  return {};
}

// The block's memory from `offset` to its end.
Outcome CreateFromBlock(uint64_t context, void* block, int32_t offset,
                        rknn_tensor_mem** result) {
  const Expected<int> fd = FdOfMediaBlock(block);
  if (!fd.ok()) return Failure{fd.error(), Subject::kNone};
  const Expected<uint64_t> there = SizeOfMemory(*fd);
  if (!there.ok()) return Failure{there.error(), Subject::kNone};
  const auto from = static_cast<int64_t>(offset);
  if (from < 0 || static_cast<uint64_t>(from) >= *there) {
    return Failure{
        {Code::kInvalidArgument, "offset " + std::to_string(offset) +
                                     " is not inside the block, which has " +
                                     std::to_string(*there) + " bytes"},
        Subject::kNone};
  }
  const uint64_t size =
      std::min<uint64_t>(*there - static_cast<uint64_t>(from),
                         std::numeric_limits<uint32_t>::max());
  return CreateFromFd(context, *fd, nullptr, static_cast<uint32_t>(size),
                      offset, result);
}

// Runs body(&memory) and gives the memory, or null.
template <class Body>
rknn_tensor_mem* CallForMemory(const char* function, Body body) {
  rknn_tensor_mem* memory = nullptr;
  const int result = Call(function, [&]() -> Outcome { return body(&memory); });
  return result == RKNN_SUCC ? memory : nullptr;
}

Expected<CpuAccess> AccessOf(uint32_t mode) {
  switch (mode) {
    case RKNN_MEMORY_SYNC_TO_DEVICE:
      return CpuAccess::kWrite;
    case RKNN_MEMORY_SYNC_FROM_DEVICE:
      return CpuAccess::kRead;
    case RKNN_MEMORY_SYNC_BIDIRECTIONAL:
      return CpuAccess::kReadWrite;
    default:
      break;
  }
  return Error{Code::kInvalidArgument,
               "mode " + std::to_string(mode) +
                   " is none of RKNN_MEMORY_SYNC_TO_DEVICE, _FROM_DEVICE and "
                   "_BIDIRECTIONAL"};
}

}  // namespace
}  // namespace rknnd::client

using rknnd::client::Call;
using rknnd::client::CallForMemory;
using rknnd::client::CallOn;
using rknnd::client::Context;
using rknnd::client::Failure;
using rknnd::client::Outcome;
using rknnd::client::Runtime;
using rknnd::client::Subject;
using rknnd::client::ToOutcome;
using rknnd::client::Unsupported;
using rknnd::client::WrongParameter;

extern "C" {

RKNND_API rknn_tensor_mem* rknn_create_mem(rknn_context ctx, uint32_t size) {
  return CallForMemory("rknn_create_mem", [&](rknn_tensor_mem** result) {
    return rknnd::client::Create(ctx, size, RKNN_FLAG_MEMORY_FLAGS_DEFAULT,
                                 result);
  });
}

RKNND_API rknn_tensor_mem* rknn_create_mem2(rknn_context ctx, uint64_t size,
                                            uint64_t alloc_flags) {
  return CallForMemory("rknn_create_mem2", [&](rknn_tensor_mem** result) {
    return rknnd::client::Create(ctx, size, alloc_flags, result);
  });
}

RKNND_API rknn_tensor_mem* rknn_create_mem_from_fd(rknn_context ctx, int32_t fd,
                                                   void* virt_addr,
                                                   uint32_t size,
                                                   int32_t offset) {
  return CallForMemory("rknn_create_mem_from_fd",
                       [&](rknn_tensor_mem** result) {
                         return rknnd::client::CreateFromFd(
                             ctx, fd, virt_addr, size, offset, result);
                       });
}

RKNND_API rknn_tensor_mem* rknn_create_mem_from_phys(rknn_context ctx,
                                                     uint64_t phys_addr,
                                                     void* virt_addr,
                                                     uint32_t size) {
  return CallForMemory("rknn_create_mem_from_phys",
                       [&](rknn_tensor_mem** result) {
                         return rknnd::client::CreateFromPhysical(
                             ctx, phys_addr, virt_addr, size, result);
                       });
}

RKNND_API rknn_tensor_mem* rknn_create_mem_from_mb_blk(rknn_context ctx,
                                                       void* mb_blk,
                                                       int32_t offset) {
  return CallForMemory(
      "rknn_create_mem_from_mb_blk", [&](rknn_tensor_mem** result) {
        return rknnd::client::CreateFromBlock(ctx, mb_blk, offset, result);
      });
}

// Any context, 0 or a dead one is fine: the pointer alone says which memory.
RKNND_API int rknn_destroy_mem(rknn_context /*ctx*/, rknn_tensor_mem* mem) {
  return Call("rknn_destroy_mem", [&]() -> Outcome {
    auto removed = Runtime::Get().RemoveMemory(mem);
    if (!removed.ok()) {
      return Failure{std::move(removed).error(), Subject::kNone};
    }
    return {};
  });
}

RKNND_API int rknn_set_io_mem(rknn_context ctx, rknn_tensor_mem* mem,
                              rknn_tensor_attr* attr) {
  return CallOn("rknn_set_io_mem", ctx, [&](Context& context) -> Outcome {
    if (mem == nullptr || attr == nullptr) {
      return WrongParameter("mem or attr is NULL");
    }
    auto memory = Runtime::Get().FindMemory(mem);
    if (!memory.ok()) return Failure{std::move(memory).error(), Subject::kNone};
    // An older program's ends before h_stride.
    return context.BindMemory(*(*memory)->buffer,
                              rknnd::client::ReadFitting<rknn_tensor_attr>(
                                  attr, context.attr_size()));
  });
}

RKNND_API int rknn_mem_sync(rknn_context context, rknn_tensor_mem* mem,
                            rknn_mem_sync_mode mode) {
  const auto sync = [&]() -> Outcome {
    auto memory = Runtime::Get().FindMemory(mem);
    if (!memory.ok()) return Failure{std::move(memory).error(), Subject::kNone};
    auto access = rknnd::client::AccessOf(rknnd::client::RawNumber(mode));
    if (!access.ok()) return Failure{std::move(access).error(), Subject::kNone};
    return ToOutcome((*memory)->buffer->Synchronize(*access), Subject::kNone);
  };
  // Memory made without a context is synchronised without one.
  if (context == 0) return Call("rknn_mem_sync", sync);
  return CallOn("rknn_mem_sync", context,
                [&](Context&) -> Outcome { return sync(); });
}

RKNND_API int rknn_set_weight_mem(rknn_context ctx, rknn_tensor_mem* mem) {
  return CallOn("rknn_set_weight_mem", ctx, [&](Context& context) -> Outcome {
    if (mem == nullptr) return WrongParameter("mem is NULL");
    auto memory = Runtime::Get().FindMemory(mem);
    if (!memory.ok()) return Failure{std::move(memory).error(), Subject::kNone};
    return context.SetWeightMemory(*memory);
  });
}

RKNND_API int rknn_set_internal_mem(rknn_context ctx, rknn_tensor_mem* mem) {
  return CallOn("rknn_set_internal_mem", ctx, [&](Context& context) -> Outcome {
    if (mem == nullptr) return WrongParameter("mem is NULL");
    auto memory = Runtime::Get().FindMemory(mem);
    if (!memory.ok()) return Failure{std::move(memory).error(), Subject::kNone};
    return context.SetInternalMemory(*(*memory)->buffer);
  });
}

}  // extern "C"
