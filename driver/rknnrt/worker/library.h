// The vendor's library as a worker has it: opened once, its functions by name.
// What an older version lacks is null, and a feature less.

#ifndef DRIVER_RKNNRT_WORKER_LIBRARY_H_
#define DRIVER_RKNNRT_WORKER_LIBRARY_H_

#include <cstdint>
#include <string>

#include "base/posix/mutex.h"
#include "base/values/expected.h"
#include "rknn_api.h"

namespace rknnd::rknnrt {

// Thread: any; immutable once opened. Never closed: libraries like this one
// have threads, and end with the process.
class Library {
 public:
  // `path` may be one of /proc/self/fd. Errors name what it lacks.
  static base::Expected<Library> Open(const std::string& path);

  // "rknn_init gives -6 (RKNN_ERR_MODEL_INVALID)", with the code of ours that
  // is next to it.
  static base::Error Failure(const char* function, int code);

  // There in every version that is taken.
  decltype(&rknn_init) init = nullptr;
  decltype(&rknn_destroy) destroy = nullptr;
  decltype(&rknn_query) query = nullptr;
  decltype(&rknn_run) run = nullptr;
  decltype(&rknn_create_mem_from_fd) create_mem_from_fd = nullptr;
  decltype(&rknn_destroy_mem) destroy_mem = nullptr;
  decltype(&rknn_set_io_mem) set_io_mem = nullptr;
  // Null where this version has none.
  decltype(&rknn_dup_context) dup_context = nullptr;
  decltype(&rknn_set_core_mask) set_core_mask = nullptr;
  decltype(&rknn_set_internal_mem) set_internal_mem = nullptr;
  decltype(&rknn_set_weight_mem) set_weight_mem = nullptr;
  decltype(&rknn_set_input_shapes) set_input_shapes = nullptr;

 private:
  Library() = default;
};

// An attribute by `command` and `index`, in the size that this version of the
// library takes: the structure grew once.
int QueryAttribute(const Library& library, rknn_context context,
                   rknn_query_cmd command, uint32_t index,
                   rknn_tensor_attr& attribute);

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_WORKER_LIBRARY_H_
