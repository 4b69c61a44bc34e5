// What a line of the daemon's own log is about, for whoever searches it by more
// than words: the kind of event, and the session, process, model, job and cores
// concerned. Filled by core and the transports; daemon/process/log.cc makes the
// journal's fields of it.

#ifndef DAEMON_CORE_TERMS_EVENTS_H_
#define DAEMON_CORE_TERMS_EVENTS_H_

#include <cstdint>
#include <string>

#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Events that people search for. Each has a MESSAGE_ID
// (daemon/process/journal.cc).
enum class Event : uint8_t {
  kOther,
  kStarted,
  kStopping,
  kReloaded,
  kReloadFailed,
  kStalled,       // the watchdog is not fed any more, and why
  kHang,          // a job does not end: its cores are withheld
  kHangOver,      // they are back
  kReset,         // of the device
  kDiedUnderJob,  // a client went while jobs of its were under way
  kRefused,       // a client reached a limit
};

// A line's level, of those of --log-level.
inline constexpr uint32_t kDaemonLogWarning = 1;

// Empty, or 0: about no such thing.
struct EventFields {
  Event event = Event::kOther;
  uint64_t session = 0;
  int32_t pid = 0;     // of the client
  std::string comm;    // likewise; its own words
  std::string model;   // SHA-256, in hex
  std::string job;     // "CONTEXT/FRAME"
  uint32_t cores = 0;  // as bits
};

// Of a line about a session.
inline EventFields FieldsOf(uint64_t session, const SessionPeer& peer) {
  EventFields fields;
  fields.session = session;
  fields.pid = peer.pid;
  fields.comm = peer.comm;
  return fields;
}

}  // namespace rknnd::core

#endif  // DAEMON_CORE_TERMS_EVENTS_H_
