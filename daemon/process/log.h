// Where rknnd's own lines go: the journal, with fields, when it is what stderr
// is connected to; else stderr, as text with the time. Made by main before any
// thread is started.

#ifndef DAEMON_PROCESS_LOG_H_
#define DAEMON_PROCESS_LOG_H_

#include <memory>

#include "daemon/transport/session/event_log.h"

namespace rknnd {

std::unique_ptr<transport::EventLog> OpenLog();

}  // namespace rknnd

#endif  // DAEMON_PROCESS_LOG_H_
