// See marked_library.h.

#include "bench/peers/marked_library.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "bench/peers/cpu_level.h"

namespace rknnd::bench {
namespace {

using base::Code;
using base::Error;
using base::Expected;

namespace fs = std::filesystem;

constexpr unsigned char kCpuid[] = {0x0f, 0xa2};
static_assert(sizeof kCpuid == sizeof kMark);

// The addresses of all CPUIDs among the library's instructions. Searching for
// its two bytes would also find those inside of others.
Expected<std::vector<uint64_t>> FindCpuids(const std::string& library) {
  constexpr base::Nanoseconds kPatience = 120 * base::kSecond;
  base::ChildProcess::Options options;
  options.arguments = {"/bin/sh", "-c",
                       "objdump --disassemble --section=.text "
                       "--no-show-raw-insn \"$0\" | grep -w cpuid",
                       library};
  options.dies_with_parent = true;
  auto objdump = base::ChildProcess::Start(options);
  if (!objdump) return std::move(objdump).error();
  const auto text = objdump->ReadAll(kPatience);
  if (!text) return text.error();
  std::vector<uint64_t> addresses;  // "  b8d5ea:	cpuid"
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    addresses.push_back(std::strtoull(line.c_str(), nullptr, 16));
  }
  if (addresses.empty()) {
    return Error{Code::kUnavailable,
                 "objdump finds no CPUID in '" + library +
                     "': install binutils if it is missing"};
  }
  return addresses;
}

}  // namespace

Expected<void> MarkCpuid(const std::string& library, const std::string& copy) {
  const auto addresses = FindCpuids(library);
  if (!addresses) return addresses.error();
  std::ifstream file(library, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  for (const uint64_t address : *addresses) {
    // The code of such libraries lies at the same offset in the file.
    if (address + sizeof kCpuid > bytes.size() ||
        !std::equal(std::begin(kCpuid), std::end(kCpuid),
                    bytes.begin() + static_cast<std::ptrdiff_t>(address),
                    [](unsigned char a, char b) {
                      return a == static_cast<unsigned char>(b);
                    })) {
      return Error{Code::kUnavailable,
                   "the code of '" + library +
                       "' lies at other offsets in the file than in memory"};
    }
    std::copy(std::begin(kMark), std::end(kMark),
              bytes.begin() + static_cast<std::ptrdiff_t>(address));
  }
  // Under its name only when it is whole.
  const std::string unfinished = copy + ".tmp";
  std::ofstream out(unfinished, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::error_code failed;
  if (out) fs::rename(unfinished, copy, failed);
  if (!out || failed) {
    return Error{Code::kUnavailable, "cannot write '" + copy + "'"};
  }
  return {};
}

}  // namespace rknnd::bench
