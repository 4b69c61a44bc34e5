// How the functions of rknnd.hpp fail. Programs include that one.

#ifndef RKNND_ERROR_HPP
#define RKNND_ERROR_HPP

#include <stdexcept>
#include <string>

#include "rknn_api.h"
#include "rknnd.h"

namespace rknnd {

// What went wrong: an RKNN_ERR_* number, and in words what() says it with the
// name of the function of the C API that failed.
class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& text)
      : std::runtime_error(text), code_(code) {}

  int code() const noexcept { return code_; }

 private:
  int code_;
};

namespace detail {

[[noreturn]] inline void Fail(int code) {
  const char* const reason = rknnd_last_error();
  throw Error(code, *reason != '\0'
                        ? reason
                        : "failed with code " + std::to_string(code));
}

inline void Check(int code) {
  if (code != RKNN_SUCC) Fail(code);
}

}  // namespace detail

}  // namespace rknnd

#endif  // RKNND_ERROR_HPP
