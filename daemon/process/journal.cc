// An entry is one datagram of KEY=value lines; a value with a line break has
// its length in front instead.

#include "daemon/process/journal.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/send_only.h"

namespace rknnd {
namespace {

int PriorityOf(transport::Severity severity) {
  switch (severity) {
    case transport::Severity::kError:
      return LOG_ERR;
    case transport::Severity::kWarning:
      return LOG_WARNING;
    case transport::Severity::kInfo:
      return LOG_INFO;
    case transport::Severity::kDebug:
      return LOG_DEBUG;
  }
  return LOG_INFO;
}

void Append(std::string& entry, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  entry += key;
  if (value.find('\n') == std::string_view::npos) {
    entry += '=';
    entry += value;
    entry += '\n';
    return;
  }
  entry += '\n';
  for (unsigned shift = 0; shift < 64; shift += 8) {
    entry += static_cast<char>(uint64_t{value.size()} >> shift & 0xFF);
  }
  entry += value;
  entry += '\n';
}

// "0", "0,2".
std::string Cores(uint32_t cores) {
  std::string list;
  for (; cores != 0; cores &= cores - 1) {
    absl::StrAppend(&list, list.empty() ? "" : ",", std::countr_zero(cores));
  }
  return list;
}

std::string EntryOf(int priority, std::string_view text,
                    const core::EventFields& fields) {
  std::string entry;
  Append(entry, "MESSAGE", text);
  Append(entry, "PRIORITY", absl::StrCat(priority));
  Append(entry, "SYSLOG_IDENTIFIER", "rknnd");
  Append(entry, "MESSAGE_ID", MessageId(fields.event));
  if (fields.session != 0) {
    Append(entry, "RKNND_SESSION", absl::StrCat(fields.session));
  }
  if (fields.pid != 0) Append(entry, "RKNND_PID", absl::StrCat(fields.pid));
  Append(entry, "RKNND_COMM", fields.comm);
  Append(entry, "RKNND_MODEL", fields.model);
  Append(entry, "RKNND_JOB", fields.job);
  Append(entry, "RKNND_CORE", Cores(fields.cores));
  return entry;
}

}  // namespace

const char* MessageId(core::Event event) {
  // Once given, never changed: people's alerts have them.
  switch (event) {
    case core::Event::kOther:
      return "";
    case core::Event::kStarted:
      return "3d93c201649b4214ab623ceaa2ae9d52";
    case core::Event::kStopping:
      return "b5db24bc6b76436eaf375541c50d7140";
    case core::Event::kReloaded:
      return "c88faa3ca2a44e00baa411f39f6997a4";
    case core::Event::kReloadFailed:
      return "3412a3daa8b5402c84221d9377210672";
    case core::Event::kStalled:
      return "9530d8fb9b364397952212764d103ed7";
    case core::Event::kHang:
      return "f660707a5c8c4a14bcd4f27a98b28757";
    case core::Event::kHangOver:
      return "1850931220c24e34ae044b437003057a";
    case core::Event::kReset:
      return "ed580d22e01549ac953e28881999f728";
    case core::Event::kDiedUnderJob:
      return "66cd7aec3381411189e772373a74d9e9";
    case core::Event::kRefused:
      return "cb74ea63badd4a5da816d8c2aa989253";
  }
  return "";
}

std::unique_ptr<Journal> Journal::Open(int stream, const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return nullptr;
  base::Expected<base::UniqueFd> fd = base::MakeDatagramSender();
  if (!fd.ok()) return nullptr;
  return std::unique_ptr<Journal>(new Journal(*std::move(fd), path, stream));
}

bool Journal::SendEntry(const std::string& entry, int* error) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof address.sun_path - 1);
  // Not connected: the journal may be started again.
  const ssize_t sent = sendto(
      socket_.get(), entry.data(), entry.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
      reinterpret_cast<const sockaddr*>(&address), sizeof address);
  *error = errno;
  return sent >= 0;
}

bool Journal::SendLine(int priority, const std::string& text) const {
  // A stream to the journal is a socket; the prefix is its way to tell the
  // priority. A part of a line may be left of it when the buffer is full.
  const std::string line = absl::StrCat("<", priority, ">", text, "\n");
  return send(stream_, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(line.size());
}

void Journal::Write(transport::Severity severity, const std::string& text,
                    const core::EventFields& fields) {
  const int priority = PriorityOf(severity);
  std::string line = text.substr(0, kLongestText);
  base::MutexLock lock(mutex_);
  if (lost_ > 0) {
    absl::StrAppend(&line, " (", lost_,
                    " lines left out before: the journal took no more)");
  }
  int error = 0;
  bool sent = SendEntry(EntryOf(priority, line, fields), &error);
  if (!sent && error != EAGAIN && error != ENOBUFS) {
    sent = SendLine(priority, line);
  }
  lost_ = sent ? 0 : lost_ + 1;
}

}  // namespace rknnd
