// The program's numbers are checked against what the kernel says of the fd.

#include "client/rknnrt/model_buffer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string>
#include <utility>

#include "base/values/overflow.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// Bytes behind `fd`, of a file, a memfd or a dma-buf.
Expected<uint64_t> SizeOf(int fd) {
  const std::string name = "model_buffer_fd " + std::to_string(fd);
  struct stat status = {};
  if (fstat(fd, &status) != 0) {
    return Error{Code::kInvalidArgument,
                 name +
                     " is not an open descriptor: give the fd of the "
                     "rknn_tensor_mem that holds the model"};
  }
  uint64_t size = 0;
  if (status.st_size > 0) {
    size = static_cast<uint64_t>(status.st_size);
  } else if (const off_t end = lseek(fd, 0, SEEK_END); end > 0) {
    size = static_cast<uint64_t>(end);  // a dma-buf
  }
  // A dma-buf has no type at all.
  const mode_t type = status.st_mode & S_IFMT;
  if ((type != 0 && type != S_IFREG) || size == 0) {
    return Error{Code::kInvalidArgument,
                 name + " is no memory that could hold a model"};
  }
  return size;
}

Error Short(uint64_t has, uint64_t wanted) {
  return {Code::kInvalidArgument,
          "the model's memory has " + std::to_string(has) +
              " bytes, the model is said to have " + std::to_string(wanted) +
              ": it was shrunk, or size is wrong"};
}

}  // namespace

Expected<ModelBuffer> ModelBuffer::Open(const void* model, uint32_t size,
                                        const rknn_init_extend* extend) {
  // 0 is "none", as in an rknn_init_extend that was zeroed.
  const int fd = extend != nullptr && extend->model_buffer_fd > 0
                     ? extend->model_buffer_fd
                     : -1;
  if (model == nullptr && fd < 0) {
    return Error{Code::kInvalidArgument,
                 "model is NULL and extend names no model_buffer_fd"};
  }
  ModelBuffer buffer;
  uint64_t bytes = size;
  if (fd >= 0) {
    const Expected<uint64_t> has = SizeOf(fd);
    if (!has.ok()) return has.error();
    if (bytes > *has) return Short(*has, bytes);
    if (bytes == 0) bytes = *has;
  }
  if (bytes > std::numeric_limits<uint32_t>::max()) {
    return Error{Code::kInvalidArgument,
                 "a model of " + std::to_string(bytes) +
                     " bytes is larger than the 4 GiB a model can have"};
  }
  if (model == nullptr) {
    Expected<base::Mapping> mapping = base::Mapping::OfFd(
        fd, 0, static_cast<size_t>(bytes), base::Mapping::Access::kRead);
    if (!mapping.ok()) return std::move(mapping).error();
    buffer.mapping_ = *std::move(mapping);
    buffer.bytes_ = buffer.mapping_.bytes();
  } else {
    buffer.bytes_ = {static_cast<const std::byte*>(model),
                     static_cast<size_t>(bytes)};
  }
  buffer.memory_.virt_addr = const_cast<void*>(model);
  buffer.memory_.fd = fd;
  buffer.memory_.size = static_cast<uint32_t>(bytes);
  if (fd >= 0) buffer.memory_.flags = extend->model_buffer_flags;
  if (extend == nullptr || extend->real_model_size == 0) return buffer;

  const int64_t offset = extend->real_model_offset;
  if (offset < 0 || !base::RangeFits(static_cast<uint64_t>(offset),
                                     extend->real_model_size, bytes)) {
    return Error{Code::kInvalidArgument,
                 "real_model_size " + std::to_string(extend->real_model_size) +
                     " at real_model_offset " + std::to_string(offset) +
                     " is not inside the model's memory of " +
                     std::to_string(bytes) + " bytes"};
  }
  buffer.bytes_ = buffer.bytes_.subspan(static_cast<size_t>(offset),
                                        extend->real_model_size);
  return buffer;
}

}  // namespace rknnd::client
