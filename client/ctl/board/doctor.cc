#include "client/ctl/board/doctor.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "client/ctl/board/doctor_libraries.h"
#include "client/ctl/control_connection.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "rknnd.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// The cores' self-tests run behind the jobs that are there.
constexpr int64_t kDaemonTimeoutMs = 60'000;

constexpr std::string_view kUnix = "unix:";

const char* SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kOk:
      return "ok";
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "error";
}

std::string GroupName(gid_t group) {
  char room[4096];
  struct group found = {};
  struct group* result = nullptr;
  if (::getgrgid_r(group, &found, room, sizeof room, &result) == 0 &&
      result != nullptr) {
    return found.gr_name;
  }
  return std::to_string(group);
}

std::string UserName() {
  char room[4096];
  struct passwd found = {};
  struct passwd* result = nullptr;
  if (::getpwuid_r(::getuid(), &found, room, sizeof room, &result) == 0 &&
      result != nullptr) {
    return found.pw_name;
  }
  return std::to_string(::getuid());
}

// Whom to ask for access: the first folder on the way that is closed to us, or
// the socket itself.
Finding NoPermission(const std::string& path) {
  std::string closed = path;
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (::access(folder.c_str(), X_OK) != 0) {
      closed = folder;
      break;
    }
  }
  Finding finding{"daemon", Severity::kError,
                  "permission denied on '" + Printable(path) + "'", ""};
  struct stat status = {};
  if (::stat(closed.c_str(), &status) != 0 || status.st_gid == 0) {
    finding.remedy =
        "only root may use this daemon; run it with its group "
        "(socket.group) set";
    return finding;
  }
  const std::string group = GroupName(status.st_gid);
  finding.text +=
      ": '" + Printable(closed) + "' is open to group " + group + " alone";
  finding.remedy =
      "sudo usermod -aG " + group + " " + UserName() + ", and log in again";
  return finding;
}

// What to do about a board that does not answer.
std::string NoRemote(const std::string& target, Code code) {
  if (!target.starts_with("tcp:")) {
    return "give --target unix:PATH or tcp://HOST:PORT";
  }
  switch (code) {
    case Code::kUnauthenticated:
    case Code::kPermissionDenied:
      return "set RKNND_TOKEN or RKNND_TOKEN_FILE, or RKNND_TLS_CERT and "
             "RKNND_TLS_KEY: whichever the board's rknnd.toml asks for";
    case Code::kInvalidArgument:
      return "correct the target, or the variables RKNND_TLS_* and RKNND_TOKEN";
    default:
      return "on the board: rknnctl status; the port is closed until "
             "grpc.listen is set in /etc/rknnd/rknnd.toml";
  }
}

Finding FromDaemon(const wire::Finding& found) {
  Finding finding;
  finding.check = found.check;
  // A daemon that knows more grades than we means the worst by them.
  finding.severity = static_cast<Severity>(
      std::min<uint32_t>(found.severity, rknnd_v1_Severity_SEVERITY_ERROR));
  finding.text = found.text;
  finding.remedy = found.remedy;
  return finding;
}

// "0.12.3" as two numbers; what follows does not tell what fits what.
std::pair<int, int> MajorMinor(const std::string& version) {
  std::pair<int, int> numbers{0, 0};
  if (std::sscanf(version.c_str(), "%d.%d", &numbers.first, &numbers.second) !=
      2) {
    return {0, 0};
  }
  return numbers;
}

void AskDaemon(ControlConnection& daemon, Diagnosis& diagnosis) {
  diagnosis.findings.push_back(
      CompareVersions(rknnd_version_string(), daemon.welcome()));
  const Expected<wire::DoctorReply> reply = daemon.Request<wire::DoctorReply>(
      wire::Verb::kDoctor, wire::Empty{}, kDaemonTimeoutMs);
  if (!reply) {
    const bool old = reply.error().code == Code::kUnimplemented;
    diagnosis.findings.push_back(
        {"board", old ? Severity::kWarning : Severity::kError,
         "the daemon has not looked at its board: " + reply.error().message,
         old ? "update rknnd on the board" : "see its log: rknnctl logs"});
    return;
  }
  for (const wire::Finding& found : reply->findings) {
    diagnosis.findings.push_back(FromDaemon(found));
  }
}

}  // namespace

Severity Diagnosis::worst() const {
  Severity worst = Severity::kOk;
  for (const Finding& finding : findings) {
    worst = std::max(worst, finding.severity);
  }
  return worst;
}

Finding WhyNoDaemon(const std::string& target, const Error& error) {
  Finding finding{"daemon", Severity::kError, error.message, ""};
  if (error.code == Code::kFailedPrecondition) {  // the handshake's word
    finding.check = "client-versions";
    finding.remedy = "both sides work when they are one minor version apart";
    return finding;
  }
  // The daemon's own words: it runs, and can be reached.
  if (error.code == Code::kUnavailable &&
      error.message.find("draining") != std::string::npos) {
    finding.remedy =
        "it takes nobody new until it is started anew: systemctl restart "
        "rknnd; "
        "or rknnctl drain --undo";
    return finding;
  }
  if (!target.starts_with(kUnix)) {
    finding.remedy = NoRemote(target, error.code);
    return finding;
  }
  const std::string path = target.substr(kUnix.size());
  if (error.code == Code::kPermissionDenied) return NoPermission(path);
  if (error.code == Code::kNotFound) {
    finding.text = "no rknnd here: '" + Printable(path) + "' does not exist";
    finding.remedy =
        "systemctl start rknnd; or name another socket with "
        "--target unix:PATH";
  } else if (error.code == Code::kUnavailable) {
    finding.text =
        "rknnd does not run: nobody answers at '" + Printable(path) + "'";
    finding.remedy =
        "systemctl status rknnd; journalctl -u rknnd says why it "
        "ended";
  } else {
    finding.remedy = "see the daemon's log: journalctl -u rknnd";
  }
  return finding;
}

Finding CompareVersions(const std::string& client,
                        const wire::Welcome& daemon) {
  const std::string theirs = Printable(daemon.daemon_version);
  Finding finding{"client-versions", Severity::kOk,
                  "client library " + client + ", daemon " + theirs +
                      ", protocol " + std::to_string(daemon.protocol),
                  ""};
  const auto [major, minor] = MajorMinor(client);
  const auto [their_major, their_minor] = MajorMinor(theirs);
  if (std::pair(major, minor) == std::pair(their_major, their_minor)) {
    return finding;
  }
  const bool far = major != their_major || minor > their_minor + 1 ||
                   their_minor > minor + 1;
  finding.severity = far ? Severity::kWarning : Severity::kNote;
  finding.remedy = std::pair(major, minor) < std::pair(their_major, their_minor)
                       ? "update the client library to " + theirs
                       : "update the daemon to " + client;
  return finding;
}

Diagnosis Diagnose(const std::string& given) {
  const std::string target = given.empty() ? kDefaultTarget : given;
  Diagnosis diagnosis;
  if (target.starts_with("local:")) {
    diagnosis.findings.push_back(
        {"daemon", Severity::kNote,
         "target 'local:' has no daemon: programs bring the software NPU "
         "along",
         ""});
  } else if (Expected<ControlConnection> daemon =
                 ControlConnection::Open(target)) {
    diagnosis.findings.push_back(
        {"daemon", Severity::kOk,
         "rknnd " + Printable(daemon->welcome().daemon_version) +
             " answers at '" + Printable(target) + "'",
         ""});
    AskDaemon(*daemon, diagnosis);
  } else {
    diagnosis.findings.push_back(WhyNoDaemon(target, daemon.error()));
  }
  const auto add_own = [&diagnosis](std::vector<Finding> own) {
    for (Finding& finding : own) {
      // The daemon has said it already.
      const bool known =
          std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                      [&finding](const Finding& other) {
                        return other.check == finding.check &&
                               other.severity >= finding.severity;
                      });
      if (!known || finding.check == "client-library") {
        diagnosis.findings.push_back(std::move(finding));
      }
    }
  };
  add_own(CheckLibraries(OwnPlaces()));
  // Of another machine its daemon tells. Of this one we know better which
  // library this user's programs load.
  if (!target.starts_with("tcp:")) {
    add_own(CheckVendorServer(""));
    std::erase_if(diagnosis.findings, [](const Finding& finding) {
      return finding.check == "librknnrt";
    });
  }
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [](const Finding& a, const Finding& b) {
                     return a.severity > b.severity;
                   });
  return diagnosis;
}

Output DiagnosisOutput(const Diagnosis& diagnosis, bool color) {
  struct Look {
    const char* label;
    const char* color;
  };
  // In the order of Severity.
  constexpr Look kLooks[] = {{"ok", "\x1b[32m"},
                             {"NOTE", "\x1b[36m"},
                             {"WARNING", "\x1b[33m"},
                             {"ERROR", "\x1b[31m"}};
  constexpr size_t kLabel = 9;
  Output output;
  output.json["findings"] = Json::array();
  size_t counts[std::size(kLooks)] = {};
  for (const Finding& finding : diagnosis.findings) {
    const auto grade = static_cast<size_t>(finding.severity);
    const Look& look = kLooks[grade];
    ++counts[grade];
    output.json["findings"].push_back(
        {{"check", finding.check},
         {"severity", SeverityName(finding.severity)},
         {"text", finding.text},
         {"remedy", finding.remedy}});
    std::string label = look.label;
    label.resize(kLabel, ' ');
    if (color) label = look.color + label + "\x1b[0m";
    output.text += label + Printable(finding.text) + "\n";
    if (!finding.remedy.empty()) {
      output.text +=
          std::string(kLabel, ' ') + "-> " + Printable(finding.remedy) + "\n";
    }
  }
  output.json["worst"] = SeverityName(diagnosis.worst());
  output.text += "\n" + FormatCount(counts[3], "error") + ", " +
                 FormatCount(counts[2], "warning") + ", " +
                 FormatCount(counts[1], "note") + ", " +
                 std::to_string(counts[0]) + " ok\n";
  return output;
}

}  // namespace rknnd::client
