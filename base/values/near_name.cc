#include "base/values/near_name.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace rknnd::base {
namespace {

// "limits." of "limits.memory".
std::string_view TableOf(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? "" : name.substr(0, dot + 1);
}

std::string_view LastOf(std::string_view name) {
  return name.substr(TableOf(name).size());
}

// Whether the words of `shorter`, as "grace", are at the end of `longer`, as
// "model_grace".
bool EndsInWords(std::string_view longer, std::string_view shorter) {
  return longer.size() > shorter.size() + 1 && longer.ends_with(shorter) &&
         longer[longer.size() - shorter.size() - 1] == '_';
}

// How far `meant` is from what was written: misspelled, or at another place.
// Beyond `kFar` it was something else.
constexpr size_t kFar = std::numeric_limits<size_t>::max();
size_t Farness(std::string_view written, std::string_view meant) {
  const std::string_view word = LastOf(written);
  const std::string_view known = LastOf(meant);
  size_t far = EditDistance(word, known);
  if (far > 0 && (EndsInWords(word, known) || EndsInWords(known, word))) {
    far = 1;
  }
  if (far > std::max<size_t>(1, word.size() / 3)) return kFar;
  // The same word elsewhere is as near as a slip of the finger here, and not
  // nearer.
  const size_t elsewhere = TableOf(written) == TableOf(meant) ? 0 : 2;
  return 2 * far + elsewhere;
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  // Of beginnings of `a` (rows) and `b`: the last two rows and the next.
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> next(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t wrong = a[i - 1] == b[j - 1] ? 0 : 1;
      next[j] = std::min({last[j] + 1, next[j - 1] + 1, last[j - 1] + wrong});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(next);
  }
  return last[b.size()];
}

std::string DidYouMean(std::string_view name,
                       std::span<const std::string_view> known) {
  // No name is as long as that, and comparing would take its time.
  if (name.size() > 100) return "";
  std::string_view nearest;
  size_t least = kFar;
  for (const std::string_view meant : known) {
    const size_t far = Farness(name, meant);
    if (far >= least) continue;
    least = far;
    nearest = meant;
  }
  if (least == kFar) return "";
  return "; did you mean '" + std::string(nearest) + "'?";
}

}  // namespace rknnd::base
