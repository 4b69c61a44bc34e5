#include "tests/integration/harness/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

namespace rknnd::integration {

std::string ReadText(const std::string& path) {
  // The kernel's own files have no size.
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
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

std::string LibraryPath(const std::string& name) {
  return std::string(RKNND_BINARY_ROOT "/lib/") + name;
}

std::string SourcePath(const std::string& path) {
  return std::string(RKNND_SOURCE_ROOT "/") + path;
}

std::string FindProgram(const std::string& name) {
  for (const char* folder : {"/usr/bin/", "/usr/local/bin/", "/usr/sbin/"}) {
    std::string path = folder + name;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

}  // namespace rknnd::integration
