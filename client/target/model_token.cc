#include "client/target/model_token.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <span>

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr std::string_view kName = "rknnd";
constexpr std::string_view kVersion = "1";
constexpr size_t kCheckDigits = 8;
constexpr size_t kFlagDigits = 8;

std::string FlagText(uint32_t flags) {
  std::string digits(kFlagDigits, '0');
  for (size_t i = kFlagDigits; i-- > 0; flags >>= 4) {
    digits[i] = "0123456789abcdef"[flags & 15];
  }
  return digits;
}

std::string CheckText(std::string_view body) {
  const auto hash = base::Sha256Of(std::as_bytes(std::span(body)));
  return base::ToHex(hash).substr(0, kCheckDigits);
}

std::string BodyText(const ModelToken& token) {
  return std::string(kName) + std::string(kVersion) + "-" +
         base::ToHex(token.id) + "-" + FlagText(token.flags);
}

template <class Number>
bool ReadHex(std::string_view text, Number* number) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *number, 16);
  return error == std::errc() && end == text.data() + text.size();
}

Error Wrong(const std::string& what) {
  return {Code::kInvalidArgument, "this is no model token: " + what};
}

}  // namespace

std::string PrintToken(const ModelToken& token) {
  const std::string body = BodyText(token);
  return body + "-" + CheckText(body);
}

Expected<ModelToken> ParseToken(std::string_view text) {
  if (!text.starts_with(kName)) {
    return Wrong("it does not begin with '" + std::string(kName) + "'");
  }
  const size_t dash = text.find('-');
  const std::string_view version =
      text.substr(kName.size(), std::min(dash, text.size()) - kName.size());
  if (version != kVersion) {
    return Wrong("its version is '" + std::string(version.substr(0, 16)) +
                 "', this library knows " + std::string(kVersion));
  }
  const size_t size = BodyText({}).size() + 1 + kCheckDigits;
  if (text.size() != size) {
    return Wrong("it has " + std::to_string(text.size()) +
                 " characters instead of " + std::to_string(size));
  }
  const std::string_view body = text.substr(0, size - kCheckDigits - 1);
  ModelToken token;
  const std::string_view id = body.substr(dash + 1, 2 * token.id.size());
  bool good = true;
  for (size_t i = 0; i < token.id.size(); ++i) {
    good = ReadHex(id.substr(2 * i, 2), &token.id[i]) && good;
  }
  good = ReadHex(body.substr(body.size() - kFlagDigits), &token.flags) && good;
  if (!good || PrintToken(token) != text) {
    return Wrong("characters of it have changed on the way");
  }
  return token;
}

}  // namespace rknnd::client
