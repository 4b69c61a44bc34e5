// Work on another target than this process's: librknnrt.so keeps to one target
// for a process's life, so the work happens in a child. The process has no
// other threads then, and has not called the library.

#ifndef CLIENT_CTL_MODELS_ON_TARGET_H_
#define CLIENT_CTL_MODELS_ON_TARGET_H_

#include <functional>
#include <string>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

// What `work` gives with RKNND_TARGET at `target`, which is as the variable has
// it. `what` names the work in errors: "ran the model on the simulator".
base::Expected<Json> OnTarget(
    const std::string& target, const std::string& what,
    const std::function<base::Expected<Json>()>& work);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_ON_TARGET_H_
