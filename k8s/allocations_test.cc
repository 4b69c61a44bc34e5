// Folders and sockets of allocations, over restarts and what a crash leaves.

#include "k8s/allocations.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/socket.h"
#include "k8s/shares.h"

namespace rknnd::k8s {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class AllocationsTest : public ::testing::Test {
 protected:
  AllocationsTest() {
    std::string name = fs::temp_directory_path() / "rknnd-k8s-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    Reopen();
  }
  ~AllocationsTest() override { fs::remove_all(folder_); }

  void Reopen() {
    allocations_.reset();
    auto opened = Allocations::Open(folder_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    allocations_ = *std::move(opened);
  }
  // Its folder.
  std::string Make(const std::vector<uint32_t>& shares) {
    const auto made = allocations_->Make(shares, &ended_);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? (*made)->folder : "";
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& [name, allocation] : allocations_->all()) {
      names.push_back(name);
    }
    return names;
  }
  [[nodiscard]] fs::path Pods() const { return folder_ / "pods"; }
  [[nodiscard]] size_t Entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(Pods()),
                                             fs::directory_iterator()));
  }
  static mode_t ModeOf(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777U;
  }

  fs::path folder_;
  std::unique_ptr<Allocations> allocations_;
  std::vector<std::string> ended_;
};

TEST_F(AllocationsTest, HasAFolderThatNobodyFindsAndASocketThatAllMayUse) {
  const std::string folder = Make({3, 7});
  EXPECT_EQ(ModeOf(Pods()), 0700U);
  EXPECT_EQ(ModeOf(folder), 0755U);
  EXPECT_EQ(ModeOf(folder + "/session.sock"), 0666U);
  EXPECT_EQ(ModeOf(folder + ".shares"), 0600U);
  EXPECT_EQ(fs::path(folder).filename().string().size(), 32U);
  EXPECT_TRUE(base::ConnectUnix(folder + "/session.sock").ok());
  EXPECT_THAT(Names(), ElementsAre(ShareId(3)));
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(AllocationsTest, AFolderWhoseSocketsCannotBeNamedIsRefused) {
  // Path of a socket: folder, "/pods/", 32 digits, "/session.sock"; 107 at
  // most.
  constexpr size_t kLongest = 107 - 51;
  const std::string parent = folder_.string() + "/";
  ASSERT_LT(parent.size(), kLongest) << "TMPDIR is too long for this test";
  const std::string fits = parent + std::string(kLongest - parent.size(), 'x');
  const auto opened = Allocations::Open(fits + "x");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(opened.status().message()),
              HasSubstr("more than 56 the pods' sockets"));
  fs::create_directory(fits);
  const auto other = Allocations::Open(fits);
  ASSERT_TRUE(other.ok()) << other.status();
  ended_.clear();
  EXPECT_TRUE((*other)->Make({1}, &ended_).ok());
}

TEST_F(AllocationsTest, NoTwoHaveTheSameToken) {
  const std::string first = Make({1});
  EXPECT_NE(Make({1}), first);
}

TEST_F(AllocationsTest, OneEndsWhenAnyOfItsSharesIsGivenAwayAgain) {
  const std::string pair = Make({3, 7});
  const std::string other = Make({5});
  Make({7});
  EXPECT_THAT(ended_, ElementsAre(ShareId(3)));
  EXPECT_FALSE(fs::exists(pair));
  EXPECT_FALSE(fs::exists(pair + ".shares"));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_THAT(Names(), UnorderedElementsAre(ShareId(5), ShareId(7)));
}

TEST_F(AllocationsTest, ARestartFindsThemInTheirOldFolders) {
  const std::string folder = Make({3, 7});
  // As a container that has it mounted.
  const int mounted = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(mounted, 0);
  Reopen();
  ASSERT_THAT(Names(), ElementsAre(ShareId(3)));
  const Allocation& found = allocations_->all().at(ShareId(3));
  EXPECT_EQ(found.folder, folder);
  EXPECT_THAT(found.shares, ElementsAre(3U, 7U));
  const std::string inside =
      "/proc/self/fd/" + std::to_string(mounted) + "/session.sock";
  EXPECT_TRUE(base::ConnectUnix(inside).ok());
  close(mounted);
}

TEST_F(AllocationsTest, ARestartFindsThemWhileTheirOldSocketsAreStillServed) {
  const std::string folder = Make({3, 7});
  // As an rknnd that has not noticed yet that their maker has ended.
  const auto served =
      base::Duplicate(allocations_->all().at(ShareId(3)).listener.get());
  ASSERT_TRUE(served.ok());
  std::ofstream(folder + "/session.new") << "of a crash";
  Reopen();
  ASSERT_THAT(Names(), ElementsAre(ShareId(3)));
  const Allocation& found = allocations_->all().at(ShareId(3));
  EXPECT_EQ(found.folder, folder);
  const auto client = base::ConnectUnix(folder + "/session.sock");
  ASSERT_TRUE(client.ok());
  const auto accepted = base::Accept(found.listener.get());
  EXPECT_TRUE(accepted.ok() && accepted->valid());
  EXPECT_FALSE(fs::exists(folder + "/session.new"));
}

TEST_F(AllocationsTest, TwoAtATimeAreOneTooMany) {
  const std::string folder = Make({1});
  const auto second = Allocations::Open(folder_);
  EXPECT_THAT(std::string(second.status().message()),
              ::testing::HasSubstr("another rknnd-k8s"));
  EXPECT_TRUE(base::ConnectUnix(folder + "/session.sock").ok());
}

TEST_F(AllocationsTest, WhatACrashLeftHalfDoneIsTakenAway) {
  const std::string good = Make({1});
  // A folder before its record, a record's draft, records that are none, and
  // one without its folder.
  fs::create_directory(Pods() / "aa");
  std::ofstream(Pods() / "bb.shares.new") << "4\n";
  fs::create_directory(Pods() / "cc");
  std::ofstream(Pods() / "cc.shares") << "";
  fs::create_directory(Pods() / "dd");
  std::ofstream(Pods() / "dd.shares") << "2 x\n";
  std::ofstream(Pods() / "ee.shares") << "9\n";
  std::ofstream(Pods() / "ff.shares") << "999999999999\n";
  Reopen();
  EXPECT_THAT(Names(), ElementsAre(ShareId(1)));
  EXPECT_EQ(Entries(), 2U);
  EXPECT_TRUE(fs::exists(good));
}

TEST_F(AllocationsTest, TwoThatClaimTheSameShareDoNotBothHaveIt) {
  Make({1});
  fs::create_directory(Pods() / "0twin");
  std::ofstream(Pods() / "0twin.shares") << "1 2\n";
  Reopen();
  EXPECT_EQ(allocations_->all().size(), 1U);
  EXPECT_EQ(Entries(), 2U);
}

TEST_F(AllocationsTest, AFolderThatCannotBeMadeIsAnErrorThatNamesIt) {
  const auto opened = Allocations::Open(folder_ / "none");
  EXPECT_THAT(std::string(opened.status().message()),
              ::testing::HasSubstr("none/pods"));
}

}  // namespace
}  // namespace rknnd::k8s
