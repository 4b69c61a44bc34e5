// Whole files in and out, for the tools. Any thread.

#ifndef CLIENT_IMAGE_FILE_H_
#define CLIENT_IMAGE_FILE_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/values/expected.h"

namespace rknnd::client {

// Largest file that is read whole: inputs and pictures. More is a mix-up.
inline constexpr size_t kMaxFileBytes = size_t{1} << 30;

// All bytes of a regular file.
base::Expected<std::vector<std::byte>> ReadFile(const std::string& path);

// Makes the file, or replaces its contents.
base::Expected<void> WriteFile(const std::string& path,
                               std::span<const std::byte> bytes);

}  // namespace rknnd::client

#endif  // CLIENT_IMAGE_FILE_H_
