#include "client/ctl/board/devices.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "client/ctl/board/discovery.h"
#include "client/ctl/control_connection.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

namespace fs = std::filesystem;
using base::Expected;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "rk3588", of the device tree: "radxa,rock-5b\0rockchip,rk3588\0".
std::string SocOf(const std::string& root) {
  const std::string names = ReadText(root + "/proc/device-tree/compatible");
  constexpr std::string_view kVendor = "rockchip,";
  std::string soc;
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find('\0', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    // The last is the most general.
    if (name.starts_with(kVendor)) soc = name.substr(kVendor.size());
    begin = end + 1;
  }
  return soc;
}

// "0.9.8", of "RKNPU driver: v0.9.8".
std::string DriverVersion(const std::string& root) {
  for (const char* path :
       {"/sys/module/rknpu/version", "/sys/kernel/debug/rknpu/version",
        "/proc/rknpu/version"}) {
    const std::string text = ReadText(root + path);
    const size_t begin = text.find_first_of("0123456789");
    if (begin == std::string::npos) continue;
    return text.substr(begin, text.find_first_of(" \n", begin) - begin);
  }
  return "";
}

uint32_t CoresOf(std::string_view soc) {
  if (soc.starts_with("rk3588")) return 3;
  if (soc.starts_with("rk3576")) return 2;
  return soc.empty() ? 0 : 1;
}

}  // namespace

std::vector<FoundDevice> FindNodes(const std::string& root) {
  std::vector<FoundDevice> nodes;
  const std::string soc = SocOf(root);
  const auto add = [&](const std::string& path, const std::string& version) {
    nodes.push_back({path, soc, CoresOf(soc), version, "driver"});
  };
  const auto look = [&](const char* folder, const char* prefix,
                        const char* device_folder, const char* driver) {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator at(root + folder, error), end;
         !error && at != end; at.increment(error)) {
      std::string name = at->path().filename();
      std::error_code gone;
      std::string bound =
          fs::read_symlink(at->path() / "device" / "driver", gone).filename();
      std::transform(bound.begin(), bound.end(), bound.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      if (name.starts_with(prefix) && bound == driver) {
        names.push_back(std::move(name));
      }
    }
    std::sort(names.begin(), names.end());
    // The mainline driver has no version of its own.
    const std::string version =
        std::string_view(driver) == "rknpu" ? DriverVersion(root) : driver;
    for (const std::string& name : names) {
      add(std::string(device_folder) + name, version);
    }
  };
  look("/sys/class/drm", "renderD", "/dev/dri/", "rknpu");
  look("/sys/class/accel", "accel", "/dev/accel/", "rocket");
  std::error_code error;
  if (fs::exists(root + "/dev/rknpu", error)) {
    add("/dev/rknpu", DriverVersion(root));
  }
  return nodes;
}

Output DevicesOutput(const std::vector<FoundDevice>& devices) {
  Output output{Json::array(), ""};
  Table table({{"TARGET"},
               {"SOC"},
               {"CORES", Table::Align::kRight},
               {"VERSION"},
               {"FOUND BY"}});
  for (const FoundDevice& device : devices) {
    output.json.push_back({{"target", device.target},
                           {"soc", device.soc},
                           {"cores", device.cores},
                           {"version", device.version},
                           {"source", device.source}});
    const auto or_dash = [](const std::string& text) {
      return text.empty() ? std::string("-") : Printable(text);
    };
    table.Add({Printable(device.target), or_dash(device.soc),
               device.cores == 0 ? "-" : std::to_string(device.cores),
               or_dash(device.version), device.source});
  }
  output.text = devices.empty()
                    ? "no NPU here, and none announced on the network: "
                      "rknnctl doctor says why\n"
                    : table.ToString();
  return output;
}

Output Devices(const DevicesOptions& options) {
  std::vector<FoundDevice> devices;
  const std::string target =
      options.target.empty() ? kDefaultTarget : options.target;
  if (const Expected<ControlConnection> daemon =
          ControlConnection::Open(target)) {
    const wire::Welcome& welcome = daemon->welcome();
    devices.push_back(
        {target, welcome.soc, welcome.cores, welcome.daemon_version, "daemon"});
  }
  for (auto& found : {FindNodes(options.root), BrowseNetwork()}) {
    devices.insert(devices.end(), found.begin(), found.end());
  }
  return DevicesOutput(devices);
}

}  // namespace rknnd::client
