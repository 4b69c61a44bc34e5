// Lines of rknnctl top that never leave the screen: each is cut where it ends,
// and those below its last line are left out. Pure; text of others goes through
// Printable() first.

#ifndef CLIENT_CTL_TOP_TOP_SCREEN_H_
#define CLIENT_CTL_TOP_TOP_SCREEN_H_

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

namespace rknnd::client {

// What the screen can show.
struct TopView {
  size_t width = 80;
  size_t height = 0;  // lines; 0: as many as there are
  bool color = false;
  bool unicode = true;
};

inline constexpr const char* kNoColor = "";
inline constexpr const char* kBold = "\x1b[1m";
inline constexpr const char* kDim = "\x1b[2m";
inline constexpr const char* kGreen = "\x1b[32m";
inline constexpr const char* kYellow = "\x1b[33m";
inline constexpr const char* kRed = "\x1b[31m";

// Thread: any, one at a time.
class Screen {
 public:
  explicit Screen(const TopView& view) : view_(view) {}

  void Line(const std::string& text, const char* color = kNoColor);
  // "label    " and a text.
  void Labelled(const std::string& label, const std::string& text);
  // "label    [bar]  tail", with tails of `tail_width` all below each other; no
  // bar where there is no room for one.
  void Gauge(const std::string& label, double share, const std::string& tail,
             size_t tail_width, const char* color);
  // A curve in the place of a bar: shares (0 to 1) of the past, the latest
  // last.
  void History(const std::string& label, const std::vector<double>& shares,
               const std::string& tail, size_t tail_width, const char* color);
  void Blank() { Put({}); }

  // Lines that still fit.
  [[nodiscard]] size_t room() const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  struct Piece {
    std::string text;
    const char* color;
  };
  // Room for a drawing between a label and a tail; 0: too little.
  [[nodiscard]] size_t CellsBeside(size_t tail_width) const;
  // One line.
  void Put(std::initializer_list<Piece> pieces);

  const TopView view_;
  std::string text_;
  size_t lines_ = 0;
};

// `share` (0 to 1) of `width` cells, in eighths of a cell where the terminal
// has the signs for it.
[[nodiscard]] std::string Bar(double share, size_t width, bool unicode);

// The last `width` of `shares` (0 to 1), one cell each, the latest at the
// right.
[[nodiscard]] std::string Curve(const std::vector<double>& shares, size_t width,
                                bool unicode);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_TOP_TOP_SCREEN_H_
