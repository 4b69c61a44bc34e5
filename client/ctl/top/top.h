// rknnctl top's frame: what happened between two looks at a daemon, as a screen
// for people and as JSON. Pure functions; the numbers are top_rates.h's; who
// looks, when, and what shows the screen is in watch.h.

#ifndef CLIENT_CTL_TOP_TOP_H_
#define CLIENT_CTL_TOP_TOP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/ctl/reports/report.h"
#include "client/ctl/top/top_rates.h"
#include "client/ctl/top/top_screen.h"

namespace rknnd::client {

struct TopOptions {
  TopOrder order = TopOrder::kNpu;
  // Load of all cores at the looks before, the latest last; drawn on terminals.
  std::vector<double> history;
  bool keys = false;  // says which there are
};

// Both looks at the same daemon; `own_session` is left out.
Output TopOutput(const TopSample& before, const TopSample& now,
                 uint64_t own_session, const TopView& view,
                 const TopOptions& options = {});

// Instead of a frame, while there is no daemon: why, and how to end.
std::string NoticeText(const std::string& notice, const TopView& view);

// The order that a key asks for; false for other keys.
bool OrderOfKey(char key, TopOrder* order);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_TOP_TOP_H_
