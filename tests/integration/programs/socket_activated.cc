// Becomes a daemon that is given file descriptors as systemd gives them:
//
//   integration_socket_activated SOCKET PROGRAM [ARGUMENT]...
//
// Connects to SOCKET (SEQPACKET), from which it gets one message for each: its
// name, with the descriptor. After the end of those it puts them from 3 on,
// says so in LISTEN_FDS, LISTEN_FDNAMES and LISTEN_PID, which is its own pid,
// and executes PROGRAM.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/socket.h"

namespace {

using rknnd::base::UniqueFd;

constexpr int kFirst = 3;  // SD_LISTEN_FDS_START
constexpr int kAbove = 512;

int Fail(const std::string& what) {
  std::fprintf(stderr, "integration_socket_activated: %s\n", what.c_str());
  return 125;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return Fail("SOCKET PROGRAM [ARGUMENT]...");
  std::string names;
  std::vector<UniqueFd> passed;
  {
    auto socket = rknnd::base::ConnectUnix(argv[1]);
    if (!socket.ok()) return Fail(socket.error().message);
    for (;;) {
      std::array<std::byte, 256> name;
      auto message = rknnd::base::ReceiveMessage(socket->get(), name,
                                                 rknnd::base::Block::kYes);
      if (!message.ok()) return Fail(message.error().message);
      if (message->eof) break;
      if (message->fds.size() != 1) return Fail("not one descriptor");
      if (!passed.empty()) names += ':';
      names.append(reinterpret_cast<const char*>(name.data()), message->size);
      // Out of the way of those that are put in order.
      passed.emplace_back(
          fcntl(message->fds[0].get(), F_DUPFD_CLOEXEC, kAbove));
      if (!passed.back().valid()) return Fail("cannot duplicate a descriptor");
    }
  }
  for (size_t i = 0; i < passed.size(); ++i) {
    if (dup2(passed[i].get(), kFirst + static_cast<int>(i)) < 0) {
      return Fail("cannot put a descriptor in its place");
    }
  }
  if (!passed.empty()) {
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    setenv("LISTEN_FDS", std::to_string(passed.size()).c_str(), 1);
    setenv("LISTEN_FDNAMES", names.c_str(), 1);
  }
  execv(argv[2], argv + 2);
  return Fail(std::string("cannot execute ") + argv[2]);
}
