#include "tests/interop/programs.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "base/posix/unique_fd.h"
#include "tests/integration/harness/patience.h"

namespace rknnd::integration {
namespace {

base::UniqueFd TcpSocket() {
  return base::UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

uint16_t FreePort() {
  const base::UniqueFd fd = TcpSocket();
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) !=
          0) {
    return 0;
  }
  return ntohs(address.sin_port);
}

bool Listens(uint16_t port) {
  return Eventually([port] {
    const base::UniqueFd fd = TcpSocket();
    const sockaddr_in address = Loopback(port);
    return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof address) == 0;
  });
}

int RunToEnd(const std::vector<std::string>& arguments,
             const std::string& log_file) {
  base::ChildProcess::Options options;
  options.arguments = arguments;
  options.error_file = log_file;
  auto program = base::ChildProcess::Start(options);
  if (!program.ok()) return -1;
  const auto code = program->Wait(2 * kPatience);
  return code.ok() ? *code : -1;
}

DaemonOptions WithGrpc(std::vector<std::string> more) {
  DaemonOptions options;
  options.more = {"--grpc", "127.0.0.1:0"};
  for (std::string& word : more) options.more.push_back(std::move(word));
  return options;
}

uint16_t GrpcPortOf(DaemonProcess& daemon) {
  const std::string address = daemon.grpc_address();
  return static_cast<uint16_t>(
      std::stoul(address.substr(address.rfind(':') + 1)));
}

}  // namespace rknnd::integration
