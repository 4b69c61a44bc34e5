// What a fallible call below abseil returns: a value, or why there is none.
// Used by base/posix, proto/wire and the client library, which must not carry
// abseil into a host program; daemon code turns an Error into an absl::Status
// at its edge (base/status/status.h). The codes are gRPC's canonical ones, by
// number, so that one number names a failure in the daemon, on the session
// socket, over gRPC and in the client.

#ifndef BASE_VALUES_EXPECTED_H_
#define BASE_VALUES_EXPECTED_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace rknnd::base {

enum class Code : int32_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

struct [[nodiscard]] Error {
  Code code = Code::kUnknown;
  std::string message;
};

// The error a failed system call stands for; `action` names call and object,
// as in "open '/dev/udmabuf'". Reads no global state.
Error ErrnoError(int errno_value, std::string_view action);

// A T, or an Error. Thread: like T.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value)  // NOLINT(google-explicit-constructor): reads as the value
      : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error)  // NOLINT(google-explicit-constructor): as absl's
      : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Expected<void> {
 public:
  Expected() = default;
  Expected(Error error)  // NOLINT(google-explicit-constructor): as absl's
      : error_(std::move(error)), ok_(false) {}

  [[nodiscard]] bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace rknnd::base

#endif  // BASE_VALUES_EXPECTED_H_
