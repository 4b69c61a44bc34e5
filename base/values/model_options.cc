// See the header. What is split may come from anybody.

#include "base/values/model_options.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace rknnd::base {
namespace {

constexpr std::string_view kKey = "weights_of:";
constexpr std::string_view kCustomKey = "custom_operators:";
constexpr std::string_view kWhole = "all";
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

void EndLine(std::string& options) {
  if (!options.empty() && options.back() != '\n') options += '\n';
}

// Where the last line begins.
size_t LastLine(std::string_view options) {
  if (!options.empty() && options.back() == '\n') options.remove_suffix(1);
  const size_t newline = options.rfind('\n');
  return newline == std::string_view::npos ? 0 : newline + 1;
}

// Of the line behind its key: " 2 Foo,Bar".
std::optional<CustomOperatorsOption> CustomOf(std::string_view line) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view part = line.substr(0, space);
  std::string_view types = line.substr(space + 1);
  CustomOperatorsOption custom;
  if (part != kWhole) {
    uint32_t number = 0;
    const auto [end, error] =
        std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size()) {
      return std::nullopt;
    }
    custom.part = number;
  }
  while (!types.empty()) {
    const size_t comma = std::min(types.find(','), types.size());
    custom.types.emplace_back(types.substr(0, comma));
    types.remove_prefix(std::min(comma + 1, types.size()));
  }
  return custom;
}

}  // namespace

std::string WithCustomOperators(std::string options,
                                const CustomOperatorsOption& custom) {
  EndLine(options);
  options += kCustomKey;
  options += ' ';
  options += custom.part ? std::to_string(*custom.part) : std::string(kWhole);
  options += ' ';
  for (size_t i = 0; i < custom.types.size(); ++i) {
    if (i != 0) options += ',';
    options += custom.types[i];
  }
  options += '\n';
  return options;
}

std::string WithWeightsOf(std::string options, const Sha256Digest& owner) {
  EndLine(options);
  options += kKey;
  options += ' ';
  options += ToHex(owner);
  options += '\n';
  return options;
}

Expected<ModelOptionsText> SplitModelOptions(std::string_view options) {
  ModelOptionsText text;
  size_t last = LastLine(options);
  if (options.substr(last, kCustomKey.size()) == kCustomKey) {
    text.custom = CustomOf(options.substr(last + kCustomKey.size()));
    if (!text.custom) {
      return Error{Code::kInvalidArgument,
                   "option 'custom_operators' is '" +
                       std::string(options.substr(last, kShown)) +
                       "': rknn_register_custom_ops writes it, leave it out"};
    }
    options = options.substr(0, last);
    last = LastLine(options);
  }
  text.own = options;
  std::string_view value = options.substr(last);
  if (!value.empty() && value.back() == '\n') value.remove_suffix(1);
  if (value.substr(0, kKey.size()) != kKey) return text;
  value.remove_prefix(kKey.size());
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  text.weights_of = DigestOf(value);
  if (!text.weights_of.has_value()) {
    return Error{Code::kInvalidArgument,
                 "option 'weights_of' is '" +
                     std::string(value.substr(0, kShown)) +
                     "', must be the 64 hexadecimal digits of the model whose "
                     "weights are shared: rknn_init writes it "
                     "(RKNN_FLAG_SHARE_WEIGHT_MEM), leave it out"};
  }
  text.own = options.substr(0, last);
  return text;
}

}  // namespace rknnd::base
