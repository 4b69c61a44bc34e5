// rknnctl top's frame: what happened between two looks at a daemon, as a screen
// for people and as JSON. Pure functions; who looks, when, and what shows the
// screen is in watch.h.

#ifndef CLIENT_CTL_TOP_H_
#define CLIENT_CTL_TOP_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "client/ctl/report.h"
#include "client/ctl/top_screen.h"
#include "proto/wire/codec.h"

namespace rknnd::client {

// One look.
struct TopSample {
  wire::Report board;     // of kind REPORT_MEMORY
  wire::Report contexts;  // of kind REPORT_CONTEXTS
};

// Both looks at the same daemon; `own_session` is left out.
Output TopOutput(const TopSample& before, const TopSample& now,
                 uint64_t own_session, const TopView& view);

// Instead of a frame, while there is no daemon: why, and how to end.
std::string NoticeText(const std::string& notice, const TopView& view);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_TOP_H_
