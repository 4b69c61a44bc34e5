// Fences and sets of bindings over a connection and a ring, with the whole
// transport, real fds and workers that run.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/socket.h"
#include "daemon/transport/session/testing/test_daemon.h"

namespace rknnd::transport::testing {
namespace {

using base::UniqueFd;
using ::testing::HasSubstr;

std::pair<UniqueFd, UniqueFd> FencePair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool Readable(const UniqueFd& fd, int milliseconds = 0) {
  pollfd look{fd.get(), POLLIN, 0};
  return poll(&look, 1, milliseconds) == 1 && (look.revents & POLLIN) != 0;
}

// Longer than a loaded machine takes; a test that needs it has failed.
constexpr int kPatience = 60'000;

class FenceRequestsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kIn = 1, kOut = 2;

  TestClient ConnectAndGreet() {
    TestClient client(daemon_.Connect());
    EXPECT_EQ(client.SayHello().code, base::Code::kOk);
    return client;
  }
  static wire::Frame TryRegister(TestClient& client, uint32_t number, bool out,
                                 const UniqueFd& fd) {
    wire::RegisterFence fence{};
    fence.fence = number;
    fence.out = out;
    std::vector<UniqueFd> fds;
    if (fd.valid()) fds.push_back(*base::Duplicate(fd.get()));
    return client.Call(wire::Verb::kRegisterFence, fence, std::move(fds));
  }
  static void Register(TestClient& client, uint32_t number, bool out,
                       const UniqueFd& fd) {
    const wire::Frame reply = TryRegister(client, number, out, fd);
    ASSERT_EQ(reply.code, base::Code::kOk)
        << wire::DecodeFailure(reply).message;
  }
  static base::Code Release(TestClient& client, uint32_t number) {
    wire::ReleaseFence fence{};
    fence.fence = number;
    return client.Call(wire::Verb::kReleaseFence, fence).code;
  }
  static wire::Submission Job(uint32_t context, uint32_t slot) {
    wire::Submission entry{};
    entry.context = context;
    entry.slot = slot;
    return entry;
  }
  static void SubmitWaiting(TestClient& client, uint32_t context,
                            uint32_t slot) {
    wire::Submission entry = Job(context, slot);
    entry.fence_in = kIn;
    client.Submit(entry);
  }
  // All entries so far were taken: a job of another context is through.
  static void Settle(TestClient& client) {
    client.Submit(2, wire::kRingEntries - 1);
    ASSERT_EQ(client.WaitFor(wire::kRingEntries - 1), base::Code::kOk);
  }

  // What was answered or has gone may be closed a moment later.
  static void WaitForFds(size_t most) {
    while (OpenFds() > most) std::this_thread::yield();
  }

  TestDaemon daemon_;
};

TEST_F(FenceRequestsTest, RunBeginsWhenItsFenceIsSignalled) {
  TestClient client = ConnectAndGreet();
  client.MakeReady(1);
  client.MakeReady(2);
  const UniqueFd fence = *base::MakeEventFd();
  Register(client, kIn, false, fence);
  SubmitWaiting(client, 1, 0);
  Settle(client);
  EXPECT_FALSE(client.HasEnded(0));
  EXPECT_EQ(daemon_.fences().watched(), 1U);
  base::SignalEventFd(fence.get());
  EXPECT_EQ(client.WaitFor(0), base::Code::kOk);
  // It is signalled still.
  SubmitWaiting(client, 1, 1);
  EXPECT_EQ(client.WaitFor(1), base::Code::kOk);
  EXPECT_EQ(daemon_.fences().watched(), 0U);
}

TEST_F(FenceRequestsTest, RunFailsClearlyWhenItsFenceIsClosed) {
  TestClient client = ConnectAndGreet();
  client.MakeReady(1);
  client.MakeReady(2);
  auto [near, far] = FencePair();
  Register(client, kIn, false, near);
  SubmitWaiting(client, 1, 0);
  Settle(client);
  far.reset();
  EXPECT_EQ(client.WaitFor(0), base::Code::kFailedPrecondition);
  EXPECT_THAT(client.ReasonOf(0),
              HasSubstr("fence 1 was closed at its other end"));
}

TEST_F(FenceRequestsTest, ChainRunsThroughTwoSessions) {
  TestClient first = ConnectAndGreet();
  TestClient second = ConnectAndGreet();
  for (TestClient* client : {&first, &second}) {
    client->MakeReady(1);
    client->MakeReady(2);
  }
  auto [told, tells] = FencePair();
  const UniqueFd start = *base::MakeEventFd();
  Register(first, kIn, false, start);
  Register(first, kOut, true, tells);
  Register(second, kIn, false, told);
  tells.reset();

  wire::Submission head = Job(1, 0);
  head.fence_in = kIn;
  head.fence_out = kOut;
  SubmitWaiting(second, 1, 0);
  first.Submit(head);
  Settle(first);
  Settle(second);
  EXPECT_FALSE(second.HasEnded(0));
  base::SignalEventFd(start.get());
  EXPECT_EQ(second.WaitFor(0), base::Code::kOk);
  // Its own answer was there before it told of it.
  EXPECT_TRUE(first.HasEnded(0));
}

TEST_F(FenceRequestsTest, EndOfTheFirstSessionBreaksTheChainAtOnce) {
  TestClient second = ConnectAndGreet();
  second.MakeReady(1);
  second.MakeReady(2);
  auto [told, tells] = FencePair();
  Register(second, kIn, false, told);
  {
    TestClient first = ConnectAndGreet();
    first.MakeReady(1);
    const UniqueFd never = *base::MakeEventFd();
    Register(first, kIn, false, never);
    Register(first, kOut, true, tells);
    tells.reset();
    wire::Submission head = Job(1, 0);
    head.fence_in = kIn;
    head.fence_out = kOut;
    first.Submit(head);
    SubmitWaiting(second, 1, 0);
    Settle(second);
  }
  EXPECT_EQ(second.WaitFor(0), base::Code::kFailedPrecondition);
}

TEST_F(FenceRequestsTest, QueueOfCompletionsCanBeReadOnceARunHasEnded) {
  TestClient client = ConnectAndGreet();
  client.MakeReady(1);
  auto [told, tells] = FencePair();
  Register(client, kOut, true, tells);
  wire::Submission entry = Job(1, 0);
  entry.notify = kOut;
  EXPECT_FALSE(Readable(told));
  client.Submit(entry);
  ASSERT_TRUE(Readable(told, kPatience));
  EXPECT_TRUE(client.HasEnded(0));
}

TEST_F(FenceRequestsTest, SocketThatIsFullHoldsNobodyUp) {
  TestClient client = ConnectAndGreet();
  client.MakeReady(1);
  auto [told, tells] = FencePair();
  Register(client, kOut, true, tells);
  // The flags are the client's, too.
  ASSERT_EQ(fcntl(tells.get(), F_SETFL, O_NONBLOCK), 0);
  std::array<char, 4096> much{};
  while (write(tells.get(), much.data(), much.size()) > 0) {
  }
  ASSERT_EQ(errno, EAGAIN);
  ASSERT_EQ(fcntl(tells.get(), F_SETFL, 0), 0);
  for (int i = 0; i < 50; ++i) {
    wire::Submission entry = Job(1, 0);
    entry.fence_out = kOut;
    client.Submit(entry);
    ASSERT_EQ(client.WaitFor(0), base::Code::kOk);
  }
}

TEST_F(FenceRequestsTest, WhatCannotBeAFenceIsRefusedAndTheSessionGoesOn) {
  TestClient client = ConnectAndGreet();
  client.MakeReady(1);
  const UniqueFd set(epoll_create1(EPOLL_CLOEXEC));
  const UniqueFd file(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  const UniqueFd event = *base::MakeEventFd();
  const UniqueFd doorbell = *base::Duplicate(client.doorbell());
  const struct {
    const UniqueFd& fd;
    bool out;
    const char* reason;
  } cases[] = {{set, false, "is an epoll set"},
               {file, false, "status': a fence is an eventfd"},
               {doorbell, false, "own doorbell"},
               {event, true, "is an eventfd, and its owner"},
               {UniqueFd(), false, "came without its fd"}};
  const size_t before = OpenFds();
  for (const auto& c : cases) {
    const wire::Frame reply = TryRegister(client, 5, c.out, c.fd);
    EXPECT_EQ(reply.code, base::Code::kInvalidArgument) << c.reason;
    EXPECT_THAT(wire::DecodeFailure(reply).message, HasSubstr(c.reason));
  }
  EXPECT_EQ(TryRegister(client, 0, false, event).code,
            base::Code::kInvalidArgument);
  WaitForFds(before);
  EXPECT_EQ(client.RunOnce(1), base::Code::kOk);
}

TEST_F(FenceRequestsTest, NumberIsFreeAgainOnceItWasReleased) {
  TestClient client = ConnectAndGreet();
  const UniqueFd event = *base::MakeEventFd();
  Register(client, kIn, false, event);
  EXPECT_EQ(TryRegister(client, kIn, false, event).code,
            base::Code::kAlreadyExists);
  EXPECT_EQ(Release(client, kIn), base::Code::kOk);
  EXPECT_EQ(Release(client, kIn), base::Code::kNotFound);
  Register(client, kIn, false, event);
}

TEST_F(FenceRequestsTest, ClientThatGoesLeavesNeitherFdsNorWaits) {
  TestClient neighbour = ConnectAndGreet();
  neighbour.MakeReady(1);
  const size_t before = OpenFds();
  {
    TestClient client = ConnectAndGreet();
    client.MakeReady(1);
    client.MakeReady(2);
    for (uint32_t number = 10; number < 60; ++number) {
      Register(client, number, false, *base::MakeEventFd());
      wire::Submission entry = Job(1, number);
      entry.fence_in = number;
      // More of them wait than one context may have.
      client.Submit(entry);
    }
    Settle(client);
    EXPECT_GT(daemon_.fences().watched(), 0U);
  }
  daemon_.WaitUntil([](const auto& status) { return status.sessions == 1; });
  EXPECT_EQ(daemon_.fences().watched(), 0U);
  WaitForFds(before);
  EXPECT_EQ(neighbour.RunOnce(1), base::Code::kOk);
}

TEST_F(FenceRequestsTest, OwnersWhoToggleAndCloseTheirFencesHarmNobody) {
  TestClient client = ConnectAndGreet();
  client.MakeReady(1);
  client.MakeReady(2);
  TestClient neighbour = ConnectAndGreet();
  neighbour.MakeReady(1);
  const UniqueFd event = *base::MakeEventFd();
  Register(client, kIn, false, event);
  std::atomic<bool> stop{false};
  std::thread toggler([&] {
    uint64_t count = 0;
    while (!stop.load()) {
      base::SignalEventFd(event.get());
      static_cast<void>(read(event.get(), &count, sizeof count));
    }
  });
  for (int i = 0; i < 200; ++i) {
    SubmitWaiting(client, 1, 0);
    EXPECT_EQ(neighbour.RunOnce(1), base::Code::kOk);
    base::SignalEventFd(event.get());
    const base::Code ended = client.WaitFor(0);
    EXPECT_EQ(ended, base::Code::kOk);
  }
  stop.store(true);
  toggler.join();
}

TEST_F(FenceRequestsTest, RunMeetsTheSetOfBindingsThatItNames) {
  TestClient client = ConnectAndGreet();
  client.MakeReady(1);
  ASSERT_EQ(client.Allocate(90, 4096), base::Code::kOk);
  wire::Bind bind{};
  bind.context = 1;
  bind.output = true;
  bind.buffer = 90;
  bind.size = 64;
  bind.type = static_cast<uint32_t>(driver::TensorType::kUint8);
  bind.layout = static_cast<uint32_t>(driver::TensorLayout::kNhwc);
  bind.set = 3;
  ASSERT_EQ(client.Call(wire::Verb::kBind, bind).code, base::Code::kOk);
  // The device writes its input plus 1.
  client.buffer(10)[0] = std::byte{41};
  wire::Submission entry = Job(1, 0);
  entry.set = 3;
  client.Submit(entry);
  ASSERT_EQ(client.WaitFor(0), base::Code::kOk);
  EXPECT_EQ(client.buffer(90)[0], std::byte{42});
  EXPECT_EQ(client.buffer(11)[0], std::byte{0});
  ASSERT_EQ(client.RunOnce(1), base::Code::kOk);
  EXPECT_EQ(client.buffer(11)[0], std::byte{42});
  // Sets that do not exist.
  bind.set = 8;
  EXPECT_EQ(client.Call(wire::Verb::kBind, bind).code,
            base::Code::kInvalidArgument);
  entry.set = UINT32_MAX;
  client.Submit(entry);
  EXPECT_EQ(client.WaitFor(0), base::Code::kInvalidArgument);
  EXPECT_THAT(client.ReasonOf(0), HasSubstr("set 4294967295"));
}

}  // namespace
}  // namespace rknnd::transport::testing
