// rknnctl devices: the NPUs of this machine, and the daemons that other
// machines of the local network announce.

#ifndef CLIENT_CTL_BOARD_DEVICES_H_
#define CLIENT_CTL_BOARD_DEVICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/ctl/reports/report.h"

namespace rknnd::client {

struct FoundDevice {
  std::string target;  // for --target; of a driver, its device node
  std::string soc;     // "": not told
  uint32_t cores = 0;  // likewise
  std::string version;
  // "daemon": it has answered; "driver": a device node of this machine;
  // "network": it was announced.
  std::string source;
};

struct DevicesOptions {
  std::string target;  // the daemon to ask, as in RKNND_TARGET
  std::string root;    // before /dev, /sys and /proc
};
Output Devices(const DevicesOptions& options);

// Drivers' nodes below `root`.
std::vector<FoundDevice> FindNodes(const std::string& root);
Output DevicesOutput(const std::vector<FoundDevice>& devices);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_BOARD_DEVICES_H_
