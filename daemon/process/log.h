// Where rknnd's own lines go: the journal, with fields, when it is what stderr
// is connected to; else stderr, as text with the time. Made by main before any
// thread is started. Neither waits for who reads: lines are lost instead.

#ifndef DAEMON_PROCESS_LOG_H_
#define DAEMON_PROCESS_LOG_H_

#include <memory>

#include "daemon/transport/session/event_log.h"

namespace rknnd {

std::unique_ptr<transport::EventLog> OpenLog();

// Lines of text to `fd`, borrowed; each as spdlog's `pattern` has it.
std::unique_ptr<transport::EventLog> OpenTextLog(int fd, const char* pattern);

}  // namespace rknnd

#endif  // DAEMON_PROCESS_LOG_H_
