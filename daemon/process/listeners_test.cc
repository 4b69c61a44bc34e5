// Tests of which sockets are served, and of the names they leave behind.

#include "daemon/process/listeners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/values/sha256.h"
#include "daemon/runtime.h"
#include "daemon/transport/session/testing/recorded_lines.h"

namespace rknnd {
namespace {

using transport::testing::RecordedLines;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class ListenersTest : public ::testing::Test {
 protected:
  ListenersTest() {
    RuntimeOptions options;
    options.device = "soft";
    options.log = &log_;
    auto runtime = Runtime::Create(options);
    EXPECT_TRUE(runtime.ok()) << runtime.status();
    if (runtime.ok()) runtime_ = *std::move(runtime);
    log_.lines.clear();
    config_.socket = folder_.path() + "/run/session.sock";
    admin_ = folder_.path() + "/run/admin.sock";
  }

  FdStore Store(bool keeps) {
    if (!keeps) return FdStore(nullptr, FdStore::Limits(), &log_);
    return FdStore(
        [this](const std::string& state, std::span<const int> fds) {
          const std::string name = state.substr(state.find("FDNAME=") + 7);
          if (fds.empty()) {
            kept_.erase(name);
          } else {
            kept_[name] = *base::Duplicate(fds[0]);
          }
        },
        FdStore::Limits(), &log_);
  }
  std::vector<PassedFd> Kept() const {
    std::vector<PassedFd> passed;
    for (const auto& [name, fd] : kept_) {
      passed.push_back({*base::Duplicate(fd.get()), name});
    }
    return passed;
  }
  absl::Status Listen(Listeners& listeners, std::vector<PassedFd> sockets = {},
                      std::vector<PassedFd> own = {}) {
    return listeners.Listen(config_, std::move(sockets), std::move(own),
                            runtime_->server());
  }
  static bool Exists(const std::string& path) {
    struct stat file {};
    return lstat(path.c_str(), &file) == 0;
  }
  static ino_t Inode(const std::string& path) {
    struct stat file {};
    return lstat(path.c_str(), &file) == 0 ? file.st_ino : 0;
  }
  static mode_t Mode(const std::string& path) {
    struct stat file {};
    return lstat(path.c_str(), &file) == 0 ? file.st_mode & 0777 : 0;
  }

  // That we may give a file to, and that is not ours; nullopt: there is none.
  static std::optional<uint32_t> OtherGroup() {
    if (geteuid() == 0) return 12;
    std::vector<gid_t> groups(
        static_cast<size_t>(std::max(0, getgroups(0, nullptr))));
    const int count = getgroups(static_cast<int>(groups.size()), groups.data());
    for (int i = 0; i < count; ++i) {
      if (groups[static_cast<size_t>(i)] != getegid()) {
        return groups[static_cast<size_t>(i)];
      }
    }
    return std::nullopt;
  }

  base::TemporaryFolder folder_ = *base::TemporaryFolder::Make();
  RecordedLines log_;
  std::unique_ptr<Runtime> runtime_;
  Config config_;
  std::string admin_;
  std::map<std::string, base::UniqueFd> kept_;
};

TEST_F(ListenersTest, NamesAreMadeWithTheirModesAndRemovedAtTheEnd) {
  FdStore store = Store(false);
  config_.socket_mode = 0666;
  {
    Listeners listeners(&store, &log_);
    ASSERT_EQ(Listen(listeners), absl::OkStatus());
    EXPECT_EQ(Mode(config_.socket), 0666U);
    EXPECT_EQ(Mode(admin_), 0600U);
    EXPECT_TRUE(base::ConnectUnix(config_.socket).ok());
    EXPECT_TRUE(base::ConnectUnix(admin_).ok());
  }
  EXPECT_FALSE(Exists(config_.socket));
  EXPECT_FALSE(Exists(admin_));
}

TEST_F(ListenersTest, NameThatIsASuccessorsByNowStays) {
  FdStore store = Store(false);
  std::optional<base::UniqueFd> successor;
  {
    Listeners listeners(&store, &log_);
    ASSERT_EQ(Listen(listeners), absl::OkStatus());
    ASSERT_EQ(unlink(config_.socket.c_str()), 0);
    successor = *base::ListenUnix(config_.socket, 0660);
  }
  EXPECT_TRUE(base::ConnectUnix(config_.socket).ok());
  EXPECT_FALSE(Exists(admin_)) << "which nobody else took";
}

TEST_F(ListenersTest, SocketBelongsToTheGroupItIsFor) {
  FdStore store = Store(false);
  config_.socket_group = config_.admin_group = getgid();
  Listeners listeners(&store, &log_);
  ASSERT_EQ(Listen(listeners), absl::OkStatus());
  struct stat file {};
  ASSERT_EQ(lstat(config_.socket.c_str(), &file), 0);
  EXPECT_EQ(file.st_gid, getgid());
  EXPECT_EQ(Mode(config_.socket), 0660U);
  EXPECT_TRUE(base::ConnectUnix(config_.socket).ok());
  EXPECT_FALSE(Exists(config_.socket + ".new"));

  Listeners second(&store, &log_);
  const absl::Status refused = Listen(second);
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("somebody listens"));
}

TEST_F(ListenersTest, SocketsOfUnitsAreServedAndNoNamesMade) {
  FdStore store = Store(true);
  const std::string path = folder_.path() + "/units.sock";
  base::UniqueFd fd = *base::ListenUnix(path, 0660);
  std::vector<PassedFd> passed;
  passed.push_back({std::move(fd), "rknnd.socket"});
  {
    Listeners listeners(&store, &log_);
    ASSERT_EQ(Listen(listeners, std::move(passed)), absl::OkStatus());
    EXPECT_FALSE(Exists(config_.socket));
    ASSERT_THAT(log_.lines, SizeIs(1));
    EXPECT_THAT(log_.lines[0], HasSubstr("rknnd-admin.socket"));
  }
  EXPECT_TRUE(Exists(path)) << "the unit's";
  EXPECT_THAT(kept_, IsEmpty());
}

TEST_F(ListenersTest, SocketThatIsKeptIsTheSameAfterARestart) {
  FdStore store = Store(true);
  {
    Listeners first(&store, &log_);
    ASSERT_EQ(Listen(first), absl::OkStatus());
  }
  runtime_->server().StopListening();
  ASSERT_THAT(kept_, SizeIs(2));
  const ino_t inode = Inode(config_.socket);
  ASSERT_NE(inode, 0U) << "who connects meanwhile waits there";
  EXPECT_TRUE(base::ConnectUnix(config_.socket).ok());

  const auto sorted = SortFds(Kept(), store, log_);
  ASSERT_TRUE(sorted.ok());
  EXPECT_THAT(sorted->own, SizeIs(2));
  RuntimeOptions options;
  options.device = "soft";
  runtime_ = std::move(Runtime::Create(options)).value();
  Listeners second(&store, &log_);
  auto again = SortFds(Kept(), store, log_);
  ASSERT_EQ(Listen(second, {}, std::move(again->own)), absl::OkStatus());
  EXPECT_EQ(Inode(config_.socket), inode);
  EXPECT_THAT(kept_, SizeIs(2));
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(ListenersTest, KeptSocketTakesTheModeAndGroupOfAChangedConfiguration) {
  FdStore store = Store(true);
  {
    Listeners first(&store, &log_);
    ASSERT_EQ(Listen(first), absl::OkStatus());
  }
  runtime_->server().StopListening();
  const ino_t inode = Inode(config_.socket);
  ASSERT_EQ(Mode(config_.socket), 0660U);
  const std::optional<uint32_t> other = OtherGroup();
  config_.socket_mode = 0600;
  config_.socket_group = other;
  RuntimeOptions options;
  options.device = "soft";
  for (const gid_t group : {other.value_or(getegid()), getegid()}) {
    runtime_ = std::move(Runtime::Create(options)).value();
    Listeners next(&store, &log_);
    auto sorted = SortFds(Kept(), store, log_);
    ASSERT_EQ(Listen(next, {}, std::move(sorted->own)), absl::OkStatus());
    EXPECT_EQ(Inode(config_.socket), inode);
    EXPECT_EQ(Mode(config_.socket), 0600U);
    struct stat file {};
    ASSERT_EQ(lstat(config_.socket.c_str(), &file), 0);
    EXPECT_EQ(file.st_gid, group);
    runtime_->server().StopListening();
    // None any more: its own again.
    config_.socket_group.reset();
  }
}

TEST_F(ListenersTest, KeptSocketWhoseNameHasGoneIsMadeAgain) {
  FdStore store = Store(true);
  {
    Listeners first(&store, &log_);
    ASSERT_EQ(Listen(first), absl::OkStatus());
  }
  const auto before = kept_.begin()->first;
  runtime_->server().StopListening();
  std::filesystem::remove_all(folder_.path() + "/run");
  RuntimeOptions options;
  options.device = "soft";
  runtime_ = std::move(Runtime::Create(options)).value();
  Listeners second(&store, &log_);
  auto sorted = SortFds(Kept(), store, log_);
  ASSERT_EQ(Listen(second, {}, std::move(sorted->own)), absl::OkStatus());
  EXPECT_TRUE(base::ConnectUnix(config_.socket).ok());
  EXPECT_THAT(kept_, SizeIs(2)) << "the old ones are let go";
}

TEST_F(ListenersTest, WhatIsPassedIsSortedAndTheUnknownClosed) {
  FdStore store = Store(true);
  const std::string path = folder_.path() + "/units.sock";
  const std::string model = "model-" + base::ToHex(core::ModelId{});
  std::vector<PassedFd> passed;
  passed.push_back({*base::ListenUnix(path, 0660), "rknnd.socket"});
  passed.push_back({*base::MakeMemfd("m", 1), model});
  passed.push_back({*base::MakeMemfd("x", 1), "something"});
  const auto sorted = SortFds(std::move(passed), store, log_);
  ASSERT_TRUE(sorted.ok()) << sorted.status();
  EXPECT_THAT(sorted->sockets, SizeIs(1));
  EXPECT_THAT(sorted->models, SizeIs(1));
  EXPECT_THAT(sorted->own, IsEmpty());
  EXPECT_THAT(log_.lines,
              ElementsAre(StartsWith("file descriptor 'something'")));
}

TEST_F(ListenersTest, UnitsSocketOfTheWrongKindIsAnErrorThatNamesIt) {
  FdStore store = Store(true);
  std::vector<PassedFd> passed;
  passed.push_back({*base::ListenUnix(folder_.path() + "/stream.sock", 0660,
                                      base::UnixKind::kStream),
                    "rknnd.socket"});
  const auto sorted = SortFds(std::move(passed), store, log_);
  ASSERT_FALSE(sorted.ok());
  EXPECT_THAT(std::string(sorted.status().message()),
              HasSubstr("'rknnd.socket'"));
  EXPECT_THAT(std::string(sorted.status().message()),
              HasSubstr("ListenSequentialPacket="));
}

}  // namespace
}  // namespace rknnd
