// Text that clients and models chose, as protobuf's strings and Prometheus'
// labels must be.

#ifndef DAEMON_CORE_TERMS_UTF8_H_
#define DAEMON_CORE_TERMS_UTF8_H_

#include <string>

namespace rknnd::core {

// Each byte that is part of no UTF-8 character becomes '?'.
std::string Utf8(std::string text);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_TERMS_UTF8_H_
