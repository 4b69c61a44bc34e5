// A session's way to its daemon: who may use the socket, and what the owner is
// called for when the daemon is gone and when it is back.

#include "client/session/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/posix/socket.h"
#include "client/session/fake_daemon.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;
using testing::ElementsAre;
using testing::HasSubstr;

class LinkTest : public testing::Test {
 protected:
  LinkTest() {
    options_.dial = [path = daemon_.path()]() -> Expected<base::UniqueFd> {
      auto socket = base::ConnectUnix(path);
      if (socket.ok()) return socket;
      return Error{Code::kUnavailable, "nobody is there"};
    };
    options_.name = "the test's daemon";
  }

  void Open() {
    link_ = std::make_unique<SessionLink>(
        options_,
        SessionLink::Restoring{
            .absent = [this] { calls_.emplace_back("absent"); },
            .replay = [this](Connection&) -> Expected<void> {
              calls_.emplace_back("replay");
              if (refusals_-- > 0) return Error{Code::kInternal, "not yet"};
              return {};
            },
            .resume =
                [this](const std::shared_ptr<Connection>&) {
                  calls_.emplace_back("resume");
                },
            .give_up =
                [this](const Error&) { calls_.emplace_back("give up"); }});
  }

  Expected<void> Ask() {
    return link_->Ask([](Connection&) -> Expected<void> { return {}; });
  }

  FakeDaemon daemon_{testing::TempDir() + "link_test." +
                     std::to_string(getpid()) + ".sock"};
  SessionOptions options_;
  std::unique_ptr<SessionLink> link_;
  std::vector<std::string> calls_;
  int refusals_ = 0;
};

TEST_F(LinkTest, OneThreadAtATimeHasAccess) {
  Open();
  {
    const SocketAccess first(*link_, 0);
    const SocketAccess second(*link_, 0);
    EXPECT_TRUE(first.granted());
    EXPECT_FALSE(second.granted());
  }
  const SocketAccess third(*link_, 0);
  EXPECT_TRUE(third.granted());
}

TEST_F(LinkTest, DaemonThatIsNotThereIsNotWaitedForAtTheBegin) {
  daemon_.Stop();
  Open();

  const auto connection = link_->ConnectFirst();

  ASSERT_FALSE(connection.ok());
  EXPECT_EQ(connection.error().code, Code::kUnavailable);
  EXPECT_EQ(connection.error().message, "nobody is there");
  EXPECT_THAT(calls_, ElementsAre());
}

TEST_F(LinkTest, OwnerReplaysBeforeItResumes) {
  Open();
  ASSERT_TRUE(link_->ConnectFirst().ok());
  daemon_.Stop();
  daemon_.Start();

  ASSERT_TRUE(Ask().ok());

  EXPECT_THAT(calls_, ElementsAre("absent", "replay", "resume"));
  EXPECT_NE(link_->Current(), nullptr);
}

TEST_F(LinkTest, ReplayThatFailsIsDoneAgainWithAnotherConnection) {
  Open();
  ASSERT_TRUE(link_->ConnectFirst().ok());
  daemon_.Stop();
  daemon_.Start();
  refusals_ = 2;

  ASSERT_TRUE(Ask().ok());

  EXPECT_THAT(calls_,
              ElementsAre("absent", "replay", "replay", "replay", "resume"));
}

TEST_F(LinkTest, DaemonThatStaysAwayIsGivenUp) {
  options_.rebuild_bound = 0;
  Open();
  ASSERT_TRUE(link_->ConnectFirst().ok());
  daemon_.Stop();

  const Expected<void> asked = Ask();

  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code, Code::kUnavailable);
  EXPECT_THAT(asked.error().message, HasSubstr("was not restored"));
  EXPECT_THAT(calls_, ElementsAre("absent", "give up"));
  EXPECT_EQ(link_->Current(), nullptr);
}

TEST_F(LinkTest, WhatEndsWithTheDaemonIsGivenBackWithoutIt) {
  Open();
  ASSERT_TRUE(link_->ConnectFirst().ok());
  daemon_.Stop();
  // Found gone by a request that fails.
  bool called = false;

  const Expected<void> done =
      link_->GiveBack([&](Connection* connection) -> Expected<void> {
        called = true;
        if (connection == nullptr || !connection->Look().alive) return {};
        return Error{Code::kInternal, "the daemon is there"};
      });

  EXPECT_TRUE(done.ok());
  EXPECT_TRUE(called);
  EXPECT_THAT(calls_, ElementsAre());
}

}  // namespace
}  // namespace rknnd::client
