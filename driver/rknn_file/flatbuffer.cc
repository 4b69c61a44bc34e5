// Follows a FlatBuffer's offsets, none of which is trusted.

#include "driver/rknn_file/flatbuffer.h"

#include <algorithm>

namespace rknnd::rknn_file {

void FlatBuffer::Fail(const char* what, uint64_t at) const {
  if (!fault_.empty()) return;
  fault_ = std::string(what) + " at offset " + std::to_string(at) +
           " lies outside the section of " + std::to_string(bytes_.size()) +
           " bytes";
}

bool FlatBuffer::HasIdentifier(std::string_view identifier) const {
  return Holds(4, identifier.size()) &&
         std::memcmp(bytes_.data() + 4, identifier.data(), identifier.size()) ==
             0;
}

FlatTable FlatBuffer::Root() const {
  const auto offset = Read<uint32_t>(0);
  if (!offset) {
    Fail("the root", 0);
    return {};
  }
  return TableAtPlace(*offset);
}

FlatTable FlatBuffer::TableAtPlace(uint64_t at) const {
  const auto back = Read<int32_t>(at);
  if (!back) {
    Fail("a table", at);
    return {};
  }
  const int64_t vtable = static_cast<int64_t>(at) - *back;
  if (vtable < 0) {
    Fail("a table's description", at);
    return {};
  }
  const auto place = static_cast<uint64_t>(vtable);
  const auto vtable_size = Read<uint16_t>(place);
  const auto table_size = Read<uint16_t>(place + 2);
  constexpr uint16_t kHeader = 4;
  if (!vtable_size || !table_size || *vtable_size < kHeader ||
      *table_size < kHeader || !Holds(place, *vtable_size) ||
      !Holds(at, *table_size)) {
    Fail("a table's description", place);
    return {};
  }
  // Far more than any table here has: what is asked per table stays short.
  constexpr uint32_t kMaxSlots = 64;
  const uint32_t slots = (static_cast<uint32_t>(*vtable_size) - kHeader) / 2;
  return {this, static_cast<uint32_t>(at), *table_size,
          static_cast<uint32_t>(place), std::min(slots, kMaxSlots)};
}

uint32_t FlatTable::Offset(uint32_t slot) const {
  if (slot >= slots_) return 0;
  const uint16_t offset =
      *buffer_->Read<uint16_t>(uint64_t{vtable_} + 4 + uint64_t{slot} * 2);
  if (offset == 0) return 0;
  if (offset < 4 || offset >= size_) {
    buffer_->Fail("a field", uint64_t{start_} + offset);
    return 0;
  }
  return offset;
}

uint64_t FlatTable::Unsigned(uint32_t slot) const {
  const uint32_t offset = Offset(slot);
  if (offset == 0) return 0;
  // Fields lie one behind the other: it ends before the next one.
  uint32_t end = size_;
  for (uint32_t other = 0; other < slots_; ++other) {
    const uint32_t begin = Offset(other);
    if (begin > offset) end = std::min(end, begin);
  }
  const uint32_t room = end - offset;
  const uint64_t at = uint64_t{start_} + offset;
  // The padding behind a narrower field is zero.
  if (room >= 8 && at % 8 == 0) {
    return buffer_->Read<uint64_t>(at).value_or(0);
  }
  if (room >= 4 && at % 4 == 0) {
    return buffer_->Read<uint32_t>(at).value_or(0);
  }
  if (room >= 2 && at % 2 == 0) {
    return buffer_->Read<uint16_t>(at).value_or(0);
  }
  return buffer_->Read<uint8_t>(at).value_or(0);
}

std::optional<uint32_t> FlatTable::Follow(uint32_t slot) const {
  const uint32_t offset = Offset(slot);
  if (offset == 0) return std::nullopt;
  const uint64_t at = uint64_t{start_} + offset;
  const auto ahead = buffer_->Read<uint32_t>(at);
  if (!ahead || offset + 4 > size_ || !buffer_->Holds(at + *ahead, 4)) {
    buffer_->Fail("what a field points at", at);
    return std::nullopt;
  }
  return static_cast<uint32_t>(at + *ahead);
}

std::string_view FlatTable::String(uint32_t slot) const {
  const FlatVector text = Vector(slot, 1);
  if (text.size() == 0) return {};
  return {reinterpret_cast<const char*>(buffer_->bytes_.data()) + text.start_,
          text.size()};
}

FlatTable FlatTable::Table(uint32_t slot) const {
  const auto at = Follow(slot);
  return at ? buffer_->TableAtPlace(*at) : FlatTable();
}

FlatVector FlatTable::Vector(uint32_t slot, size_t element_size) const {
  const auto at = Follow(slot);
  if (!at) return {};
  const uint32_t count = *buffer_->Read<uint32_t>(*at);
  if (!buffer_->Holds(uint64_t{*at} + 4, uint64_t{count} * element_size)) {
    buffer_->Fail("a list", *at);
    return {};
  }
  return {buffer_, *at + 4, count};
}

FlatTable FlatTable::TableAt(const FlatVector& tables, uint32_t i) const {
  const uint64_t at = uint64_t{tables.start_} + uint64_t{i} * 4;
  return buffer_->TableAtPlace(at + tables.At<uint32_t>(i));
}

}  // namespace rknnd::rknn_file
