// Who else is on this machine: the vendor's server, programs that open the NPU
// themselves, other copies of the runtime library. Names of processes are
// theirs to choose, and files of libraries may be anything.

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/board/checks.h"
#include "daemon/transport/session/event_log.h"
#include "daemon/transport/session/peer_origin.h"

namespace rknnd::board {
namespace {

using transport::Finding;
using transport::Printable;
using Level = Finding::Level;

// The vendor's bridge to a PC.
constexpr char kVendorServer[] = "rknn_server";
constexpr size_t kMostServers = 4;
constexpr char kLibrary[] = "librknnrt.so";
constexpr std::array kLibraryFolders = {
    "/usr/lib",       "/usr/lib64",       "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib", "/usr/local/lib64", "/lib",
    "/oem/usr/lib",   "/vendor/lib64",    "/vendor/lib",
    "/opt/rknn/lib",
};
// As it is written in the vendor's file, and what only ours exports.
constexpr std::string_view kVersionMark = "librknnrt version: ";
constexpr std::string_view kOurMark = "rknnd_last_error";
// The vendor's has 7 MB.
constexpr size_t kLongestLibrary = size_t{64} << 20;
constexpr size_t kPiece = size_t{1} << 20;

bool IsNumber(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

struct Library {
  bool elf = false;
  uint16_t machine = 0;
  bool ours = false;
  std::string version;  // "2.3.2"
};

Library ReadLibrary(const std::string& path) {
  Library library;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::string piece(kPiece, '\0');
  for (size_t read = 0; read < kLongestLibrary; read += kPiece) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto got = static_cast<size_t>(file.gcount());
    if (got == 0) break;
    if (read == 0 && got > 20 &&
        piece.compare(0, 4,
                      "\x7F"
                      "ELF") == 0) {
      library.elf = true;
      library.machine =
          static_cast<uint16_t>(static_cast<unsigned char>(piece[18]) |
                                static_cast<unsigned char>(piece[19]) << 8);
    }
    // With the end of the piece before: a mark may lie across.
    text.erase(0, text.size() - std::min(text.size(), size_t{256}));
    text.append(piece, 0, got);
    library.ours |= text.find(kOurMark) != std::string::npos;
    if (const size_t mark = text.find(kVersionMark);
        mark != std::string::npos && library.version.empty()) {
      const size_t begin = mark + kVersionMark.size();
      library.version = text.substr(
          begin, std::min<size_t>(
                     text.find_first_not_of("0123456789.", begin) - begin, 16));
    }
  }
  return library;
}

// Of this program.
constexpr uint16_t ThisMachine() {
#if defined(__aarch64__)
  return 183;
#elif defined(__x86_64__)
  return 62;
#elif defined(__arm__)
  return 40;
#else
  return 0;
#endif
}

void CheckLibraries(const Files& files, Findings* out) {
  std::map<std::string, std::vector<std::string>> by_version;
  std::vector<std::string> foreign;
  size_t ours = 0;
  for (const char* folder : kLibraryFolders) {
    for (const std::string& name : files.List(folder)) {
      if (name != kLibrary) continue;
      const std::string path = absl::StrCat(folder, "/", name);
      const Library library = ReadLibrary(files.root() + path);
      if (!library.elf ||
          (ThisMachine() != 0 && library.machine != ThisMachine())) {
        foreign.push_back(path);
      } else if (library.ours) {
        ++ours;
      } else {
        by_version[library.version.empty() ? "unknown" : library.version]
            .push_back(path);
      }
    }
  }
  if (!foreign.empty()) {
    out->push_back({"librknnrt", Level::kWarning,
                    absl::StrCat("'", absl::StrJoin(foreign, "', '"),
                                 "' is no library for this processor"),
                    "remove it, or install the one for this board: programs "
                    "that load it fail with 'invalid ELF header'"});
  }
  std::vector<std::string> seen;
  for (const auto& [version, paths] : by_version) {
    seen.push_back(
        absl::StrCat(version, " at ", absl::StrJoin(paths, " and ")));
  }
  if (seen.size() > 1 || (ours > 0 && !seen.empty())) {
    out->push_back({"librknnrt", Level::kWarning,
                    absl::StrCat("several runtime libraries: vendor's ",
                                 absl::StrJoin(seen, "; vendor's "),
                                 ours > 0 ? "; and rknnd's" : ""),
                    "keep one: a program takes whichever its search path "
                    "finds first. With rknnd's, all versions of programs "
                    "work"});
  } else if (!seen.empty()) {
    out->push_back(
        {"librknnrt", Level::kOk,
         absl::StrCat("the vendor's runtime library is version ", seen[0]),
         ""});
  } else if (ours > 0) {
    out->push_back(
        {"librknnrt", Level::kOk, "programs find rknnd's runtime library", ""});
  }
}

}  // namespace

std::vector<VendorServer> FindVendorServers(const Files& files) {
  std::vector<VendorServer> servers;
  for (const std::string& process : files.List("/proc")) {
    const std::string folder = absl::StrCat("/proc/", process);
    if (!IsNumber(process) || files.Line(folder + "/comm") != kVendorServer) {
      continue;
    }
    // A name is free to take; a few are enough to be stopped.
    if (servers.size() == kMostServers) break;
    servers.push_back({process, transport::ParseControlGroups(
                                    files.Text(folder + "/cgroup").value_or(""))
                                    .unit});
  }
  return servers;
}

std::string DescribeVendorServer(const VendorServer& server) {
  return absl::StrCat("the vendor's rknn_server runs (pid ", server.pid,
                      server.unit.empty() ? "" : ", unit ", server.unit,
                      "): it loads models into the NPU by itself, and its jobs "
                      "and ours reset each other's");
}

std::string RemedyForVendorServer(const VendorServer& server) {
  // A session's or a login's unit is not the server's own.
  const bool own = absl::EndsWith(server.unit, ".service") &&
                   absl::StartsWith(server.unit, kVendorServer);
  return absl::StrCat(
      "stop it (",
      own ? absl::StrCat("systemctl disable --now ", server.unit)
          : absl::StrCat("kill ", server.pid,
                         ", and take it out of the start scripts"),
      "): rknnd's gRPC port does what it does, see docs/remote.md");
}

void CheckNeighbours(const Files& files, const DaemonFacts& here,
                     Findings* out) {
  const std::vector<VendorServer> servers = FindVendorServers(files);
  if (servers.empty()) {
    out->push_back({"rknn-server", Level::kOk,
                    "no rknn_server of the vendor's runs here", ""});
  }
  for (const VendorServer& server : servers) {
    out->push_back({"rknn-server", Level::kWarning,
                    DescribeVendorServer(server),
                    RemedyForVendorServer(server)});
  }
  std::vector<std::string> users;
  std::string unseen;
  for (const core::ForeignUser& user : here.foreign_users) {
    if (user.comm == kVendorServer) continue;
    if (user.pid == 0) {
      unseen = Printable(user.comm);
      continue;
    }
    users.push_back(
        absl::StrCat(Printable(user.comm), " (pid ", user.pid, ")"));
  }
  if (!users.empty()) {
    if (users.size() > 4) {
      const size_t more = users.size() - 4;
      users.resize(4);
      users.push_back(absl::StrCat(more, " more"));
    }
    out->push_back({"foreign-users", Level::kWarning,
                    absl::StrCat("the NPU is used beside rknnd by ",
                                 absl::StrJoin(users, ", ")),
                    "when a job of one hangs, the driver resets the NPU under "
                    "all: let them use rknnd, or start them with 'rknnctl "
                    "lease --cores N -- COMMAND'"});
  } else if (!unseen.empty()) {
    out->push_back(
        {"foreign-users", Level::kNote,
         absl::StrCat(unseen, " could not be looked at"),
         "give rknnd CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH to see them "
         "(docs/operations.md says how)"});
  } else {
    out->push_back(
        {"foreign-users", Level::kOk, "nobody else has the NPU open", ""});
  }
  CheckLibraries(files, out);
}

}  // namespace rknnd::board
