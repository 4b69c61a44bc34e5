#include "client/rknnrt/media_block.h"

#include <dlfcn.h>

#include <cstdint>
#include <string>

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

namespace {

using Handle2Fd = int32_t (*)(void*);

struct Function {
  const char* name = nullptr;
  Handle2Fd call = nullptr;
};

Function In(void* library) {
  // The newer platform has the first, all have the second.
  for (const char* name : {"RK_MPI_MMZ_Handle2Fd", "RK_MPI_MB_Handle2Fd"}) {
    void* const symbol = dlsym(library, name);
    if (symbol != nullptr) return {name, reinterpret_cast<Handle2Fd>(symbol)};
  }
  return {};
}

// A program that has a block has its library loaded, though perhaps where
// nobody else sees its names.
Function Find() {
  Function found = In(RTLD_DEFAULT);
  for (const char* name : {"librockit.so", "librockchip_mpi.so"}) {
    if (found.call != nullptr) break;
    void* const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    found = In(library);
    // It stays loaded: the program's own reference keeps it.
    dlclose(library);
  }
  return found;
}

}  // namespace

Expected<int> FdOfMediaBlock(void* block) {
  if (block == nullptr) return Error{Code::kInvalidArgument, "mb_blk is NULL"};
  const Function handle_to_fd = Find();
  if (handle_to_fd.call == nullptr) {
    return Error{Code::kUnimplemented,
                 "this process has no media process platform (no "
                 "RK_MPI_MMZ_Handle2Fd or RK_MPI_MB_Handle2Fd, in librockit.so "
                 "or elsewhere), so mb_blk can be no block of it: pass the "
                 "memory's dma-buf fd to rknn_create_mem_from_fd"};
  }
  const int fd = handle_to_fd.call(block);
  if (fd >= 0) return fd;
  return Error{Code::kInvalidArgument, std::string(handle_to_fd.name) +
                                           " gives fd " + std::to_string(fd) +
                                           " for mb_blk: it is no block"};
}

}  // namespace rknnd::client
