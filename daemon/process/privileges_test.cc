// Tests of giving root up. Each works on a process of its own, which tells what
// became of it; those that need root skip where there is none.

#include "daemon/process/privileges.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace rknnd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Of every Debian system.
constexpr char kUser[] = "nobody";

// What `body` says, run in a child.
std::string InChild(const std::function<std::string()>& body) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return "pipe2 failed";
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = body();
    const bool written = write(ends[1], text.data(), text.size()) ==
                         static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> room{};
  for (ssize_t size = 0;
       (size = read(ends[0], room.data(), room.size())) > 0;) {
    text.append(room.data(), static_cast<size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) {
    return absl::StrCat("child ended with ", status, ": ", text);
  }
  return text;
}

std::string Drop(const PrivilegeOptions& options,
                 const std::function<std::string(Privileges&)>& between) {
  absl::StatusOr<Privileges> privileges = Privileges::Prepare(options);
  if (!privileges.ok()) return std::string(privileges.status().message());
  return between(*privileges);
}

std::string StatusOfThread() {
  std::ifstream file("/proc/thread-self/status");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A thread that was there before the drop, and tells what it may afterwards.
class EarlyThread {
 public:
  EarlyThread() : thread_([this] { Run(); }) {}

  std::string Status() {
    {
      const std::lock_guard lock(mutex_);
      asked_ = true;
    }
    changed_.notify_one();
    thread_.join();
    return status_;
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return asked_; });
    status_ = StatusOfThread();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;
  std::string status_;
  std::thread thread_;
};

class PrivilegesTest : public ::testing::Test {
 protected:
  PrivilegesTest() {
    std::string name = std::filesystem::temp_directory_path() / "rknnd-XXXXXX";
    root_ = mkdtemp(name.data());
    // The user must be able to reach what is in it.
    chmod(root_.c_str(), 0755);
  }
  ~PrivilegesTest() override {
    std::error_code error;
    std::filesystem::remove_all(root_, error);
  }

  [[nodiscard]] std::string Path(const std::string& name) const {
    return root_ + "/" + name;
  }
  static uid_t OwnerOf(const std::string& path) {
    struct stat now {};
    return lstat(path.c_str(), &now) == 0 ? now.st_uid : -1;
  }
  static uid_t Nobody() { return getpwnam(kUser)->pw_uid; }

 private:
  std::string root_;
};

// What only root can show.
class RootPrivilegesTest : public PrivilegesTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root has something to give up";
    const std::string may = InChild([] {
      return setresuid(Nobody(), Nobody(), Nobody()) == 0 &&
                     prctl(PR_CAPBSET_READ, 8, 0, 0, 0) == 1
                 ? std::string("yes")
                 : std::string("no");
    });
    if (may != "yes") {
      GTEST_SKIP() << "this root may not become user '" << kUser << "'";
    }
  }
};

TEST_F(PrivilegesTest, WithoutAUserNothingIsDroppedButGaining) {
  const std::string said = InChild([&] {
    return Drop({"", {Path("state"), ""}}, [](Privileges& privileges) {
      const absl::Status status = privileges.Drop();
      return absl::StrCat(status.ToString(), " ", privileges.Describe(), " ",
                          geteuid(), " ", StatusOfThread());
    });
  });
  EXPECT_THAT(said, HasSubstr(absl::StrCat("OK  ", geteuid(), " ")));
  EXPECT_THAT(said, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_EQ(OwnerOf(Path("state")), geteuid());
}

TEST_F(PrivilegesTest, WhoIsNotRootStaysWhoItIs) {
  if (geteuid() == 0) GTEST_SKIP() << "needs a user who is not root";
  EXPECT_EQ(InChild([] {
              return Drop({"root", {}}, [](Privileges& privileges) {
                return absl::StrCat(privileges.Drop().ToString(), " ",
                                    geteuid());
              });
            }),
            absl::StrCat("OK ", geteuid()));
}

TEST_F(PrivilegesTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(Path("file")) << "x";
  EXPECT_THAT(InChild([&] {
                return Drop({"", {Path("file/state")}},
                            [](Privileges&) { return std::string("made"); });
              }),
              AllOf(HasSubstr("mkdir"), HasSubstr("file/state")));
}

TEST_F(PrivilegesTest, FoldersAreMadeWithThoseAboveThem) {
  for (const char* name : {"a/b/cache", "c/d/state/"}) {
    EXPECT_EQ(InChild([&] {
                return Drop({"", {Path(name)}},
                            [](Privileges&) { return std::string("made"); });
              }),
              "made");
    struct stat status {};
    ASSERT_EQ(stat(Path(name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0700U);
  }
}

TEST_F(RootPrivilegesTest, AllThreadsLoseEverything) {
  const std::string said = InChild([] {
    return Drop({kUser, {}}, [](Privileges& privileges) {
      EarlyThread early;
      const absl::Status status = privileges.Drop();
      if (!status.ok()) return status.ToString();
      return early.Status();
    });
  });
  const std::string uid = absl::StrCat(Nobody());
  EXPECT_THAT(said, HasSubstr(absl::StrCat("Uid:\t", uid, "\t", uid, "\t", uid,
                                           "\t", uid)));
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_THAT(said, HasSubstr(absl::StrCat(set, ":\t0000000000000000\n")));
  }
  EXPECT_THAT(said, HasSubstr("NoNewPrivs:\t1"));
}

TEST_F(RootPrivilegesTest, ThereIsNoWayBack) {
  EXPECT_EQ(InChild([] {
              return Drop({kUser, {}}, [](Privileges& privileges) {
                const absl::Status status = privileges.Drop();
                if (!status.ok()) return status.ToString();
                const bool back =
                    setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0 ||
                    open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0;
                return std::string(back ? "is back" : "stays out");
              });
            }),
            "stays out");
}

TEST_F(RootPrivilegesTest, WhatIsOpenStaysUsableAndFilesGoToTheUser) {
  const std::string folder = Path("state");
  const std::string root_only = Path("root-only");
  std::ofstream(root_only) << "secret";
  chmod(root_only.c_str(), 0600);
  EXPECT_EQ(InChild([&] {
              return Drop({kUser, {folder}}, [&](Privileges& privileges) {
                const int open_before =
                    open(root_only.c_str(), O_RDONLY | O_CLOEXEC);
                std::ofstream(folder + "/model") << "made as root";
                const absl::Status status = privileges.Drop();
                if (!status.ok()) return status.ToString();
                std::array<char, 6> text{};
                if (read(open_before, text.data(), text.size()) != 6) {
                  return std::string("an open file is lost");
                }
                std::ofstream(folder + "/model") << "written as the user";
                std::ofstream more(folder + "/more");
                return std::string(more ? "good" : "folder is not writable");
              });
            }),
            "good");
  EXPECT_EQ(OwnerOf(folder), Nobody());
  EXPECT_EQ(OwnerOf(folder + "/model"), Nobody());
  EXPECT_EQ(std::filesystem::file_size(folder + "/model"), 19U);
  EXPECT_EQ(OwnerOf(root_only), 0U);
}

TEST_F(RootPrivilegesTest, LinksInTheFolderGiveNothingAway) {
  const std::string folder = Path("rknnd");
  const std::string theirs = Path("passwords");
  std::ofstream(theirs) << "root's";
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink(theirs, folder + "/symlink");
  std::filesystem::create_hard_link(theirs, folder + "/hardlink");
  EXPECT_EQ(InChild([&] {
              return Drop({kUser, {folder}}, [](Privileges& privileges) {
                return privileges.Drop().ToString();
              });
            }),
            "OK");
  EXPECT_EQ(OwnerOf(folder), Nobody());
  EXPECT_EQ(OwnerOf(theirs), 0U);
  EXPECT_EQ(OwnerOf(folder + "/symlink"), 0U);
}

TEST_F(RootPrivilegesTest, AFolderOfRootsOfAnotherNameIsNotGivenAway) {
  const std::string folder = Path("lib");
  std::filesystem::create_directory(folder);
  EXPECT_THAT(InChild([&] {
                return Drop({kUser, {folder}},
                            [](Privileges&) { return std::string("taken"); });
              }),
              AllOf(HasSubstr(folder), HasSubstr("belongs to uid 0"),
                    HasSubstr("chown -R nobody")));
  EXPECT_EQ(OwnerOf(folder), 0U);
}

TEST_F(RootPrivilegesTest, AUserThatIsMissingIsNamed) {
  EXPECT_THAT(
      InChild([] {
        return Drop({"rknnd-no-such-user", {}},
                    [](Privileges&) { return std::string("prepared"); });
      }),
      AllOf(HasSubstr("'rknnd-no-such-user'"), HasSubstr("[service] user")));
}

TEST_F(RootPrivilegesTest, RootIsNobodyToBecome) {
  for (const char* name : {"root", "0"}) {
    EXPECT_THAT(InChild([&] {
                  return Drop({name, {}}, [](Privileges&) {
                    return std::string("prepared");
                  });
                }),
                HasSubstr("which is root"));
  }
}

TEST_F(RootPrivilegesTest, AUserMayBeANumber) {
  EXPECT_THAT(InChild([] {
                return Drop({absl::StrCat(Nobody()), {}},
                            [](Privileges& privileges) {
                              return privileges.Describe();
                            });
              }),
              HasSubstr("'nobody'"));
}

// The kernel then keeps capabilities over a change of user.
TEST_F(RootPrivilegesTest, CapabilitiesThatAThreadKeepsAreAnError) {
  EXPECT_THAT(
      InChild([] {
        if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) != 0) {
          return absl::StrCat("prctl: ", errno);
        }
        return Drop({kUser, {}}, [](Privileges& privileges) {
          return std::string(privileges.Drop().message());
        });
      }),
      AllOf(HasSubstr("become user 'nobody'"), Not(HasSubstr("prctl"))));
}

// Its bounding set and no_new_privs were its own affair.
TEST_F(RootPrivilegesTest, AThreadFromBeforePrepareIsAnError) {
  EXPECT_THAT(InChild([] {
                EarlyThread early;
                const std::string said =
                    Drop({kUser, {}}, [](Privileges& privileges) {
                      return std::string(privileges.Drop().message());
                    });
                early.Status();
                return said;
              }),
              HasSubstr("kept more than the user has"));
}

}  // namespace
}  // namespace rknnd
