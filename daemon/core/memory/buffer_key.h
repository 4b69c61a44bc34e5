// The name of a buffer beyond its session: 128 random bits of the daemon's, or
// 32 hexadecimal digits where it is written. Who knows it may use the memory.

#ifndef DAEMON_CORE_MEMORY_BUFFER_KEY_H_
#define DAEMON_CORE_MEMORY_BUFFER_KEY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rknnd::core {

using BufferKey = std::array<uint8_t, 16>;

// 32 lower-case digits.
std::string ToText(const BufferKey& key);
// Of 32 digits, in either case; nothing for any other text.
std::optional<BufferKey> ParseBufferKey(std::string_view text);

// A session's buffer, as whoever has its key may see it.
struct KeyedBuffer {
  BufferKey key{};
  uint64_t size = 0;
  bool read_only = false;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MEMORY_BUFFER_KEY_H_
