// Protobuf's encoding by hand: five fields of a message are no reason to link a
// library for all of ONNX.

#include "client/ctl/models/onnx_header.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace rknnd::client {
namespace {

// More than a file has that people look at.
constexpr size_t kMaxEntries = 1024;
constexpr size_t kMaxText = 4096;

// Walks over one message's fields.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  // The next field; false at the end, or where nothing can be read.
  bool Next() {
    const std::optional<uint64_t> key = Varint();
    if (!key) return false;
    number_ = *key >> 3;
    value_ = 0;
    text_ = {};
    switch (*key & 7) {
      case 0: {
        const std::optional<uint64_t> value = Varint();
        if (!value) return false;
        value_ = *value;
        return true;
      }
      case 1:
        return Skip(8);
      case 2: {
        const std::optional<uint64_t> size = Varint();
        if (!size || *size > rest_.size()) return false;
        text_ = rest_.substr(0, static_cast<size_t>(*size));
        return Skip(static_cast<size_t>(*size));
      }
      case 5:
        return Skip(4);
      default:
        return false;
    }
  }
  [[nodiscard]] uint64_t number() const { return number_; }
  [[nodiscard]] int64_t value() const { return static_cast<int64_t>(value_); }
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] std::string copy() const {
    return std::string(text_.substr(0, kMaxText));
  }

 private:
  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return std::nullopt;
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    return std::nullopt;
  }
  bool Skip(size_t size) {
    if (size > rest_.size()) return false;
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  uint64_t number_ = 0;
  uint64_t value_ = 0;
  std::string_view text_;
};

}  // namespace

OnnxHeader ReadOnnxHeader(std::span<const std::byte> file) {
  OnnxHeader header;
  Fields model({reinterpret_cast<const char*>(file.data()), file.size()});
  while (model.Next()) {
    switch (model.number()) {
      case 1:
        header.ir_version = model.value();
        break;
      case 2:
        header.producer_name = model.copy();
        break;
      case 3:
        header.producer_version = model.copy();
        break;
      case 8: {
        OnnxHeader::Opset opset;
        Fields entry(model.text());
        while (entry.Next()) {
          if (entry.number() == 1) opset.domain = entry.copy();
          if (entry.number() == 2) opset.version = entry.value();
        }
        if (header.opsets.size() < kMaxEntries) {
          header.opsets.push_back(std::move(opset));
        }
        break;
      }
      case 14: {
        std::string key;
        std::string value;
        Fields entry(model.text());
        while (entry.Next()) {
          if (entry.number() == 1) key = entry.copy();
          if (entry.number() == 2) value = entry.copy();
        }
        if (header.metadata.size() < kMaxEntries) header.metadata[key] = value;
        break;
      }
      default:
        break;
    }
  }
  return header;
}

}  // namespace rknnd::client
