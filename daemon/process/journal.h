// Lines of the daemon's log as entries of systemd's journal, with fields to
// search by. Spoken in the journal's own protocol (systemd.io,
// JOURNAL_NATIVE_PROTOCOL), not by sd_journal_send(): that waits when the
// journal is slow, and nothing here may. Used by daemon/process/log.cc.
//
// Texts and names of processes are clients'; here they are bytes with a length.

#ifndef DAEMON_PROCESS_JOURNAL_H_
#define DAEMON_PROCESS_JOURNAL_H_

#include <cstddef>
#include <memory>
#include <string>

#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/terms/events.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd {

// The MESSAGE_ID of an event, 32 hexadecimal digits; empty: it has none.
const char* MessageId(core::Event event);

// Thread: any.
class Journal {
 public:
  static constexpr char kSocket[] = "/run/systemd/journal/socket";
  // Of a line; what is longer is cut.
  static constexpr size_t kLongestText = 16 << 10;

  // Entries go to the socket at `path`, whether or not it is there yet.
  // `stream`: where text goes while it is not, without waiting either;
  // borrowed. Null: no socket can be made.
  static std::unique_ptr<Journal> Open(int stream,
                                       const std::string& path = kSocket);

  // Never waits: a line for which there is no room is lost, and the next one
  // says how many were.
  void Write(transport::Severity severity, const std::string& text,
             const core::EventFields& fields);

 private:
  Journal(base::UniqueFd socket, std::string path, int stream)
      : socket_(std::move(socket)), path_(std::move(path)), stream_(stream) {}
  [[nodiscard]] bool SendEntry(const std::string& entry, int* error) const;
  [[nodiscard]] bool SendLine(int priority, const std::string& text) const;

  const base::UniqueFd socket_;
  const std::string path_;
  const int stream_;
  base::Mutex mutex_;
  size_t lost_ RKNND_GUARDED_BY(mutex_) = 0;
};

}  // namespace rknnd

#endif  // DAEMON_PROCESS_JOURNAL_H_
