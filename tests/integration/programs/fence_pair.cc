// Two programs, one behind the other: the second one's run waits for the fence
// of the first one's, whose descriptor it was handed. Started by tests as the
// second, which starts the first.
//
//   fence_pair MODEL WHAT [SOCKET]
//
// WHAT: "chain", or what ends the first one before its run has: "kill",
// "cancel" (its run ends, and not well).

#include <fcntl.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/socket.h"
#include "rknnd.hpp"

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience(60'000);

void Require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// Memory on all sides, zeroed.
struct Bound {
  explicit Bound(rknnd::Context made) : context(std::move(made)) {
    for (uint32_t i = 0; i < context.inputs().size(); ++i) {
      memories.push_back(context.AllocateInput(i));
      context.BindInput(i, memories.back());
    }
    for (uint32_t i = 0; i < context.outputs().size(); ++i) {
      memories.push_back(context.AllocateOutput(i));
      context.BindOutput(i, memories.back());
    }
  }

  rknnd::Context context;
  std::vector<rknnd::Memory> memories;
};

rknnd::Fence Unsignalled() {
  return rknnd::Fence(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

// One byte, with a descriptor or without.
void Tell(int socket, std::vector<int> fds = {}) {
  const std::byte byte{1};
  const auto sent = rknnd::base::SendMessage(socket, {&byte, 1}, fds,
                                             rknnd::base::Block::kYes);
  Require(sent.ok(), "the other program does not listen");
}

rknnd::Fence Hear(int socket) {
  std::byte byte{};
  auto heard =
      rknnd::base::ReceiveMessage(socket, {&byte, 1}, rknnd::base::Block::kYes);
  Require(heard.ok() && heard->size == 1, "the other program has gone");
  return rknnd::Fence(heard->fds.empty() ? -1 : heard->fds[0].release());
}

void BeFirst(const std::string& model, const std::string& what, int socket) {
  Bound bound(rknnd::Context::FromFile(model));
  const rknnd::Fence start = Unsignalled();
  rknnd::Fence end;
  bound.context.Submit(rknnd::RunOptions().After(start).Signal(&end));
  Tell(socket, {end.fd()});
  end = rknnd::Fence();
  Hear(socket);
  if (what == "kill") raise(SIGKILL);
  if (what == "cancel") {
    Require(bound.context.Cancel() == 1, "there was nothing to cancel");
    return;
  }
  const uint64_t one = 1;
  Require(write(start.fd(), &one, sizeof one) == sizeof one, "eventfd");
  Require(bound.context.Wait().ok(), "the first run");
}

void BeSecond(const std::string& model, const std::string& what) {
  auto pair = rknnd::base::SeqpacketPair();
  Require(pair.ok(), "socketpair");
  // The first one inherits its end.
  Require(fcntl(pair->second.get(), F_SETFD, 0) == 0, "fcntl");
  std::string self = "/proc/self/exe";
  std::string model_argument = model;
  std::string what_argument = what;
  std::string socket = std::to_string(pair->second.get());
  char* const arguments[] = {self.data(), model_argument.data(),
                             what_argument.data(), socket.data(), nullptr};
  pid_t first = 0;
  Require(posix_spawn(&first, self.c_str(), nullptr, nullptr, arguments,
                      environ) == 0,
          "posix_spawn");
  pair->second.reset();

  Bound bound(rknnd::Context::FromFile(model));
  rknnd::Fence end;
  {
    const rknnd::Fence firsts = Hear(pair->first.get());
    Require(bool(firsts), "no fence came");
    bound.context.Submit(rknnd::RunOptions().After(firsts).Signal(&end));
  }
  Require(!end.Wait(milliseconds(0)), "it has run before the first");
  Tell(pair->first.get());
  const auto run = bound.context.WaitFor(0, kPatience);
  Require(run.has_value(), "it has not ended");
  // A completion comes first, and its fence a moment later.
  Require(end.Wait(kPatience), "its own fence is not signalled");
  // A run that was taken back has ended, too: who cares asks its program.
  Require(run->ok() == (what != "kill"), "it has not ended as it should");
  std::printf("%d\n", run->code());

  int status = 0;
  Require(waitpid(first, &status, 0) == first, "waitpid");
  Require(what == "kill" ? WIFSIGNALED(status) : status == 0, "the first");
  // Nothing is stuck.
  bound.context.Run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 4) {
      BeFirst(argv[1], argv[2], std::atoi(argv[3]));
    } else {
      Require(argc == 3, "usage: fence_pair MODEL WHAT");
      BeSecond(argv[1], argv[2]);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fence_pair: %s\n", error.what());
    return 1;
  }
}
