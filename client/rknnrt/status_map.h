// Errors inside as numbers outside: the one place that turns a base::Code into
// one of the C API's RKNN_ERR_*.

#ifndef CLIENT_RKNNRT_STATUS_MAP_H_
#define CLIENT_RKNNRT_STATUS_MAP_H_

#include "base/values/expected.h"

namespace rknnd::client {

// What the failed call was about, where that gives a better number than the
// code alone.
enum class Subject {
  kNone,
  kModel,    // loading a model
  kContext,  // a call on a context
  kInput,    // the caller's rknn_input, or running without inputs
  kOutput,   // the caller's rknn_output
};

// Never positive; 0 for kOk alone. Codes this build does not know are
// RKNN_ERR_FAIL.
int ToRknnError(base::Code code, Subject subject);

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_STATUS_MAP_H_
