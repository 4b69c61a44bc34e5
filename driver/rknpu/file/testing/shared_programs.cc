#include "driver/rknpu/file/testing/shared_programs.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace rknnd::rknpu::testing {

std::vector<std::byte> ReadShared(const std::string& name) {
  const char* given = std::getenv("RKNND_SHARED");  // NOLINT: one thread
  const std::string folder =
      given != nullptr ? given : RKNND_SOURCE_ROOT "/../shared";
  std::ifstream file(folder + "/rknn/" + name, std::ios::binary);
  const std::vector<char> text((std::istreambuf_iterator<char>(file)),
                               std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace rknnd::rknpu::testing
