#include "driver/soft/import/sniff.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "driver/soft/import/rknn.h"
#include "driver/soft/import/wire_scan.h"

namespace rknnd::soft {
namespace {

constexpr absl::string_view kHowToPass =
    " If you pass a path, size must be 0; if you pass a buffer, its length";

std::string FirstBytes(absl::string_view text) {
  std::string hex;
  for (char c : text.substr(0, 8)) {
    absl::StrAppend(&hex, hex.empty() ? "" : " ",
                    absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
  }
  return hex;
}

// Programs that pass a path give its length as the size now and then.
bool IsPath(absl::string_view text) {
  constexpr size_t kLongestPath = 4096;
  text = absl::StripSuffix(text, absl::string_view("\0", 1));
  return text.size() < kLongestPath &&
         std::all_of(text.begin(), text.end(), absl::ascii_isprint) &&
         (absl::StrContains(text, '/') || absl::EndsWith(text, ".onnx") ||
          absl::EndsWith(text, ".rknn"));
}

absl::Status NotOnnx(absl::string_view name, absl::string_view text,
                     absl::string_view looks_like, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' is not an ONNX model (first bytes ", FirstBytes(text),
      looks_like.empty() ? "" : "; looks like ", looks_like, ")", remedy));
}

}  // namespace

absl::Status CheckIsOnnx(std::span<const std::byte> bytes,
                         const std::string& name) {
  absl::string_view text(reinterpret_cast<const char*>(bytes.data()),
                         bytes.size());
  if (text.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", name, "' is empty (0 bytes).", kHowToPass));
  }
  if (IsCompiled(bytes)) return WhyCompiledCannotRun(bytes, name);
  if (absl::StartsWith(text, "version https://git-lfs")) {
    return NotOnnx(name, text, "a Git LFS pointer",
                   ": fetch the file itself with 'git lfs pull'");
  }
  absl::string_view start = absl::StripLeadingAsciiWhitespace(
      text.substr(0, std::min<size_t>(text.size(), 64)));
  if (absl::StartsWithIgnoreCase(start, "<!doctype") ||
      absl::StartsWithIgnoreCase(start, "<html") ||
      absl::StartsWithIgnoreCase(start, "<?xml")) {
    return NotOnnx(name, text, "HTML",
                   ": a web page was saved instead of the file");
  }
  if (IsPath(text)) {
    return NotOnnx(name, text, "a path", absl::StrCat(".", kHowToPass));
  }
  WireScan scan = ScanModel(bytes);
  switch (scan.verdict) {
    case WireScan::kWhole:
      return absl::OkStatus();
    case WireScan::kTruncated:
      // Garbage too can look like a field that is longer than the file; a
      // model starts with its ir_version.
      if (text[0] == 0x08) {
        return absl::InvalidArgumentError(absl::StrCat(
            "model '", name, "' of ", bytes.size(),
            " bytes is truncated: header says ", scan.needed, ".", kHowToPass));
      }
      break;
    case WireScan::kTooMany:
      return absl::ResourceExhaustedError(
          absl::StrCat("model '", name, "' has more than ", kMaxWireElements,
                       " parts: no network needs so many"));
    case WireScan::kTooDeep:
      return absl::InvalidArgumentError(
          absl::StrCat("model '", name, "' nests graphs more than ",
                       kMaxWireDepth, " deep"));
    case WireScan::kMalformed:
      break;
  }
  return NotOnnx(name, text, "", "");
}

}  // namespace rknnd::soft
