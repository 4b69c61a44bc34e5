// From what rknnd is told to what the assembled daemon needs to know: for main,
// and for whoever reads the configuration again.

#ifndef DAEMON_RUNTIME_OPTIONS_H_
#define DAEMON_RUNTIME_OPTIONS_H_

#include "daemon/board/log_tail.h"
#include "daemon/config/config.h"
#include "daemon/core/models/model_keeper.h"
#include "daemon/core/service.h"
#include "daemon/runtime.h"

namespace rknnd {

// What a reload may change of it.
core::LiveOptions LiveOptionsOf(const Config& config);

// `log` and `keeper` (or null) outlive the runtime.
RuntimeOptions RuntimeOptionsOf(const Config& config, board::LogTail& log,
                                core::ModelKeeper* keeper);

}  // namespace rknnd

#endif  // DAEMON_RUNTIME_OPTIONS_H_
