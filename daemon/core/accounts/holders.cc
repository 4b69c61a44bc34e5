// Names of holders contain what clients call themselves: shown, never used.

#include "daemon/core/accounts/holders.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace rknnd::core {
namespace {

constexpr size_t kNamed = 3;

}  // namespace

std::string NameLargest(std::vector<Holding> holdings) {
  std::erase_if(holdings, [](const Holding& one) { return one.amount == 0; });
  const size_t named = std::min(holdings.size(), kNamed);
  std::partial_sort(holdings.begin(),
                    holdings.begin() + static_cast<ptrdiff_t>(named),
                    holdings.end(), [](const Holding& a, const Holding& b) {
                      // By name where equal: messages do not vary by chance.
                      if (a.amount != b.amount) return a.amount > b.amount;
                      return a.holder < b.holder;
                    });
  std::string text;
  for (size_t i = 0; i < named; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", holdings[i].holder, " with ",
                    holdings[i].amount);
  }
  return text.empty() ? "nobody" : text;
}

}  // namespace rknnd::core
