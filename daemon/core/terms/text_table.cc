#include "daemon/core/terms/text_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::core {
namespace {

constexpr size_t kGap = 2;
// Longer than the shapes of most layers. A Concat of thousands of inputs would
// otherwise widen tens of thousands of rows to megabytes each.
constexpr size_t kMaxCell = 256;
constexpr char kCut[] = "...";

}  // namespace

std::string Harmless(std::string text) {
  unsigned char before = 0;
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // Terminals know U+0080 to U+009F as controls, too.
    if (byte < 0x20 || byte == 0x7f ||
        (before == 0xc2 && byte >= 0x80 && byte < 0xa0)) {
      c = '?';
    }
    before = byte;
  }
  return text;
}

void TextTable::Add(std::vector<std::string> cells) {
  for (std::string& cell : cells) {
    if (cell.size() > kMaxCell) {
      cell.resize(kMaxCell - (sizeof kCut - 1));
      cell += kCut;
    }
    cell = Harmless(std::move(cell));
  }
  rows_.push_back(std::move(cells));
}

std::string TextTable::ToString(const std::string& title) const {
  std::vector<size_t> widths(titles_.size(), 0);
  const auto widen = [&widths](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], cells[i].size());
    }
  };
  widen(titles_);
  for (const auto& row : rows_) widen(row);
  widen(footer_);
  size_t width = 0;
  for (const size_t column : widths) width += column + kGap;
  width -= std::min(width, kGap);  // none behind the last
  width = std::max(width, title.size());

  const std::string rule = std::string(width, '-') + "\n";
  std::string text = rule;
  if (!title.empty()) {
    absl::StrAppend(&text, std::string((width - title.size()) / 2, ' '), title,
                    "\n", rule);
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string cut;
    for (size_t i = 0; i < cells.size(); ++i) {
      cut += cells[i];
      if (i + 1 == cells.size()) break;
      cut.append(widths[i] + kGap - cells[i].size(), ' ');
    }
    cut.erase(cut.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, cut, "\n");
  };
  line(titles_);
  text += rule;
  for (const auto& row : rows_) line(row);
  text += rule;
  if (!footer_.empty()) {
    line(footer_);
    text += rule;
  }
  return text;
}

}  // namespace rknnd::core
