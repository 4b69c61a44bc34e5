// Options for a device whose compiled models run on the stand-in for the
// vendor's library, and the environment that its workers inherit. Linked into
// tests only.

#ifndef DRIVER_RKNNRT_TESTING_HOSTED_STANDIN_H_
#define DRIVER_RKNNRT_TESTING_HOSTED_STANDIN_H_

#include <cstdlib>
#include <string>

#include "driver/device.h"

namespace rknnd::rknnrt::testing {

// What goes wrong in workers that start while it lives.
class Trouble {
 public:
  explicit Trouble(const std::string& what) {
    setenv("RKNND_STANDIN", what.c_str(), 1);
  }
  ~Trouble() { unsetenv("RKNND_STANDIN"); }
  Trouble(const Trouble&) = delete;
  Trouble& operator=(const Trouble&) = delete;
};

// `build`: the folder of bin/ and lib/. `version`: of those that are built
// (driver/rknnrt/CMakeLists.txt), with underscores.
inline driver::DeviceOptions HostedStandin(
    const std::string& build, const std::string& version = "2_3_2") {
  driver::DeviceOptions options;
  options.kind = "rknnrt";
  options.library.path = build + "/lib/librknnrt_standin_" + version + ".so";
  options.library.worker = {build + "/bin/tests/rknnrt_worker"};
  return options;
}

}  // namespace rknnd::rknnrt::testing

#endif  // DRIVER_RKNNRT_TESTING_HOSTED_STANDIN_H_
