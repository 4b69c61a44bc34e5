// Text for people: aligned tables, sizes and times with units. Text that came
// from another process or a file goes through Printable() (text.h) first.

#ifndef CLIENT_CTL_TEXT_TABLE_H_
#define CLIENT_CTL_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rknnd::client {

// Thread: any, one at a time.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as there are columns.
  void Add(std::vector<std::string> cells) {
    rows_.push_back(std::move(cells));
  }

  // Lines with titles first, two spaces between columns, none at the end.
  [[nodiscard]] std::string ToString() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "0 B", "1023 B", "1.0 KiB", "12.4 MiB": three digits or a fraction of one.
[[nodiscard]] std::string FormatBytes(uint64_t bytes);
// "1 input", "2 inputs".
[[nodiscard]] std::string FormatCount(uint64_t count, std::string_view one);
// "850 us", "3.21 ms", "12.4 s", "2 min 5 s", "3 h 12 min", "4 d 3 h".
[[nodiscard]] std::string FormatMicroseconds(double us);
// Five significant digits at most: "0.99934", "-12.5", "nan".
[[nodiscard]] std::string FormatValue(double value);
// "1x3x240x320"; "scalar" without axes.
[[nodiscard]] std::string FormatShape(const std::vector<size_t>& shape);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_TEXT_TABLE_H_
