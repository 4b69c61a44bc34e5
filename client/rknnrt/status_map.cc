// Called where a call of the C API fails, on any thread.

#include "client/rknnrt/status_map.h"

#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"

namespace rknnd::client {
namespace {

// An argument, a value or a name that was wrong.
int WrongArgument(Subject subject) {
  switch (subject) {
    case Subject::kModel:
      return RKNN_ERR_MODEL_INVALID;
    case Subject::kInput:
      return RKNN_ERR_INPUT_INVALID;
    case Subject::kOutput:
      return RKNN_ERR_OUTPUT_INVALID;
    case Subject::kNone:
    case Subject::kContext:
      return RKNN_ERR_PARAM_INVALID;
  }
  return RKNN_ERR_PARAM_INVALID;
}

}  // namespace

int ToRknnError(base::Code code, Subject subject) {
  switch (code) {
    case base::Code::kOk:
      return RKNN_SUCC;
    case base::Code::kInvalidArgument:
    case base::Code::kOutOfRange:
      return WrongArgument(subject);
    case base::Code::kNotFound:
      if (subject == Subject::kModel) return RKNN_ERR_MODEL_INVALID;
      if (subject == Subject::kContext) return RKNN_ERR_CTX_INVALID;
      return WrongArgument(subject);
    case base::Code::kDeadlineExceeded:
      return RKNN_ERR_TIMEOUT;
    case base::Code::kResourceExhausted:
      return RKNN_ERR_MALLOC_FAIL;
    case base::Code::kUnavailable:
    case base::Code::kUnauthenticated:
      return RKNN_ERR_DEVICE_UNAVAILABLE;
    case base::Code::kPermissionDenied:
      // A model file that may not be read, or a daemon that may not be asked.
      return subject == Subject::kModel ? RKNN_ERR_MODEL_INVALID
                                        : RKNN_ERR_DEVICE_UNAVAILABLE;
    case base::Code::kFailedPrecondition:
      // A sound model in the wrong place: made for another chip.
      if (subject == Subject::kModel) return RKNN_ERR_TARGET_PLATFORM_UNMATCH;
      if (subject == Subject::kInput) return RKNN_ERR_INPUT_INVALID;
      if (subject == Subject::kOutput) return RKNN_ERR_OUTPUT_INVALID;
      return RKNN_ERR_FAIL;
    case base::Code::kUnimplemented:
      // An operator we lack.
      return subject == Subject::kModel ? RKNN_ERR_MODEL_INVALID
                                        : RKNN_ERR_FAIL;
    case base::Code::kDataLoss:
      return subject == Subject::kModel ? RKNN_ERR_MODEL_INVALID
                                        : RKNN_ERR_FAIL;
    case base::Code::kCancelled:
      // A run that was taken back.
      return subject == Subject::kContext ? RKNND_ERR_CANCELLED : RKNN_ERR_FAIL;
    case base::Code::kAborted:
      // A frame that another one took the place of.
      return subject == Subject::kContext ? RKNND_ERR_DROPPED : RKNN_ERR_FAIL;
    case base::Code::kUnknown:
    case base::Code::kAlreadyExists:
    case base::Code::kInternal:
      return RKNN_ERR_FAIL;
  }
  return RKNN_ERR_FAIL;
}

}  // namespace rknnd::client
