// What the client library says: the last error of each thread, and lines on
// stderr. RKNN_LOG_LEVEL (0-5) belongs to the client; the daemon sends its
// lines for this session here.

#ifndef CLIENT_TARGET_LOG_H_
#define CLIENT_TARGET_LOG_H_

#include <cstdint>
#include <string_view>

namespace rknnd::client {

enum class LogLevel : uint32_t {
  kError = 1,
  kWarning = 2,
  kInfo = 3,
  kDebug = 4,
  kTrace = 5,
};

// RKNN_LOG_LEVEL as it was at the first call. Without it errors are printed
// and nothing else, as by the vendor's library.
uint32_t EnabledLogLevel();

// What EnabledLogLevel makes of the variable's text (empty: not set): digits
// above 5 count as 5, anything else as not set.
uint32_t ParseLogLevel(std::string_view text);

// One line on stderr in one write, if `level` is enabled. Thread: any.
void Log(LogLevel level, std::string_view text);

// Each line of `text` as Log() would print it, in one write.
void LogText(LogLevel level, std::string_view text);

// "function: message" as this thread's last error. Cut to the room there is,
// which without memory is none.
void SetLastError(std::string_view function, std::string_view message);
// NUL-terminated; "" before the first. Valid until the next SetLastError.
const char* LastError();

}  // namespace rknnd::client

#endif  // CLIENT_TARGET_LOG_H_
