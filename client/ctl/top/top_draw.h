// Draws rknnctl top's screen: cores as bars, what goes on in all, processes and
// models as tables, as many lines of them as the screen has room for. Pure.

#ifndef CLIENT_CTL_TOP_TOP_DRAW_H_
#define CLIENT_CTL_TOP_TOP_DRAW_H_

#include <string>

#include "client/ctl/top/top.h"

namespace rknnd::client {

std::string DrawTop(const TopSample& sample, const TopRates& rates,
                    const TopView& view, const TopOptions& options);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_TOP_TOP_DRAW_H_
