// See raw_session.h.

#include "bench/hotpath/raw_session.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/posix/socket.h"
#include "bench/common/placement.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"

namespace rknnd::bench {

RawSession::RawSession(const std::string& target) {
  auto socket = base::ConnectUnix(target.substr(target.find(':') + 1));
  if (!socket.ok()) throw std::runtime_error(socket.error().message);
  socket_ = *std::move(socket);
  wire::Hello hello{};
  hello.protocol_min = wire::kProtocolMinimum;
  hello.protocol_max = wire::kProtocolCurrent;
  wire::SetText(hello.comm, "bench");
  wire::Frame frame;
  frame.verb = wire::Verb::kHello;
  frame.request = 1;
  auto body = wire::Encode(hello);
  if (!body.ok()) throw std::runtime_error(body.error().message);
  frame.body = *std::move(body);
  if (!wire::SendFrame(socket_.get(), frame, base::Block::kYes).ok()) {
    throw std::runtime_error("the daemon takes no Hello");
  }
  auto reply = wire::ReceiveFrame(socket_.get(), base::Block::kYes);
  if (!reply.ok() || reply->frame.fds.size() < 2) {
    throw std::runtime_error("the daemon sent no ring");
  }
  doorbell_ = std::move(reply->frame.fds[1]);
}

void RawSession::Ring() const { base::SignalEventFd(doorbell_.get()); }

Flood::Flood(const std::string& target, int cpu) : child_(fork()) {
  if (child_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  PinTo(cpu);
  try {
    const RawSession session(target);
    for (;;) session.Ring();
  } catch (const std::exception&) {
    _exit(1);
  }
}

Flood::~Flood() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

}  // namespace rknnd::bench
