#include "tests/integration/harness/files.h"

#include <gtest/gtest.h>

#include <fstream>

namespace rknnd::integration {

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  std::string bytes(static_cast<size_t>(file.tellg()), '\0');
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

std::string WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  EXPECT_TRUE(file.good()) << path;
  return path;
}

std::string WriteFloats(const std::string& path,
                        const std::vector<float>& values) {
  return WriteFile(path, {reinterpret_cast<const char*>(values.data()),
                          values.size() * sizeof(float)});
}

std::string ProgramPath(const std::string& name) {
  return std::string(RKNND_BINARY_ROOT "/bin/") + name;
}

}  // namespace rknnd::integration
