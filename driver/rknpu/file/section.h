// Strings and lists of numbers out of the main section, counted: vectors of a
// hostile file may overlap, so that a small file could ask for any amount of
// memory. Used by the parts of Read(); one reading at a time.

#ifndef DRIVER_RKNPU_FILE_SECTION_H_
#define DRIVER_RKNPU_FILE_SECTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/values/expected.h"
#include "driver/rknn_file/container.h"
#include "driver/rknn_file/flatbuffer.h"

namespace rknnd::rknpu {

using rknn_file::Damaged;
base::Error Unsupported(const std::string& what);

class Section {
 public:
  // `bytes` outlive it.
  explicit Section(std::span<const std::byte> bytes)
      : buffer_(bytes), room_(uint64_t{bytes.size()} * 4) {}

  [[nodiscard]] const rknn_file::FlatBuffer& buffer() const { return buffer_; }

  // Bounded, and nothing in it that a terminal would act on. Names keep their
  // length: two that differ must not become one.
  std::string Text(const rknn_file::FlatTable& table, uint32_t slot);

  template <class T>
  std::vector<T> Numbers(const rknn_file::FlatTable& table, uint32_t slot) {
    const rknn_file::FlatVector list = table.Vector(slot, sizeof(T));
    std::vector<T> numbers;
    if (!Take(uint64_t{list.size()} * sizeof(T))) return numbers;
    numbers.reserve(list.size());
    for (uint32_t i = 0; i < list.size(); ++i) {
      numbers.push_back(list.At<T>(i));
    }
    return numbers;
  }

  // Nothing is copied.
  [[nodiscard]] std::span<const std::byte> Bytes(
      const rknn_file::FlatTable& table, uint32_t slot) const;

  // Of a vector of tables; each has been paid for.
  rknn_file::FlatVector Tables(const rknn_file::FlatTable& table,
                               uint32_t slot);

  // What went wrong in any of these, if something did.
  [[nodiscard]] base::Expected<void> Check() const;

 private:
  bool Take(uint64_t bytes);

  const rknn_file::FlatBuffer buffer_;
  uint64_t room_;
  bool overdrawn_ = false;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_FILE_SECTION_H_
