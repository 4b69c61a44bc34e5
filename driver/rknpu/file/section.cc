#include "driver/rknpu/file/section.h"

#include <string_view>

namespace rknnd::rknpu {

using rknn_file::FlatTable;
using rknn_file::FlatVector;

base::Error Unsupported(const std::string& what) {
  return {base::Code::kUnimplemented, "the .rknn file cannot be run: " + what};
}

bool Section::Take(uint64_t bytes) {
  if (overdrawn_ || bytes > room_) {
    overdrawn_ = true;
    return false;
  }
  room_ -= bytes;
  return true;
}

std::string Section::Text(const FlatTable& table, uint32_t slot) {
  const std::string_view text = table.String(slot);
  if (!Take(text.size())) return "";
  std::string copy(text);
  for (char& c : copy) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return copy;
}

std::span<const std::byte> Section::Bytes(const FlatTable& table,
                                          uint32_t slot) const {
  return std::as_bytes(std::span(table.String(slot)));
}

FlatVector Section::Tables(const FlatTable& table, uint32_t slot) {
  // What is kept of each is larger than its reference here.
  constexpr uint64_t kCostOfOne = 16;
  const FlatVector tables = table.Vector(slot, sizeof(uint32_t));
  if (!Take(uint64_t{tables.size()} * kCostOfOne)) return {};
  return tables;
}

base::Expected<void> Section::Check() const {
  if (!buffer_.fault().empty()) return Damaged(buffer_.fault());
  if (overdrawn_) {
    return Damaged("its parts overlap, so that it says more than it has");
  }
  return {};
}

}  // namespace rknnd::rknpu
