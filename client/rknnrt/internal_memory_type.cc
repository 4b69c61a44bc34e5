#include "client/rknnrt/internal_memory_type.h"

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "base/posix/environment.h"
#include "client/include/rknn_api.h"
#include "client/target/log.h"

namespace rknnd::client {

std::optional<uint32_t> ParseInternalMemoryType(std::string_view text) {
  constexpr std::string_view kSram = "sram";
  if (text.empty()) return std::nullopt;
  if (text == kSram) return 0;
  if (text.starts_with("sram#")) {
    const std::string_view number = text.substr(kSram.size() + 1);
    uint32_t kib = 0;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), kib);
    if (error == std::errc() && end == number.data() + number.size()) {
      return kib == 0 ? std::nullopt : std::optional<uint32_t>(kib);
    }
  }
  Log(LogLevel::kWarning, "RKNN_INTERNAL_MEM_TYPE is '" + std::string(text) +
                              "': 'sram' and 'sram#KIB' are understood, it "
                              "has no effect");
  return std::nullopt;
}

void AskForSram(ContextRequest* request) {
  static const std::optional<uint32_t> kib =
      ParseInternalMemoryType(base::FromEnvironment("RKNN_INTERNAL_MEM_TYPE"));
  if (!kib.has_value()) return;
  request->flags |= RKNN_FLAG_ENABLE_SRAM;
  request->sram_limit = *kib;
}

}  // namespace rknnd::client
