// The file is an administrator's: wrong, perhaps, but not hostile.

#include "daemon/config/config.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/expected.h"
#include "daemon/config/key_table.h"

namespace rknnd {
namespace {

// A file of more is none of ours.
constexpr size_t kMostText = size_t{1} << 20;

// That the kernel takes as a socket's address.
constexpr size_t kLongestSocket = sizeof(sockaddr_un::sun_path) - 1;

// Of the files that are made for local clients; a socket of a group has another
// name for a moment.
size_t LongestSocketName(const Config& config) {
  const auto length = [](const std::string& path, bool group) {
    return path.size() + (group ? 4 : 0);
  };
  return std::max(
      length(config.socket, config.socket_group.has_value()),
      length(AdminSocketFor(config.socket), config.admin_group.has_value()));
}

// All that is wrong, a line each.
class Complaints {
 public:
  template <class... Words>
  void Add(const Words&... words) {
    absl::StrAppend(&text_, text_.empty() ? "" : "\n", words...);
  }
  [[nodiscard]] absl::Status status() const {
    return text_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(text_);
  }

 private:
  std::string text_;
};

void CheckSocket(const Config& config, Complaints& complaints) {
  if (config.socket.empty() || config.socket.front() != '/' ||
      config.socket.back() == '/') {
    complaints.Add("socket '", config.socket,
                   "' must be the path of a file from the root");
  } else if (AdminSocketFor(config.socket) == config.socket) {
    complaints.Add(
        "socket '", config.socket,
        "' has the name of the operators' socket, which is made beside "
        "it: name it otherwise");
  } else if (const size_t length = LongestSocketName(config);
             length > kLongestSocket) {
    complaints.Add("socket '", config.socket,
                   "': it and what is made beside it (", length,
                   " bytes) must have at most ", kLongestSocket);
  }
}

void CheckGrpc(const transport::GrpcOptions& options, Complaints& complaints) {
  const std::pair<const char*, const std::string*> paths[] = {
      {"grpc.certificate", &options.certificate},
      {"grpc.key", &options.key},
      {"grpc.client_ca", &options.client_ca},
      {"grpc.tokens", &options.tokens},
      {"models.repository", &options.model_repository},
  };
  for (const auto& [key, path] : paths) {
    if (path->empty() || path->front() == '/') continue;
    complaints.Add(key, ": '", *path, "' must be a path from the root");
  }
  if (!options.operators.empty() && options.client_ca.empty()) {
    complaints.Add(
        "grpc.operators are names of clients' certificates, which takes "
        "grpc.client_ca; for tokens, roles stand in their file");
  }
}

}  // namespace

absl::Status ReadToml(const std::string& text, const std::string& path,
                      Config& config) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' line ", parsed.error().source().begin.line,
                     ": ", std::string(parsed.error().description())));
  }
  Findings findings(path);
  AllKeys().Read(parsed.table(), "", config, findings);
  config.warnings = findings.TakeWarnings();
  return findings.status();
}

absl::Status ReadTomlFile(const std::string& path, Config& config) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return base::ToStatus(
        base::ErrnoError(errno, absl::StrCat("open '", path, "'")));
  }
  // A pipe would hold up whoever reads it.
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is no regular file"));
  }
  if (static_cast<uint64_t>(status.st_size) > kMostText) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' has more than ", kMostText,
                     " bytes: it is none of ours"));
  }
  errno = 0;
  std::ifstream file(path);
  std::ostringstream text;
  // An empty file sets failbit: it says nothing, which is fine.
  if (!file.is_open() || (!(text << file.rdbuf()) && status.st_size > 0)) {
    return base::ToStatus(base::ErrnoError(errno == 0 ? EIO : errno,
                                           absl::StrCat("read '", path, "'")));
  }
  return ReadToml(text.str(), path, config);
}

std::string WarningOfFile(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || (status.st_mode & S_IWOTH) == 0) {
    return "";
  }
  return absl::StrCat("'", path,
                      "' can be changed by every user of this machine, who so "
                      "has a say in all others' limits: chmod o-w '",
                      path, "'");
}

absl::Status CheckConfig(const Config& config) {
  Complaints complaints;
  CheckSocket(config, complaints);
  if (config.device != "auto" && config.device != "soft" &&
      config.device != "rknpu" && config.device != "rknnrt") {
    complaints.Add("device '", config.device,
                   "' is unknown: use 'soft', 'rknpu', 'rknnrt' or 'auto'");
  }
  if (config.cache != "coherent" && config.cache != "incoherent") {
    complaints.Add(
        "cache '", config.cache,
        "' is unknown: use 'coherent' or 'incoherent' (folders for models "
        "are 'cache_dir')");
  }
  if (config.log_level > kMostLogLevel) {
    complaints.Add("log_level is ", config.log_level, ", must be 0 to 5");
  }
  for (const driver::PhysicalWindow& window : config.physical_memory) {
    const absl::Status wrong = driver::CheckWindow(window);
    if (!wrong.ok()) {
      complaints.Add("physical_memory: ", std::string(wrong.message()));
    }
  }
  for (const std::string& path : config.preload) {
    if (path.empty() || path.front() != '/') {
      complaints.Add("models.preload: '", path,
                     "' must be a path from the root");
    }
  }
  CheckGrpc(config.grpc, complaints);
  if (!config.faults.preset.empty() && !config.faults.enabled) {
    complaints.Add(
        "faults.preset is given, but faults are not enabled: set 'enabled = "
        "true' under [faults], or start with --faults");
  }
  for (const driver::Fault& fault : config.faults.preset) {
    // The device's own cores are known when it is opened.
    constexpr uint32_t kMostCores = 32;
    const absl::Status wrong = driver::CheckFault(fault, kMostCores);
    if (wrong.ok()) continue;
    complaints.Add("faults.preset '", std::string(driver::NameOf(fault.kind)),
                   "': ", std::string(wrong.message()));
  }
  return complaints.status();
}

std::string DefaultCacheDir() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread is started
  const char* given = std::getenv("CACHE_DIRECTORY");
  if (given != nullptr && *given != '\0') {
    // Several are separated by colons; ours is the first.
    const std::string list(given);
    return list.substr(0, list.find(':'));
  }
  static constexpr char kSystem[] = "/var/cache/rknnd";
  if (mkdir(kSystem, 0700) != 0 && errno != EEXIST) return "";
  return access(kSystem, W_OK | X_OK) == 0 ? kSystem : "";
}

std::string AdminSocketFor(const std::string& socket) {
  const size_t slash = socket.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "" : socket.substr(0, slash + 1);
  return folder + "admin.sock";
}

}  // namespace rknnd
