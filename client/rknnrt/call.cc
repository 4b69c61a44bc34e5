// Called where a function of the C API fails, on the program's threads.

#include "client/rknnrt/call.h"

#include <string>

#include "client/target/log.h"

namespace rknnd::client {

int Report(const char* function, const Failure& failure, LogLevel level) {
  SetLastError(function, failure.error.message);
  Log(level, LastError());
  return ToRknnError(failure.error.code, failure.subject);
}

int Unsupported(const char* function) {
  return Call(function, []() -> Outcome {
    return Failure{
        {base::Code::kUnimplemented, "not supported in this version of rknnd"},
        Subject::kNone};
  });
}

// Short enough for the string's own room: nothing is allocated here.
Failure OutOfMemory() {
  return {{base::Code::kResourceExhausted, "out of memory"}, Subject::kNone};
}

Failure InternalError() {
  return {{base::Code::kInternal, "internal error"}, Subject::kNone};
}

}  // namespace rknnd::client
