#include "driver/rknnrt/library_file.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/posix/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::rknnrt {
namespace {

using ::testing::HasSubstr;

class LibraryFileTest : public ::testing::Test {
 protected:
  void Write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  }
  std::string Why() {
    const auto file = CheckLibraryFile(path_);
    return file.ok() ? "" : std::string(file.status().message());
  }
  static std::string Elf(uint16_t machine, uint16_t type = ET_DYN) {
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_machine = machine;
    header.e_type = type;
    return {reinterpret_cast<const char*>(&header), sizeof header};
  }
#if defined(__x86_64__)
  static constexpr uint16_t kThis = EM_X86_64, kOther = EM_AARCH64;
#else
  static constexpr uint16_t kThis = EM_AARCH64, kOther = EM_ARM;
#endif

  base::TemporaryFolder folder_ = *base::TemporaryFolder::Make();
  const std::string path_ = folder_.path() + "/librknnrt.so";
};

TEST_F(LibraryFileTest, TakesALibraryOfThisMachine) {
  Write(Elf(kThis));
  EXPECT_EQ(Why(), "");
}

TEST_F(LibraryFileTest, SaysWhatIsMissing) {
  EXPECT_THAT(Why(), HasSubstr("open the vendor's library"));
  EXPECT_TRUE(absl::IsNotFound(CheckLibraryFile(path_).status()));
}

TEST_F(LibraryFileTest, RefusesOtherFiles) {
  Write("#!/bin/sh\n" + std::string(100, 'x'));
  EXPECT_THAT(Why(), HasSubstr("it is no ELF file"));
  Write("");
  EXPECT_THAT(Why(), HasSubstr("it is no ELF file"));
  Write(Elf(kThis, ET_EXEC));
  EXPECT_THAT(Why(), HasSubstr("it is no shared library"));
}

TEST_F(LibraryFileTest, RefusesAnotherMachines) {
  Write(Elf(kOther));
  EXPECT_THAT(Why(), HasSubstr("and this machine is"));
}

TEST_F(LibraryFileTest, RefusesWhatOthersMayChange) {
  Write(Elf(kThis));
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  EXPECT_THAT(Why(), HasSubstr("others than its owner may write to it: chmod "
                               "go-w it"));
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
  EXPECT_THAT(Why(), HasSubstr("may write to its folder"));
}

TEST_F(LibraryFileTest, SeesThatItWasReplaced) {
  Write(Elf(kThis));
  const LibraryFile before = *CheckLibraryFile(path_);
  EXPECT_EQ(*CheckLibraryFile(path_), before);
  const std::string other = path_ + ".new";
  std::ofstream(other, std::ios::binary) << Elf(kThis) << "more";
  ASSERT_EQ(rename(other.c_str(), path_.c_str()), 0);

  EXPECT_FALSE(*CheckLibraryFile(path_) == before);
}

}  // namespace
}  // namespace rknnd::rknnrt
