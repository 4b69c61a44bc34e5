// See the header. What is split may come from anybody.

#include "base/values/model_options.h"

#include <utility>

namespace rknnd::base {
namespace {

constexpr std::string_view kKey = "weights_of:";
constexpr size_t kShown = 80;  // of a wrong value in a message

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::optional<Sha256Digest> DigestOf(std::string_view hex) {
  Sha256Digest digest{};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < digest.size(); ++i) {
    const int high = DigitOf(hex[2 * i]);
    const int low = DigitOf(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return digest;
}

}  // namespace

std::string WithWeightsOf(std::string options, const Sha256Digest& owner) {
  if (!options.empty() && options.back() != '\n') options += '\n';
  options += kKey;
  options += ' ';
  options += ToHex(owner);
  options += '\n';
  return options;
}

Expected<ModelOptionsText> SplitModelOptions(std::string_view options) {
  std::string_view lines = options;
  if (!lines.empty() && lines.back() == '\n') lines.remove_suffix(1);
  const size_t newline = lines.rfind('\n');
  const size_t last = newline == std::string_view::npos ? 0 : newline + 1;
  std::string_view value = lines.substr(last);
  if (value.substr(0, kKey.size()) != kKey)
    return ModelOptionsText{options, {}};
  value.remove_prefix(kKey.size());
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  std::optional<Sha256Digest> owner = DigestOf(value);
  if (!owner.has_value()) {
    return Error{Code::kInvalidArgument,
                 "option 'weights_of' is '" +
                     std::string(value.substr(0, kShown)) +
                     "', must be the 64 hexadecimal digits of the model whose "
                     "weights are shared: rknn_init writes it "
                     "(RKNN_FLAG_SHARE_WEIGHT_MEM), leave it out"};
  }
  return ModelOptionsText{options.substr(0, last), owner};
}

}  // namespace rknnd::base
