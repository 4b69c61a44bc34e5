// The frame of every function of the C API: no exception leaves it, and a
// failure becomes a number, this thread's last error and a line on stderr.

#ifndef CLIENT_RKNNRT_CALL_H_
#define CLIENT_RKNNRT_CALL_H_

#include <cxxabi.h>

#include <cstdint>
#include <new>

#include "base/values/expected.h"
#include "client/include/rknn_api.h"
#include "client/rknnrt/context/context.h"
#include "client/rknnrt/runtime.h"
#include "client/rknnrt/status_map.h"
#include "client/target/log.h"

// The project's visibility is hidden; these are the names of librknnrt.map.
#define RKNND_API __attribute__((visibility("default")))

namespace rknnd::client {

// Records the failure of `function` and gives its number. The line on stderr is
// one of `level`: not an error's for answers that programs ask for to learn
// something.
int Report(const char* function, const Failure& failure,
           LogLevel level = LogLevel::kError);

// "not supported in this version", as the failure of `function`.
int Unsupported(const char* function);

Failure OutOfMemory();
Failure InternalError();

inline Failure WrongParameter(const char* message) {
  return {{base::Code::kInvalidArgument, message}, Subject::kNone};
}

// Runs body(), which returns an Outcome.
template <class Body>
int Call(const char* function, Body body) {
  try {
    if (const Outcome done = body(); !done.ok())
      return Report(function, done.failure());
    return RKNN_SUCC;
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is being cancelled
  } catch (const std::bad_alloc&) {
    return Report(function, OutOfMemory());
  } catch (...) {
    return Report(function, InternalError());
  }
}

// Runs body(context) on the context behind `handle`.
template <class Body>
int CallOn(const char* function, uint64_t handle, Body body) {
  return Call(function, [&]() -> Outcome {
    base::Expected<std::shared_ptr<Context>> context =
        Runtime::Get().FindContext(handle);
    if (!context.ok()) {
      return Failure{std::move(context).error(), Subject::kContext};
    }
    return body(**context);
  });
}

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CALL_H_
