// Tables, vectors and strings of a FlatBuffer that nobody has checked: every
// offset is followed only inside the section, every count is bounded by it.
// Used by rknn_file.cc; knows no schema but the slots it is asked for. Any
// thread.
//
// A value that is missing, or that lies outside, reads as "not there"; the
// reader remembers that it met one that lies outside.

#ifndef DRIVER_RKNN_FILE_FLATBUFFER_H_
#define DRIVER_RKNN_FILE_FLATBUFFER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rknnd::rknn_file {

class FlatBuffer;

// A vector of elements of one size. Its elements lie inside the section.
class FlatVector {
 public:
  FlatVector() = default;
  FlatVector(const FlatBuffer* buffer, uint32_t start, uint32_t count)
      : buffer_(buffer), start_(start), count_(count) {}

  [[nodiscard]] uint32_t size() const { return count_; }
  // `i` is below size(); the vector was asked for with elements of T's size.
  template <class T>
  [[nodiscard]] T At(uint32_t i) const;

 private:
  friend class FlatTable;
  const FlatBuffer* buffer_ = nullptr;
  uint32_t start_ = 0;
  uint32_t count_ = 0;
};

// One table. A default-made one has no fields.
class FlatTable {
 public:
  FlatTable() = default;

  [[nodiscard]] bool valid() const { return buffer_ != nullptr; }
  [[nodiscard]] bool Has(uint32_t slot) const { return Offset(slot) != 0; }
  // A field whose width is known; `absent` where it is not there.
  template <class T>
  [[nodiscard]] T Number(uint32_t slot, T absent = {}) const;
  // Whatever width the field has in this file: its neighbours tell.
  [[nodiscard]] uint64_t Unsigned(uint32_t slot) const;
  [[nodiscard]] std::string_view String(uint32_t slot) const;
  [[nodiscard]] FlatTable Table(uint32_t slot) const;
  [[nodiscard]] FlatVector Vector(uint32_t slot, size_t element_size) const;
  // The i-th table of the vector of tables in `slot`.
  [[nodiscard]] FlatTable TableAt(const FlatVector& tables, uint32_t i) const;

 private:
  friend class FlatBuffer;
  FlatTable(const FlatBuffer* buffer, uint32_t start, uint32_t table_size,
            uint32_t vtable, uint32_t slots)
      : buffer_(buffer),
        start_(start),
        size_(table_size),
        vtable_(vtable),
        slots_(slots) {}

  // From the table's start; 0: not there.
  [[nodiscard]] uint32_t Offset(uint32_t slot) const;
  // Where the field's uoffset leads; nullopt: not there, or outside.
  [[nodiscard]] std::optional<uint32_t> Follow(uint32_t slot) const;

  const FlatBuffer* buffer_ = nullptr;
  uint32_t start_ = 0;
  uint32_t size_ = 0;
  uint32_t vtable_ = 0;
  uint32_t slots_ = 0;
};

// Thread: any, one at a time.
class FlatBuffer {
 public:
  // `bytes` outlive it and are at most 4 GiB.
  explicit FlatBuffer(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool HasIdentifier(std::string_view identifier) const;
  [[nodiscard]] FlatTable Root() const;
  // The first thing that led outside, "" if none did.
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  friend class FlatTable;
  friend class FlatVector;

  template <class T>
  [[nodiscard]] std::optional<T> Read(uint64_t at) const {
    if (!Holds(at, sizeof(T))) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  [[nodiscard]] bool Holds(uint64_t at, uint64_t size) const {
    return at <= bytes_.size() && size <= bytes_.size() - at;
  }
  [[nodiscard]] FlatTable TableAtPlace(uint64_t at) const;
  void Fail(const char* what, uint64_t at) const;

  const std::span<const std::byte> bytes_;
  mutable std::string fault_;
};

template <class T>
T FlatTable::Number(uint32_t slot, T absent) const {
  const uint32_t offset = Offset(slot);
  if (offset == 0) return absent;
  if (size_ - offset < sizeof(T)) {
    buffer_->Fail("a field", uint64_t{start_} + offset);
    return absent;
  }
  return buffer_->Read<T>(uint64_t{start_} + offset).value_or(absent);
}

template <class T>
T FlatVector::At(uint32_t i) const {
  return *buffer_->Read<T>(uint64_t{start_} + uint64_t{i} * sizeof(T));
}

}  // namespace rknnd::rknn_file

#endif  // DRIVER_RKNN_FILE_FLATBUFFER_H_
