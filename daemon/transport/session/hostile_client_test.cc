// Clients that lie, flood, stop reading or die. Each test has a neighbour who
// must not notice, and looks at what is left afterwards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/socket.h"
#include "daemon/transport/session/testing/test_daemon.h"

namespace rknnd::transport::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class HostileClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(neighbour_.SayHello().code, base::Code::kOk);
    neighbour_.MakeReady(1);
  }
  void TearDown() override { ExpectNeighbourServed(); }

  void ExpectNeighbourServed() {
    static uint8_t value = 0;
    ++value;
    std::memset(neighbour_.buffer(10), value, 64);
    ASSERT_EQ(neighbour_.RunOnce(1), base::Code::kOk);
    EXPECT_EQ(neighbour_.buffer(11)[5],
              static_cast<std::byte>(static_cast<uint8_t>(value + 1)));
  }
  TestClient ConnectAndGreet() {
    TestClient client(daemon_.Connect());
    EXPECT_EQ(client.SayHello().code, base::Code::kOk);
    return client;
  }
  // Waits until only the neighbour's things are left.
  void ExpectOnlyNeighbourLeft() {
    daemon_.WaitUntil([](const core::StatusReport& status) {
      return status.sessions == 1 && status.contexts == 1 &&
             status.buffers == 2 &&
             status.memory.io == 2 * static_cast<size_t>(getpagesize()) &&
             status.jobs_queued == 0 && status.jobs_running == 0;
    });
  }

  TestDaemon daemon_;
  TestClient neighbour_{daemon_.Connect()};
};

TEST_F(HostileClientTest, GarbageInsteadOfHelloEndsTheConnection) {
  TestClient client(daemon_.Connect());
  const std::vector<std::byte> garbage(500, std::byte{0xA5});
  ASSERT_TRUE(
      base::SendMessage(client.socket(), garbage, {}, base::Block::kYes).ok());
  client.ExpectEnd();
  ExpectOnlyNeighbourLeft();
}

TEST_F(HostileClientTest, GarbageInASessionEndsItAndFreesItsThings) {
  TestClient client = ConnectAndGreet();
  client.MakeReady(1);
  const std::vector<std::byte> garbage(500, std::byte{0xA5});
  ASSERT_TRUE(
      base::SendMessage(client.socket(), garbage, {}, base::Block::kYes).ok());
  client.ExpectEnd();
  ExpectOnlyNeighbourLeft();
}

TEST_F(HostileClientTest, RandomRequestsAreAnsweredOrEndTheSession) {
  std::mt19937 random(4);  // the same bytes in every run
  for (int round = 0; round < 40; ++round) {
    TestClient client = ConnectAndGreet();
    for (int i = 0; i < 50; ++i) {
      wire::Frame frame;
      frame.verb = static_cast<wire::Verb>(1 + random() % 13);
      frame.request = random();
      frame.body.resize(random() % 80);
      for (std::byte& byte : frame.body) {
        byte = static_cast<std::byte>(random() % 4 == 0 ? random()
                                                        : random() % 0x48);
      }
      ASSERT_TRUE(
          wire::SendFrame(client.socket(), frame, base::Block::kYes).ok());
      const auto reply = wire::ReceiveFrame(client.socket(), base::Block::kYes);
      ASSERT_TRUE(reply.ok());
      ASSERT_EQ(reply->kind, wire::FrameResult::Kind::kFrame);
      EXPECT_EQ(reply->frame.request, frame.request);
    }
  }
  ExpectOnlyNeighbourLeft();
}

TEST_F(HostileClientTest, MoreFdsThanAMessageMayHaveEndTheConnection) {
  TestClient client = ConnectAndGreet();
  daemon_.RunOnLoop([] {});  // what came with the greeting is closed
  const size_t before = OpenFds();
  constexpr size_t kFds = 60;
  std::vector<int> fds(kFds, client.doorbell());
  std::vector<std::byte> bytes(sizeof(wire::FrameHeader));
  alignas(cmsghdr) char control[CMSG_SPACE(kFds * sizeof(int))] = {};
  iovec payload = {bytes.data(), bytes.size()};
  msghdr message = {};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(kFds * sizeof(int));
  std::memcpy(CMSG_DATA(header), fds.data(), kFds * sizeof(int));
  ASSERT_GT(sendmsg(client.socket(), &message, 0), 0);
  client.ExpectEnd();
  ExpectOnlyNeighbourLeft();
  EXPECT_LT(OpenFds(), before);
}

TEST_F(HostileClientTest, ClientThatReadsNoAnswersIsDisconnected) {
  TestClient client = ConnectAndGreet();
  wire::Frame request;
  request.verb = wire::Verb::kReport;
  request.body = *wire::Encode(wire::ReportRequest{});
  uint64_t sent = 0;
  while (wire::SendFrame(client.socket(), request, base::Block::kYes).ok()) {
    // Far beyond what kernel and daemon keep for a client.
    ASSERT_LT(++sent, 1'000'000U);
    if (sent % 100 == 0) ExpectNeighbourServed();
  }
  ExpectOnlyNeighbourLeft();
  EXPECT_THAT(daemon_.log().lines(),
              Contains(HasSubstr("does not read its answers")));
}

TEST_F(HostileClientTest, RingViolationEndsTheSessionAndSaysWhy) {
  TestClient client = ConnectAndGreet();
  client.MakeReady(1);
  client.ring()->header.tail.store(100'000);
  base::SignalEventFd(client.doorbell());
  client.ExpectEnd();
  EXPECT_THAT(client.log(), Contains(HasSubstr("disconnected: ring:")));
  ExpectOnlyNeighbourLeft();
}

TEST_F(HostileClientTest, SlotUsedTwiceEndsTheSession) {
  daemon_.device().HoldJobs(true);
  TestClient client = ConnectAndGreet();
  client.MakeReady(1);
  client.Submit(1, 5);
  client.Submit(1, 5);
  client.ExpectEnd();
  EXPECT_THAT(client.log(), Contains(HasSubstr("still in flight")));
  daemon_.device().HoldJobs(false);
  while (daemon_.device().Release()) {
  }
  ExpectOnlyNeighbourLeft();
}

TEST_F(HostileClientTest, RingScribbledWhileItRunsLeavesTheNeighbourRight) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    TestClient client = ConnectAndGreet();
    client.MakeReady(1);
    std::atomic<bool> stop{false};
    std::thread scribbler([&, seed] {
      std::mt19937 random(seed);
      auto* const words = reinterpret_cast<uint32_t*>(client.ring());
      while (!stop.load()) {
        // Stores as a hostile process makes them, so that the test itself
        // has no race the sanitizer could see.
        __atomic_store_n(&words[random() % (wire::kRingBytes / 4)],
                         static_cast<uint32_t>(random()), __ATOMIC_RELAXED);
        client.ring()->header.tail.store(
            random() % 4 == 0 ? random() : random() % wire::kRingEntries);
        base::SignalEventFd(client.doorbell());
      }
    });
    for (int i = 0; i < 20; ++i) ExpectNeighbourServed();
    stop.store(true);
    scribbler.join();
  }
  ExpectOnlyNeighbourLeft();
}

TEST_F(HostileClientTest, DoorbellFloodLeavesTheNeighbourServed) {
  TestClient client = ConnectAndGreet();
  while (daemon_.workers().counts().penalties == 0) {
    base::SignalEventFd(client.doorbell());
  }
  const uint64_t empty = daemon_.workers().counts().empty;
  for (int i = 0; i < 5000; ++i) {
    base::SignalEventFd(client.doorbell());
    if (i % 100 == 0) ExpectNeighbourServed();
  }
  EXPECT_LE(daemon_.workers().counts().empty, empty + 8);
}

TEST_F(HostileClientTest, ClosedAtAnyPhaseNothingIsLeft) {
  const auto until_hello = [](TestClient& client) {
    EXPECT_EQ(client.SayHello().code, base::Code::kOk);
  };
  const std::vector<std::function<void(TestClient&)>> phases = {
      [](TestClient&) {},
      until_hello,
      [&](TestClient& client) {
        until_hello(client);
        client.Upload("bytes=64 weight=5000");
      },
      [&](TestClient& client) {
        until_hello(client);
        // Not waited for: the model is being loaded when the client goes.
        wire::Frame request;
        request.verb = wire::Verb::kCreateContext;
        request.body = *wire::Encode(wire::CreateContext{});
        EXPECT_TRUE(
            wire::SendFrame(client.socket(), request, base::Block::kYes).ok());
      },
      [&](TestClient& client) {
        until_hello(client);
        EXPECT_EQ(client.Allocate(7, 1 << 20), base::Code::kOk);
      },
      [&](TestClient& client) {
        until_hello(client);
        client.MakeReady(2);
      },
      [&](TestClient& client) {
        until_hello(client);
        client.MakeReady(2);
        for (uint32_t slot = 0; slot < 20; ++slot) client.Submit(2, slot);
      },
  };
  for (const auto& phase : phases) {
    TestClient client(daemon_.Connect());
    phase(client);
    client.Close();
    ExpectOnlyNeighbourLeft();
    ExpectNeighbourServed();
  }
}

TEST_F(HostileClientTest, MemoryOfARunningJobGoesWhenTheJobEnds) {
  TestClient client = ConnectAndGreet();
  client.MakeReady(1);
  daemon_.device().HoldJobs(true);
  client.Submit(1, 0);
  client.Submit(1, 1);
  while (daemon_.device().held() == 0) std::this_thread::yield();
  client.Close();
  daemon_.WaitUntil(
      [](const core::StatusReport& status) { return status.sessions == 1; });
  // The job still writes there.
  EXPECT_GT(daemon_.Status().memory.io, 8192U);
  daemon_.device().HoldJobs(false);
  ASSERT_TRUE(daemon_.device().Release());
  ExpectOnlyNeighbourLeft();
}

TEST_F(HostileClientTest, ManyDeathsLeaveNoFd) {
  const auto live_and_die = [&] {
    TestClient client = ConnectAndGreet();
    client.MakeReady(1);
    client.Submit(1, 0);
  };
  live_and_die();
  ExpectOnlyNeighbourLeft();
  const size_t before = OpenFds();
  for (int i = 0; i < 100; ++i) live_and_die();
  // A worker that was at the last ring lets go of it in its own time.
  daemon_.WaitUntil(
      [&](const core::StatusReport&) { return OpenFds() <= before; });
}

TEST_F(HostileClientTest, SessionEndsWithItsProcessThoughAChildHoldsTheSocket) {
  const ServedFolder served;
  served.Serve(&daemon_);
  auto hold = base::SeqpacketPair();  // the grandchild ends when it closes
  ASSERT_TRUE(hold.ok());
  wire::Hello hello{};
  hello.protocol_min = hello.protocol_max = 1;
  wire::Frame frame;
  frame.body = *wire::Encode(hello);

  const pid_t client = fork();
  if (client == 0) {
    hold->first.reset();
    auto socket = base::ConnectUnix(served.path);
    if (!socket.ok()) _exit(1);
    if (!wire::SendFrame(socket->get(), frame, base::Block::kYes).ok()) {
      _exit(2);
    }
    if (!wire::ReceiveFrame(socket->get(), base::Block::kYes).ok()) _exit(3);
    if (!base::GetPeerPidFd(socket->get()).ok()) _exit(77);
    if (fork() == 0) {
      char byte = 0;
      static_cast<void>(read(hold->second.get(), &byte, 1) == 0);
      _exit(0);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(client, &status, 0), client);
  hold->second.reset();
  if (WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "this kernel has no SO_PEERPIDFD";
  }
  ASSERT_EQ(WEXITSTATUS(status), 0);
  ExpectOnlyNeighbourLeft();
}

TEST(ServerLimitsTest, PendingOnesBeyondTheLimitTurnAwayTheOldest) {
  TestDaemonOptions options;
  options.server_limits.pending_connections = 2;
  TestDaemon daemon(options);
  TestClient one(daemon.Connect());
  TestClient two(daemon.Connect());
  // Whoever only connects keeps nobody out.
  TestClient three(daemon.Connect());
  one.ExpectEnd();
  EXPECT_EQ(three.SayHello().code, base::Code::kOk);
  TestClient four(daemon.Connect());
  EXPECT_EQ(four.SayHello().code, base::Code::kOk);
  EXPECT_EQ(two.SayHello().code, base::Code::kOk);
}

TEST(ServerLimitsTest, ConnectionsBeyondThoseAtOnceComeOneByOne) {
  const auto folder = base::TemporaryFolder::Make();
  ASSERT_TRUE(folder.ok());
  const std::string path = folder->path() + "/session.sock";
  const std::string operators = folder->path() + "/admin.sock";
  TestDaemon daemon;
  daemon.RunOnLoop([&] {
    for (const auto& [name, admin] :
         {std::pair(path, false), std::pair(operators, true)}) {
      ASSERT_TRUE(daemon.server().Serve(*ListenAt(name, 0600), admin).ok());
    }
  });
  std::vector<TestClient> crowd;
  for (uint32_t i = 0; i < kAcceptedAtOnce; ++i) {
    crowd.emplace_back(*base::ConnectUnix(path));
    ASSERT_EQ(crowd.back().SayHello().code, base::Code::kOk);
  }
  TestClient one_more(*base::ConnectUnix(path));
  TestClient another(*base::ConnectUnix(path));
  const auto connections = [&daemon] {
    size_t count = 0;
    daemon.RunOnLoop([&] { count = daemon.server().connections(); });
    return count;
  };
  // An operator does not wait; the loop has looked at the others by then.
  TestClient admin(*base::ConnectUnix(operators));
  EXPECT_EQ(admin.SayHello().code, base::Code::kOk);
  EXPECT_EQ(connections(), kAcceptedAtOnce + 1);
  daemon.Advance(kAcceptInterval);
  EXPECT_EQ(one_more.SayHello().code, base::Code::kOk);
  EXPECT_EQ(connections(), kAcceptedAtOnce + 2);
  daemon.Advance(kAcceptInterval);
  EXPECT_EQ(another.SayHello().code, base::Code::kOk);
  daemon.RunOnLoop([&] { daemon.server().StopListening(); });
}

TEST(ServerLimitsTest, SessionBeyondTheLimitIsToldWhich) {
  TestDaemonOptions options;
  options.server_limits.sessions = 1;
  TestDaemon daemon(options);
  TestClient one(daemon.Connect());
  ASSERT_EQ(one.SayHello().code, base::Code::kOk);
  TestClient two(daemon.Connect());
  const wire::Frame reply = two.SayHello();
  EXPECT_EQ(reply.code, base::Code::kResourceExhausted);
  EXPECT_THAT(wire::DecodeFailure(reply).message,
              HasSubstr("limit 'sessions' is 1"));
  two.ExpectEnd();
  one.Close();
  daemon.WaitUntil(
      [](const core::StatusReport& status) { return status.sessions == 0; });
  TestClient three(daemon.Connect());
  EXPECT_EQ(three.SayHello().code, base::Code::kOk);
}

TEST(ServerLimitsTest, SocketFolderIsMadeWhenMissing) {
  const auto folder = base::TemporaryFolder::Make();
  ASSERT_TRUE(folder.ok());
  const auto listener = ListenAt(folder->path() + "/run/session.sock", 0600);
  EXPECT_TRUE(listener.ok()) << listener.status();
}

}  // namespace
}  // namespace rknnd::transport::testing
