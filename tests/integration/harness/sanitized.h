// Whether this build has a sanitizer, which keeps what is freed for a while and
// maps memory of its own: a process's size then tells nothing. Used by tests
// that look at processes.

#ifndef TESTS_INTEGRATION_HARNESS_SANITIZED_H_
#define TESTS_INTEGRATION_HARNESS_SANITIZED_H_

namespace rknnd::integration {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_SANITIZED_H_
