// A main for fuzzers where libFuzzer is not linked (g++): feeds the fuzzer the
// empty input and every file below the folders and files it is given, so that
// inputs that once broke something are tried in each test run.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void Replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file),
                                std::istreambuf_iterator<char>()};
  // Named before the run: a crash then says on which input.
  std::fprintf(stderr, "%s: %zu bytes\n", path.c_str(), bytes.size());
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()),
                         bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  LLVMFuzzerTestOneInput(nullptr, 0);
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path given(argv[i]);
    std::error_code error;
    if (std::filesystem::is_regular_file(given, error)) {
      Replay(given);
      continue;
    }
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(given, error)) {
      if (entry.is_regular_file(error)) Replay(entry.path());
    }
    if (error) {
      std::fprintf(stderr, "'%s': %s\n", argv[i], error.message().c_str());
      return 1;
    }
  }
  return 0;
}
