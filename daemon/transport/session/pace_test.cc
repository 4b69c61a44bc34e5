// Programs that come, go and ask faster than any needs to, in processes of
// their own: the daemon's own process has no such limits.

#include "daemon/transport/session/pace.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/posix/socket.h"
#include "daemon/transport/session/testing/test_daemon.h"

namespace rknnd::transport::testing {
namespace {

// Two processes that wait for each other.
class Steps {
 public:
  explicit Steps(int link) : link_(link) {}
  void Tell() const {
    const char byte = 0;
    if (write(link_, &byte, 1) != 1) _exit(1);
  }
  // False: the other one has ended.
  [[nodiscard]] bool Await() const {
    char byte = 0;
    return read(link_, &byte, 1) == 1;
  }

 private:
  const int link_;
};

TestClient Connected(const std::string& path) {
  auto socket = base::ConnectUnix(path);
  if (!socket.ok()) _exit(2);
  return TestClient(*std::move(socket));
}

// Sends a request, which is not to be answered before the other one says so.
void ExpectLateAnswer(const TestClient& client, const wire::Frame& request,
                      const Steps& steps) {
  if (!wire::SendFrame(client.socket(), request, base::Block::kYes).ok()) {
    _exit(3);
  }
  steps.Tell();
  if (!steps.Await()) _exit(4);
  pollfd answer{client.socket(), POLLIN, 0};
  if (poll(&answer, 1, 0) != 0) _exit(5);
  steps.Tell();
  if (!wire::ReceiveFrame(client.socket(), base::Block::kYes).ok()) _exit(6);
}

wire::Frame Hello() {
  wire::Hello hello{};
  hello.protocol_min = hello.protocol_max = 1;
  wire::Frame frame;
  frame.body = *wire::Encode(hello);
  return frame;
}

class PaceTest : public ::testing::Test {
 protected:
  // Another process at `work`; it ends with 0 where that returns. It is made
  // before the daemon has threads, which may hold a lock of the allocator.
  void Begin(const std::function<void(const Steps&)>& work) {
    ASSERT_TRUE(link_.ok());
    client_ = fork();
    if (client_ == 0) {
      link_->second.reset();
      const Steps steps(link_->first.get());
      if (!steps.Await()) _exit(9);
      work(steps);
      _exit(0);
    }
    link_->first.reset();
    daemon_.emplace();
    served_.Serve(&*daemon_);
  }
  void Go(bool with_neighbour) {
    if (with_neighbour) {
      neighbour_.emplace(daemon_->Connect());
      ASSERT_EQ(neighbour_->SayHello().code, base::Code::kOk);
    }
    steps().Tell();
  }
  [[nodiscard]] Steps steps() const { return Steps(link_->second.get()); }
  // What ExpectLateAnswer expects, which is answered after `pause`.
  void AnswerAfter(base::Nanoseconds pause) {
    ASSERT_TRUE(steps().Await());
    // It would have been answered.
    for (int round = 0; round < 2; ++round) daemon_->RunOnLoop([] {});
    steps().Tell();
    ASSERT_TRUE(steps().Await());
    // Others are, meanwhile.
    EXPECT_EQ(TestClient(daemon_->Connect()).SayHello().code, base::Code::kOk);
    daemon_->Advance(pause);
  }
  void ExpectRightEnd() {
    int status = 0;
    ASSERT_EQ(waitpid(client_, &status, 0), client_);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  // Before the connection of this number: no more are accepted at once.
  static void AwaitRoomFor(uint32_t number, const Steps& steps) {
    if (number != kAcceptedAtOnce) return;
    steps.Tell();
    if (!steps.Await()) _exit(7);
  }
  // So many connections.
  [[nodiscard]] std::vector<TestClient> Crowd(uint32_t count,
                                              const Steps& steps) const {
    std::vector<TestClient> crowd;
    for (uint32_t i = 0; i < count; ++i) {
      AwaitRoomFor(i, steps);
      crowd.push_back(Connected(served_.path));
      crowd.back().SayHello();
    }
    return crowd;
  }
  void LetCrowdIn() {
    ASSERT_TRUE(steps().Await());
    daemon_->Advance(kAcceptedAtOnce * kAcceptInterval);
    steps().Tell();
  }

  const ServedFolder served_;
  std::optional<TestDaemon> daemon_;
  std::optional<TestClient> neighbour_;  // goes first
  base::Expected<std::pair<base::UniqueFd, base::UniqueFd>> link_ =
      base::SeqpacketPair();
  pid_t client_ = 0;
};

TEST_F(PaceTest, UserWhoAsksTooOftenIsAnsweredAfterAPause) {
  Begin([this](const Steps& steps) {
    TestClient asker = Connected(served_.path);
    asker.SayHello();
    for (uint32_t i = 0; i < kRequestsAtOnce; ++i) asker.Allocate(0, 0);
    wire::Frame request;
    request.verb = wire::Verb::kReleaseBuffer;
    ExpectLateAnswer(asker, request, steps);
  });
  Go(/*with_neighbour=*/true);
  AnswerAfter(kRequestPause);
  ExpectRightEnd();
}

TEST_F(PaceTest, UserWhoseConnectionsEndTooOftenWaitsWithTheNext) {
  Begin([this](const Steps& steps) {
    // Those that stay may be as many as they like.
    Crowd(kEndsAtOnce, steps).clear();
    steps.Tell();
    if (!steps.Await()) _exit(8);
    ExpectLateAnswer(Connected(served_.path), Hello(), steps);
  });
  Go(/*with_neighbour=*/true);
  LetCrowdIn();
  ASSERT_TRUE(steps().Await());
  daemon_->WaitUntil(
      [](const core::StatusReport& status) { return status.sessions == 1; });
  steps().Tell();
  AnswerAfter(kEndInterval);
  ExpectRightEnd();
}

TEST_F(PaceTest, UserWhoBreaksTheProtocolWaitsForManyEnds) {
  constexpr uint32_t kViolations = kEndsAtOnce / kEndsOfViolation + 1;
  const std::vector<std::byte> noise(500, std::byte{0xA5});
  Begin([&](const Steps& steps) {
    for (uint32_t i = 0; i < kViolations; ++i) {
      TestClient noisy = Connected(served_.path);
      if (!base::SendMessage(noisy.socket(), noise, {}, base::Block::kYes)
               .ok()) {
        _exit(8);
      }
      noisy.ExpectEnd();
    }
    ExpectLateAnswer(Connected(served_.path), Hello(), steps);
  });
  Go(/*with_neighbour=*/true);
  AnswerAfter((kViolations * kEndsOfViolation + 1 - kEndsAtOnce) *
              kEndInterval);
  ExpectRightEnd();
}

TEST_F(PaceTest, WhoIsAloneIsAsFastAsHeLikes) {
  Begin([this](const Steps& steps) {
    for (uint32_t i = 0; i <= kEndsAtOnce; ++i) {
      AwaitRoomFor(i, steps);
      Connected(served_.path).SayHello();
    }
    TestClient asker = Connected(served_.path);
    asker.SayHello();
    for (uint32_t i = 0; i <= kRequestsAtOnce; ++i) asker.Allocate(0, 0);
  });
  Go(/*with_neighbour=*/false);
  LetCrowdIn();
  ExpectRightEnd();
}

}  // namespace
}  // namespace rknnd::transport::testing
