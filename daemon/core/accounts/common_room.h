// What there is of something for all users together, and how much of it is kept
// for those who have little. Used by the ledger and the service: whoever comes
// first cannot take all.

#ifndef DAEMON_CORE_ACCOUNTS_COMMON_ROOM_H_
#define DAEMON_CORE_ACCOUNTS_COMMON_ROOM_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace rknnd::core {

//   0                                              90 %        100 %
//   | anybody's                                     | kept for who has little
//
// Thread: any.
struct CommonRoom {
  uint64_t whole = 0;
  uint32_t kept_free = 0;  // percent of it; 0: nothing is kept

  // That part, at most; 0 of what has too few to share out.
  [[nodiscard]] uint64_t kept() const {
    return whole / 100 * kept_free + whole % 100 * kept_free / 100;
  }
  // So much a user may have though the others have taken all the rest.
  [[nodiscard]] uint64_t little() const {
    return std::max<uint64_t>(whole / 50, 1);
  }
  // Whether somebody who has `own` of the `all` that are taken may have `more`.
  [[nodiscard]] bool Allows(uint64_t all, uint64_t own, uint64_t more) const {
    if (all > whole || more > whole - all) return false;
    if (more <= whole - kept() && all <= whole - kept() - more) return true;
    return own <= little() && more <= little() - own;
  }
  // Of what there is enough, but not for whoever asks: why.
  [[nodiscard]] std::string Refusal(const std::string& who, uint64_t own,
                                    const std::string& what) const {
    return absl::StrCat(who, " has ", own, " of the ", whole, " ", what,
                        " that there are for all users: the last ", kept(),
                        " are kept for those who have at most ", little(),
                        " (limit 'kept_free', ", kept_free,
                        " %). End what is not needed, or change the limit");
  }
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_ACCOUNTS_COMMON_ROOM_H_
