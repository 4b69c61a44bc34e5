#include "client/ctl/top/top_screen.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

constexpr const char* kPlainText = "\x1b[0m";

// Columns before a bar or a line's text.
constexpr size_t kLabel = 9;
// A bar of fewer cells tells nothing; one of more is no easier to read.
constexpr size_t kLeastBar = 8, kMostBar = 60;

std::string Padded(std::string label) {
  label.resize(std::max(label.size() + 1, kLabel), ' ');
  return label;
}

}  // namespace

void Screen::Line(const std::string& text, const char* color) {
  Put({{text, color}});
}

void Screen::Labelled(const std::string& label, const std::string& text) {
  Put({{Padded(label), kDim}, {text, kNoColor}});
}

size_t Screen::CellsBeside(size_t tail_width) const {
  const size_t taken = kLabel + tail_width + 2;
  const size_t left = view_.width > taken ? view_.width - taken : 0;
  return left < kLeastBar ? 0 : std::min(left, kMostBar);
}

void Screen::Gauge(const std::string& label, double share,
                   const std::string& tail, size_t tail_width,
                   const char* color) {
  const size_t cells = CellsBeside(tail_width);
  if (cells == 0) {
    Put({{Padded(label), kDim}, {tail, color}});
    return;
  }
  Put({{Padded(label), kDim},
       {Bar(share, cells, view_.unicode), color},
       {"  " + tail, kNoColor}});
}

void Screen::History(const std::string& label,
                     const std::vector<double>& shares, const std::string& tail,
                     size_t tail_width, const char* color) {
  const size_t cells = CellsBeside(tail_width);
  if (cells == 0) return;
  Put({{Padded(label), kDim},
       {Curve(shares, cells, view_.unicode), color},
       {"  " + tail, kNoColor}});
}

size_t Screen::room() const {
  if (view_.height == 0) return SIZE_MAX;
  return view_.height - std::min(lines_, view_.height);
}

void Screen::Put(std::initializer_list<Piece> pieces) {
  if (room() == 0) return;
  size_t left = view_.width;
  for (const Piece& piece : pieces) {
    const std::string shown = Cut(piece.text, left);
    left -= Width(shown);
    const bool colored = view_.color && *piece.color != '\0';
    if (colored) text_ += piece.color;
    text_ += shown;
    if (colored) text_ += kPlainText;
  }
  text_ += '\n';
  ++lines_;
}

std::string Bar(double share, size_t width, bool unicode) {
  const auto cells = static_cast<double>(width);
  const double filled = std::clamp(share, 0.0, 1.0) * cells;
  std::string bar;
  size_t used = 0;
  if (!unicode) {
    used = static_cast<size_t>(std::lround(filled));
    bar.assign(used, '#');
    bar.append(width - used, '.');
    return bar;
  }
  constexpr std::string_view kEighths[] = {"",  "▏", "▎", "▍",
                                           "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<size_t>(std::lround(filled * 8));
  for (; used < eighths / 8; ++used) bar += "█";
  if (eighths % 8 != 0) {
    bar += kEighths[eighths % 8];
    ++used;
  }
  for (; used < width; ++used) bar += "·";
  return bar;
}

std::string Curve(const std::vector<double>& shares, size_t width,
                  bool unicode) {
  constexpr std::string_view kHeights[] = {" ", "▁", "▂", "▃", "▄",
                                           "▅", "▆", "▇", "█"};
  constexpr std::string_view kPlainHeights[] = {" ", "_", "_", ".", ".",
                                                "-", "-", "=", "#"};
  const size_t shown = std::min(shares.size(), width);
  std::string curve(width - shown, ' ');
  for (size_t i = shares.size() - shown; i < shares.size(); ++i) {
    const double share = std::clamp(shares[i], 0.0, 1.0);
    // Something is more than nothing.
    const auto height = static_cast<size_t>(std::ceil(share * 8));
    curve += unicode ? kHeights[height] : kPlainHeights[height];
  }
  return curve;
}

}  // namespace rknnd::client
