// A log that remembers, for tests of whatever writes into one. Thread: one.

#ifndef DAEMON_TRANSPORT_SESSION_TESTING_RECORDED_LINES_H_
#define DAEMON_TRANSPORT_SESSION_TESTING_RECORDED_LINES_H_

#include <string>
#include <vector>

#include "daemon/core/terms/events.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd::transport::testing {

class RecordedLines final : public EventLog {
 public:
  void Write(Severity /*severity*/, const std::string& text) override {
    lines.push_back(text);
  }
  void WriteEvent(Severity severity, const std::string& text,
                  const core::EventFields& fields) override {
    events.push_back(fields);
    Write(severity, text);
  }

  std::vector<std::string> lines;         // all
  std::vector<core::EventFields> events;  // of those that say what about
};

}  // namespace rknnd::transport::testing

#endif  // DAEMON_TRANSPORT_SESSION_TESTING_RECORDED_LINES_H_
