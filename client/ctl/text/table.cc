#include "client/ctl/text/table.h"

#include <algorithm>

#include "client/ctl/text/text.h"

namespace rknnd::client {

std::string Table::ToString() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = Width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, Width(row[i]));
    widths.push_back(width);
  }
  std::string text;
  const auto cell = [&](size_t i, const std::string& value) {
    const std::string gap(widths[i] - Width(value), ' ');
    if (i > 0) text += "  ";
    text += columns_[i].align == Align::kLeft ? value + gap : gap + value;
  };
  const auto end_line = [&text] {
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  for (size_t i = 0; i < columns_.size(); ++i) cell(i, columns_[i].title);
  end_line();
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) cell(i, row[i]);
    end_line();
  }
  return text;
}

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    // 1023.96 KiB would be printed as 1024.0.
    if (value < 1023.95) break;
    value /= 1024;
    unit = next;
  }
  return Printed("%.1f %s", value, unit);
}

std::string FormatCount(uint64_t count, std::string_view one) {
  std::string text = std::to_string(count) + ' ';
  text += one;
  return count == 1 ? text : text + 's';
}

std::string FormatMicroseconds(double us) {
  if (us < 999.5) return Printed("%.0f us", us);
  if (us < 9.995e3) return Printed("%.2f ms", us / 1e3);
  if (us < 999.5e3) return Printed("%.1f ms", us / 1e3);
  if (us < 59.95e6) return Printed("%.1f s", us / 1e6);
  // Whatever a daemon says: more than fits is no number to cast.
  const auto seconds = static_cast<uint64_t>(std::min(us / 1e6, 1e15));
  const auto pair = [](uint64_t major, const char* name, uint64_t minor,
                       const char* minor_name) {
    return std::to_string(major) + name + std::to_string(minor) + minor_name;
  };
  if (seconds < 3600) return pair(seconds / 60, " min ", seconds % 60, " s");
  if (seconds < 86400) {
    return pair(seconds / 3600, " h ", seconds / 60 % 60, " min");
  }
  return pair(seconds / 86400, " d ", seconds / 3600 % 24, " h");
}

std::string FormatValue(double value) { return Printed("%.5g", value); }

std::string FormatShape(const std::vector<size_t>& shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (const size_t extent : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text;
}

}  // namespace rknnd::client
