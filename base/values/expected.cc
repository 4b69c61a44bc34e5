// Names the failures of system calls. Called wherever one failed, on any
// thread.

#include "base/values/expected.h"

#include <string.h>

#include <cerrno>

namespace rknnd::base {
namespace {

Code CodeOfErrno(int value) {
  switch (value) {
    case 0:
      return Code::kOk;
    case EINVAL:
    case ENAMETOOLONG:
    case E2BIG:
    case EDESTADDRREQ:
    case EDOM:
    case EFAULT:
    case EILSEQ:
    case EMSGSIZE:
    case ENOPROTOOPT:
    case ENOSTR:
    case ENOTSOCK:
    case ENOTTY:
    case EPROTOTYPE:
    case ESPIPE:
      return Code::kInvalidArgument;
    case ETIMEDOUT:
    case ETIME:
      return Code::kDeadlineExceeded;
    case ENODEV:
    case ENOENT:
    case ENXIO:
    case ESRCH:
      return Code::kNotFound;
    case EEXIST:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
    case EALREADY:
      return Code::kAlreadyExists;
    case EPERM:
    case EACCES:
    case EROFS:
      return Code::kPermissionDenied;
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
    case EBADF:
    case EBUSY:
    case ECHILD:
    case EISCONN:
    case ENOTBLK:
    case ENOTCONN:
    case ETXTBSY:
      return Code::kFailedPrecondition;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case EMLINK:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ETOOMANYREFS:
    case EUSERS:
      return Code::kResourceExhausted;
    case ECHRNG:
    case EFBIG:
    case EOVERFLOW:
    case ERANGE:
      return Code::kOutOfRange;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
    case EPFNOSUPPORT:
    case EPROTONOSUPPORT:
    case ESOCKTNOSUPPORT:
    case EXDEV:
      return Code::kUnimplemented;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNABORTED:
    case ECONNRESET:
    case EINTR:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
    case ENOLCK:
    case EPIPE:
      return Code::kUnavailable;
    case EDEADLK:
    case ESTALE:
      return Code::kAborted;
    case ECANCELED:
      return Code::kCancelled;
    default:
      return Code::kUnknown;
  }
}

}  // namespace

Error ErrnoError(int errno_value, std::string_view action) {
  std::string message(action);
  message += ": ";
  // Unlike strerror, without locale and without a shared buffer.
  const char* description = strerrordesc_np(errno_value);
  if (description != nullptr) {
    message += description;
  } else {
    message += "error " + std::to_string(errno_value);
  }
  return {CodeOfErrno(errno_value), std::move(message)};
}

}  // namespace rknnd::base
