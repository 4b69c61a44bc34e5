// Daemons that announce themselves on the local network by DNS-SD, as Avahi's
// avahi-browse tells. What it prints comes from whoever is in the network: a
// line that is not exactly as it should be is left out.

#ifndef CLIENT_CTL_BOARD_DISCOVERY_H_
#define CLIENT_CTL_BOARD_DISCOVERY_H_

#include <string>
#include <string_view>
#include <vector>

#include "client/ctl/board/devices.h"

namespace rknnd::client {

// What is announced now. Nothing where Avahi is not there; takes some seconds
// at most.
std::vector<FoundDevice> BrowseNetwork();

// The output of `avahi-browse -rpt _rknnd._tcp`: each daemon once, by its IPv4
// address where it has one.
std::vector<FoundDevice> ParseBrowsed(std::string_view text);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_BOARD_DISCOVERY_H_
