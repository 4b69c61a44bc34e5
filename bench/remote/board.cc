// See board.h.

#include "bench/remote/board.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "base/posix/unique_fd.h"

namespace rknnd::bench {

std::string FreeAddress() {
  const base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) !=
          0) {
    throw std::runtime_error("no free port");
  }
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

RemoteBoard::RemoteBoard(bool paced, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"--grpc", grpc_, "--pace",
                                        paced ? "on" : "off"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  daemon_.emplace(client::Launcher(), -1, arguments);
}

wire::Report RemoteBoard::Ask(rknnd_v1_ReportKind kind) {
  auto line = client::ControlConnection::Open(local_target());
  if (!line.ok()) throw std::runtime_error(line.error().message);
  auto report = line->Ask(kind);
  if (!report.ok()) throw std::runtime_error(report.error().message);
  return *std::move(report);
}

double CpuSeconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // Behind the name, which may hold anything: user and system time are the
  // 12th and 13th fields from there.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 0; i < 11; ++i) fields >> field;
  double user = 0, system = 0;
  if (!(fields >> user >> system)) {
    throw std::runtime_error("the daemon has ended");
  }
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

uint64_t ResidentBytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  uint64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) {
    throw std::runtime_error("the daemon has ended");
  }
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace rknnd::bench
