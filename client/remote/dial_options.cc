// Called on the program's threads, when a session opens; DialFailure on the
// bridge's. What a server says of itself is quoted, never followed.

#include "client/remote/dial_options.h"

#include <array>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "base/posix/environment.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// A certificate's chain, a key or a token has some KiB.
constexpr size_t kLargestFile = size_t{1} << 20;

// Several hosts in turn; a stream that a host refuses for the moment, because
// it is going down or coming up, is begun at the next.
constexpr char kServiceConfig[] = R"({
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [{
    "name": [{"service": "rknnd.v1.Remote"}],
    "retryPolicy": {
      "maxAttempts": 3,
      "initialBackoff": "0.05s",
      "maxBackoff": "0.5s",
      "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
})";

Expected<std::string> ReadFile(const char* variable, const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "re"), &std::fclose);
  std::string text;
  std::array<char, 4096> piece{};
  size_t got = 0;
  while (file != nullptr && text.size() <= kLargestFile &&
         (got = std::fread(piece.data(), 1, piece.size(), file.get())) != 0) {
    text.append(piece.data(), got);
  }
  if (file != nullptr && std::ferror(file.get()) == 0 && !text.empty() &&
      text.size() <= kLargestFile) {
    return text;
  }
  return Error{Code::kInvalidArgument,
               std::string(variable) + " names '" + path +
                   "', which cannot be read, or is empty"};
}

// Leaves `text` as it is where the variable is not set.
Expected<void> ReadNamedFile(const char* variable, std::string* text) {
  const std::string path = base::FromEnvironment(variable);
  if (path.empty()) return {};
  Expected<std::string> read = ReadFile(variable, path);
  if (!read.ok()) return std::move(read).error();
  *text = *std::move(read);
  return {};
}

Expected<std::string> ReadToken() {
  std::string token = base::FromEnvironment("RKNND_TOKEN");
  if (Expected<void> read = ReadNamedFile("RKNND_TOKEN_FILE", &token);
      !read.ok()) {
    return std::move(read).error();
  }
  token = token.substr(0, token.find_first_of("\r\n"));
  for (const char c : token) {
    if (c > ' ' && c <= '~') continue;
    return Error{Code::kInvalidArgument,
                 "the token in RKNND_TOKEN or RKNND_TOKEN_FILE has characters "
                 "that no token has"};
  }
  return token;
}

bool TakePrefix(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

// "127.0.0.1:8001", "[::1]:8001", "localhost", "::1".
bool IsLoopbackHost(std::string_view host) {
  if (TakePrefix(&host, "[")) {
    host = host.substr(0, host.find(']'));
  } else if (const size_t colon = host.find(':');
             colon == host.rfind(':') && colon != std::string_view::npos) {
    host = host.substr(0, colon);
  }
  return host == "localhost" || host == "::1" ||
         (host.starts_with("127.") &&
          host.find_first_not_of("0123456789.") == std::string_view::npos);
}

bool Has(const Error& error, std::string_view words) {
  return error.message.find(words) != std::string::npos;
}

bool IsAboutTls(const Error& end) {
  return Has(end, "SSL") || Has(end, "andshake") || Has(end, "ertificate") ||
         Has(end, "Peer name");
}

// A server ends a connection whose first bytes it does not understand.
bool WasCutOff(const Error& end) {
  return Has(end, "Socket closed") || Has(end, "onnection reset") ||
         Has(end, "SETTINGS") || Has(end, "GOAWAY") ||
         Has(end, "Broken pipe") || Has(end, "recvmsg");
}

}  // namespace

bool IsLoopback(const std::string& target) {
  std::string_view text = target;
  if (text.starts_with("unix:") || text.starts_with("unix-abstract:")) {
    return true;
  }
  if (TakePrefix(&text, "dns:")) {
    // "dns:name", "dns:///name", "dns://server/name".
    if (TakePrefix(&text, "//")) {
      const size_t slash = text.find('/');
      if (slash == std::string_view::npos) return false;
      text.remove_prefix(slash + 1);
    }
    return IsLoopbackHost(text);
  }
  if (!TakePrefix(&text, "ipv4:")) TakePrefix(&text, "ipv6:");
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (!IsLoopbackHost(text.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
  return false;
}

Expected<DialOptions> ReadDialOptions(const std::string& address) {
  DialOptions options;
  options.address = address;
  options.target = address;
  if (address.empty()) {
    return Error{Code::kInvalidArgument,
                 "target tcp:// names no host: write tcp://HOST:PORT"};
  }
  // gRPC would take that of HTTPS, and say that nobody is there.
  if (address.find(':') == std::string::npos || address.ends_with(']')) {
    return Error{Code::kInvalidArgument, "target tcp://" + address +
                                             " names no port: write tcp://" +
                                             address + ":PORT"};
  }
  for (const auto& [variable, text] :
       {std::pair<const char*, std::string*>{"RKNND_TLS_CA", &options.roots},
        {"RKNND_TLS_CERT", &options.certificate},
        {"RKNND_TLS_KEY", &options.key}}) {
    if (Expected<void> read = ReadNamedFile(variable, text); !read.ok()) {
      return std::move(read).error();
    }
    options.tls = options.tls || !text->empty();
  }
  if (options.certificate.empty() != options.key.empty()) {
    return Error{Code::kInvalidArgument,
                 "RKNND_TLS_CERT and RKNND_TLS_KEY go together: set both, or "
                 "none"};
  }
  Expected<std::string> token = ReadToken();
  if (!token.ok()) return std::move(token).error();
  options.token = *std::move(token);
  if (!options.token.empty() && !options.tls && !IsLoopback(options.target) &&
      base::FromEnvironment("RKNND_GRPC_INSECURE") != "1") {
    return Error{Code::kUnauthenticated,
                 "the token for " + address +
                     " would cross the network in plain text, for everybody to "
                     "read: set RKNND_TLS_CA, or RKNND_GRPC_INSECURE=1 where "
                     "that network is trusted"};
  }
  options.service_config = base::FromEnvironment("RKNND_GRPC_SERVICE_CONFIG");
  if (options.service_config.empty()) options.service_config = kServiceConfig;
  // A proxy that was set for web pages leads to no board; one that was set for
  // gRPC is meant.
  options.http_proxy = !base::FromEnvironment("grpc_proxy").empty();
  return options;
}

Error DialFailure(const DialOptions& options, const Error& end) {
  const std::string where = options.address;
  const std::string help =
      ". On the board: rknnctl status; the port is off until grpc.listen is "
      "set";
  const auto none = [&](const std::string& why) {
    return Error{Code::kUnavailable,
                 "no rknnd at " + where + ": " + why + help};
  };
  switch (end.code) {
    case Code::kUnauthenticated:
      return {end.code, "rknnd at " + where +
                            " does not let this program in: " + end.message +
                            " (set RKNND_TOKEN or RKNND_TOKEN_FILE, or "
                            "RKNND_TLS_CERT and RKNND_TLS_KEY)"};
    case Code::kDeadlineExceeded:
      return none("timed out");
    case Code::kUnimplemented:
      return {Code::kUnavailable,
              "the server at " + where +
                  " speaks gRPC, but has no sessions for other machines: it is "
                  "no rknnd, or one older than this client, which then is to "
                  "be updated"};
    default:
      break;
  }
  // It drains, stops or is full, and says so itself.
  if (Has(end, "the daemon ")) {
    return {end.code, "rknnd at " + where + ": " + end.message};
  }
  if (Has(end, "onnection refused")) return none("refused");
  if (Has(end, "DNS resolution failed") || Has(end, "resolve")) {
    return none("name unknown");
  }
  if (Has(end, "timed out") || Has(end, "imeout")) return none("timed out");
  if (Has(end, "o route to host") || Has(end, "unreachable")) {
    return none("not reachable from here");
  }
  if (Has(end, "http1.x") || Has(end, "Failed parsing HTTP/2") ||
      Has(end, "HTTP status") || Has(end, "http2 header with status") ||
      Has(end, "content-type")) {
    return {Code::kUnavailable, "the server at " + where +
                                    " answers, but speaks no gRPC (" +
                                    end.message + "): is it the right port?"};
  }
  if (options.tls && (IsAboutTls(end) || WasCutOff(end))) {
    return {Code::kUnavailable,
            "no TLS with the server at " + where + " (" + end.message +
                "): its certificate is not for this name or not from "
                "RKNND_TLS_CA, or it speaks plain text: then unset "
                "RKNND_TLS_CA, RKNND_TLS_CERT and RKNND_TLS_KEY"};
  }
  if (!options.tls && WasCutOff(end)) {
    return {Code::kUnavailable,
            "the server at " + where + " hung up (" + end.message +
                "): it speaks TLS, then set RKNND_TLS_CA; or no gRPC: is it "
                "the right port?"};
  }
  if (end.code == Code::kUnavailable) return none(end.message);
  return {end.code, "rknnd at " + where + ": " + end.message};
}

}  // namespace rknnd::client
