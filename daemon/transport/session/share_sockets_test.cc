// Share sockets: who comes in by one has its share, no more than its share's
// room before Hello, and goes when it is taken back.

#include "daemon/transport/session/share_sockets.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "daemon/transport/session/testing/test_daemon.h"

namespace rknnd::transport::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kSocketModel[] = "a model";

std::string ErrorOf(const wire::Frame& reply) {
  const auto error = wire::Decode<wire::Error>(reply.body);
  return error.ok() ? std::string(error->message) : "no error";
}

class ShareSocketsTest : public ::testing::Test {
 protected:
  ShareSocketsTest() {
    std::string name =
        (std::filesystem::temp_directory_path() / "rknnd-sockets-XXXXXX");
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~ShareSocketsTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string Path(const std::string& name) const {
    return folder_ / name;
  }
  base::UniqueFd Listen(const std::string& name) {
    auto listener = base::ListenUnix(Path(name), 0600);
    EXPECT_TRUE(listener.ok());
    return listener.ok() ? *std::move(listener) : base::UniqueFd();
  }
  static wire::ShareSocket ShareSocketNamed(const std::string& name) {
    wire::ShareSocket share_socket{};
    wire::SetText(share_socket.name, name);
    return share_socket;
  }
  static wire::Frame Open(TestClient& admin,
                          const wire::ShareSocket& share_socket,
                          base::UniqueFd listener) {
    std::vector<base::UniqueFd> fds;
    if (listener.valid()) fds.push_back(std::move(listener));
    return admin.Call(wire::Verb::kOpenShareSocket, share_socket,
                      std::move(fds));
  }
  static wire::Frame Close(TestClient& admin, const std::string& name) {
    wire::CloseShareSocket share_socket{};
    wire::SetText(share_socket.name, name);
    return admin.Call(wire::Verb::kCloseShareSocket, share_socket);
  }
  TestClient Operator() {
    TestClient admin(daemon_.Connect(true));
    EXPECT_EQ(admin.SayHello().code, base::Code::kOk);
    return admin;
  }
  TestClient Enter(const std::string& name) {
    auto socket = base::ConnectUnix(Path(name));
    EXPECT_TRUE(socket.ok());
    return TestClient(socket.ok() ? *std::move(socket) : base::UniqueFd());
  }
  // As a report has it.
  std::vector<std::string> Allocations() {
    std::vector<std::string> names;
    daemon_.RunOnLoop([&] {
      for (const core::SessionReport& one : daemon_.service().Sessions()) {
        if (one.peer.allocation != nullptr) {
          names.push_back(one.peer.allocation->name + ":" +
                          std::to_string(one.share.weight));
        }
      }
    });
    return names;
  }

  std::filesystem::path folder_;
  TestDaemon daemon_;
};

TEST_F(ShareSocketsTest, WhoComesInByOneHasItsShareAndRuns) {
  TestClient admin = Operator();
  wire::ShareSocket share_socket = ShareSocketNamed("pod-1");
  share_socket.weight = 250;
  const wire::Frame opened = Open(admin, share_socket, Listen("a"));
  ASSERT_EQ(opened.code, base::Code::kOk) << ErrorOf(opened);
  TestClient client = Enter("a");
  ASSERT_EQ(client.SayHello().code, base::Code::kOk);
  client.MakeReady(1);
  EXPECT_EQ(client.RunOnce(1), base::Code::kOk);
  EXPECT_THAT(Allocations(), ::testing::ElementsAre("pod-1:250"));
}

TEST_F(ShareSocketsTest, OnlyOperatorsOpenAndCloseThem) {
  TestClient client(daemon_.Connect());
  ASSERT_EQ(client.SayHello().code, base::Code::kOk);
  EXPECT_EQ(Open(client, ShareSocketNamed("mine"), Listen("a")).code,
            base::Code::kPermissionDenied);
  EXPECT_EQ(Close(client, "mine").code, base::Code::kPermissionDenied);
}

TEST_F(ShareSocketsTest, WhoCameInByOneIsNoOperator) {
  TestClient admin = Operator();
  ASSERT_EQ(Open(admin, ShareSocketNamed("pod"), Listen("a")).code,
            base::Code::kOk);
  TestClient client = Enter("a");
  ASSERT_EQ(client.SayHello().code, base::Code::kOk);
  EXPECT_EQ(client.Call(wire::Verb::kDrain, wire::Empty{}).code,
            base::Code::kPermissionDenied);
}

TEST_F(ShareSocketsTest, WhoCameInByOneHasNoMemoryByItsAddress) {
  TestClient admin = Operator();
  ASSERT_EQ(Open(admin, ShareSocketNamed("pod"), Listen("a")).code,
            base::Code::kOk);
  TestClient client = Enter("a");
  ASSERT_EQ(client.SayHello().code, base::Code::kOk);
  wire::ImportPhysical request{};
  request.buffer = 1;
  request.size = 4096;
  const wire::Frame refused = client.Call(wire::Verb::kImportPhysical, request);
  EXPECT_EQ(refused.code, base::Code::kPermissionDenied);
  EXPECT_THAT(ErrorOf(refused), HasSubstr("not for share 'pod'"));
}

TEST_F(ShareSocketsTest, ABadNameOrWeightIsRefusedAndNamed) {
  TestClient admin = Operator();
  int file = 0;  // its own each time: what was refused is closed a bit later
  for (const std::string& name : {std::string(), std::string("../a"),
                                  std::string("a\nb"), std::string(65, 'a')}) {
    const wire::Frame reply =
        Open(admin, ShareSocketNamed(name), Listen(std::to_string(++file)));
    EXPECT_EQ(reply.code, base::Code::kInvalidArgument) << name;
    EXPECT_THAT(ErrorOf(reply), HasSubstr("a share socket's name"));
  }
  wire::ShareSocket heavy = ShareSocketNamed("heavy");
  heavy.weight = 1001;
  EXPECT_THAT(ErrorOf(Open(admin, heavy, Listen("heavy"))),
              HasSubstr("weight of 1001"));
}

TEST_F(ShareSocketsTest, WhatIsNoListenerIsRefused) {
  TestClient admin = Operator();
  EXPECT_THAT(ErrorOf(Open(admin, ShareSocketNamed("none"), base::UniqueFd())),
              HasSubstr("without its listening socket"));
  base::UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(ErrorOf(Open(admin, ShareSocketNamed("file"), std::move(file))),
              HasSubstr("must be a listening Unix socket"));
  auto pair = base::SeqpacketPair();
  ASSERT_TRUE(pair.ok());
  EXPECT_THAT(ErrorOf(Open(admin, ShareSocketNamed("connected"),
                           std::move(pair->first))),
              HasSubstr("must be a listening Unix socket"));
  auto stream = base::ListenUnix(Path("stream"), 0600, base::UnixKind::kStream);
  ASSERT_TRUE(stream.ok());
  EXPECT_THAT(
      ErrorOf(Open(admin, ShareSocketNamed("stream"), *std::move(stream))),
      HasSubstr("of another kind"));
}

TEST_F(ShareSocketsTest, TheEndOfItsMakerShutsItAndLeavesWhoIsIn) {
  auto admin = std::make_unique<TestClient>(Operator());
  ASSERT_EQ(Open(*admin, ShareSocketNamed("pod"), Listen("a")).code,
            base::Code::kOk);
  TestClient client = Enter("a");
  ASSERT_EQ(client.SayHello().code, base::Code::kOk);
  client.MakeReady(1);
  admin.reset();
  daemon_.WaitUntil(
      [](const core::StatusReport& status) { return status.sessions == 1; });
  EXPECT_EQ(base::ConnectUnix(Path("a")).error().code,
            base::Code::kUnavailable);
  EXPECT_EQ(client.RunOnce(1), base::Code::kOk);
}

TEST_F(ShareSocketsTest, TakenBackItDisconnectsWhoCameInAndNobodyElse) {
  TestClient admin = Operator();
  ASSERT_EQ(Open(admin, ShareSocketNamed("one"), Listen("a")).code,
            base::Code::kOk);
  ASSERT_EQ(Open(admin, ShareSocketNamed("two"), Listen("b")).code,
            base::Code::kOk);
  TestClient one = Enter("a"), two = Enter("b");
  ASSERT_EQ(one.SayHello().code, base::Code::kOk);
  ASSERT_EQ(two.SayHello().code, base::Code::kOk);
  ASSERT_EQ(Close(admin, "one").code, base::Code::kOk);
  one.ExpectEnd();
  EXPECT_EQ(base::ConnectUnix(Path("a")).error().code,
            base::Code::kUnavailable);
  EXPECT_EQ(two.CreateContext(1, kSocketModel), base::Code::kNotFound);
}

TEST_F(ShareSocketsTest, AnotherOneOfTheSameNameTakesItsPlace) {
  TestClient first = Operator(), second = Operator();
  ASSERT_EQ(Open(first, ShareSocketNamed("pod"), Listen("a")).code,
            base::Code::kOk);
  ASSERT_EQ(Open(second, ShareSocketNamed("pod"), Listen("b")).code,
            base::Code::kOk);
  EXPECT_EQ(base::ConnectUnix(Path("a")).error().code,
            base::Code::kUnavailable);
  // The end of the first one's maker does not shut the second.
  first.Close();
  daemon_.WaitUntil(
      [](const core::StatusReport& status) { return status.sessions == 1; });
  EXPECT_EQ(Enter("b").SayHello().code, base::Code::kOk);
}

TEST_F(ShareSocketsTest, PendingOnesOfOneSocketLeaveRoomForOthers) {
  TestClient admin = Operator();
  ASSERT_EQ(Open(admin, ShareSocketNamed("pod"), Listen("a")).code,
            base::Code::kOk);
  std::vector<TestClient> silent;
  for (size_t i = 0; i < ServerLimits().pending_of_socket; ++i) {
    silent.push_back(Enter("a"));
  }
  TestClient one_more = Enter("a");
  silent[0].ExpectEnd();
  EXPECT_EQ(one_more.SayHello().code, base::Code::kOk);
  EXPECT_EQ(silent[1].SayHello().code, base::Code::kOk);
  TestClient other(daemon_.Connect());
  EXPECT_EQ(other.SayHello().code, base::Code::kOk);
}

TEST_F(ShareSocketsTest, AConnectionHasNoMoreThanItMay) {
  TestClient admin = Operator();
  for (size_t i = 0; i < ShareSocketRequests::kMost; ++i) {
    const std::string name = "d" + std::to_string(i);
    ASSERT_EQ(Open(admin, ShareSocketNamed(name), Listen(name)).code,
              base::Code::kOk);
  }
  const wire::Frame refused =
      Open(admin, ShareSocketNamed("more"), Listen("more"));
  EXPECT_EQ(refused.code, base::Code::kResourceExhausted);
  ASSERT_EQ(Close(admin, "d0").code, base::Code::kOk);
  EXPECT_EQ(Open(admin, ShareSocketNamed("more"), Listen("again")).code,
            base::Code::kOk);
}

TEST_F(ShareSocketsTest, NoneIsOpenedOnceTheDaemonStops) {
  TestClient admin = Operator();
  daemon_.RunOnLoop([&] { daemon_.server().StopListening(); });
  EXPECT_EQ(Open(admin, ShareSocketNamed("late"), Listen("a")).code,
            base::Code::kUnavailable);
}

}  // namespace
}  // namespace rknnd::transport::testing
