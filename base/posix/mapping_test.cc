#include "base/posix/mapping.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/posix/memfd.h"
#include "base/posix/testing/no_mappings.h"
#include "base/posix/unique_fd.h"

namespace rknnd::base {
namespace {

constexpr size_t kPages = 16;

size_t Page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

uint64_t BytesAllocated(int fd) {
  struct stat status = {};
  fstat(fd, &status);
  return static_cast<uint64_t>(status.st_blocks) * 512;
}

TEST(MappingTest, TwoMappingsOfOneFileShareItsBytes) {
  const Expected<UniqueFd> fd = MakeMemfd("shared", kPages * Page());
  ASSERT_TRUE(fd.ok());
  const Expected<Mapping> writer =
      Mapping::OfFd(fd->get(), 0, kPages * Page(), Mapping::Access::kReadWrite);
  const Expected<Mapping> reader =
      Mapping::OfFd(fd->get(), Page(), Page(), Mapping::Access::kRead);
  ASSERT_TRUE(writer.ok() && reader.ok());
  writer->data()[Page() + 7] = std::byte{42};
  EXPECT_EQ(reader->data()[7], std::byte{42});
  EXPECT_EQ(reader->size(), Page());
}

TEST(MappingTest, AnImmutableFileCanBeReadNotWritten) {
  const std::string text = "weights";
  const Expected<UniqueFd> fd =
      MakeImmutableMemfd("model", std::as_bytes(std::span(text)));
  ASSERT_TRUE(fd.ok());
  const Expected<Mapping> reader =
      Mapping::OfFd(fd->get(), 0, text.size(), Mapping::Access::kRead);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(std::memcmp(reader->data(), text.data(), text.size()), 0);
  EXPECT_FALSE(
      Mapping::OfFd(fd->get(), 0, text.size(), Mapping::Access::kReadWrite)
          .ok());
}

TEST(MappingTest, NothingCannotBeMapped) {
  const Expected<UniqueFd> fd = MakeMemfd("empty", 0);
  ASSERT_TRUE(fd.ok());
  EXPECT_FALSE(Mapping::OfFd(fd->get(), 0, 0, Mapping::Access::kRead).ok());
}

TEST(MappingTest, OffsetsThatAreNoOffsetsAreErrors) {
  const Expected<UniqueFd> fd = MakeMemfd("m", Page());
  ASSERT_TRUE(fd.ok());
  EXPECT_FALSE(
      Mapping::OfFd(fd->get(), 1, Page(), Mapping::Access::kRead).ok());
  EXPECT_FALSE(
      Mapping::OfFd(fd->get(), UINT64_MAX, Page(), Mapping::Access::kRead)
          .ok());
}

TEST(MappingTest, AClosedFdIsAnErrorThatSaysSo) {
  const Expected<Mapping> mapping =
      Mapping::OfFd(-1, 0, Page(), Mapping::Access::kRead);
  ASSERT_FALSE(mapping.ok());
  EXPECT_NE(mapping.error().message.find("Bad file descriptor"),
            std::string::npos);
}

TEST(MappingTest, MoveAssignmentUnmapsWhatWasThere) {
  Expected<Mapping> first = Mapping::Anonymous(Page());
  Expected<Mapping> second = Mapping::Anonymous(Page());
  ASSERT_TRUE(first.ok() && second.ok());
  std::byte* const old = first->data();
  *first = *std::move(second);
  EXPECT_FALSE(second->valid());  // NOLINT: specified to be empty
  // msync tells what is mapped.
  EXPECT_NE(msync(old, Page(), MS_ASYNC), 0);
}

TEST(MappingTest, ShrinkingKeepsTheFirstBytesInWholePages) {
  Expected<Mapping> mapping = Mapping::Anonymous(kPages * Page());
  ASSERT_TRUE(mapping.ok());
  mapping->data()[Page()] = std::byte{42};
  std::byte* const rest = mapping->data() + 2 * Page();

  mapping->ShrinkTo(Page() + 1);

  EXPECT_EQ(mapping->size(), 2 * Page());
  EXPECT_EQ(mapping->data()[Page()], std::byte{42});
  unsigned char resident = 0;
  EXPECT_NE(mincore(rest, Page(), &resident), 0) << "still mapped";
}

TEST(MappingTest, ShrinkingToNothingUnmaps) {
  Expected<Mapping> mapping = Mapping::Anonymous(Page());
  ASSERT_TRUE(mapping.ok());

  mapping->ShrinkTo(0);

  EXPECT_FALSE(mapping->valid());
  EXPECT_EQ(mapping->size(), 0U);
}

TEST(MappingTest, AnonymousMemoryIsZeroAndWritable) {
  const Expected<Mapping> mapping = Mapping::Anonymous(3 * Page());
  ASSERT_TRUE(mapping.ok());
  for (const std::byte byte : mapping->bytes()) ASSERT_EQ(byte, std::byte{0});
  mapping->data()[0] = std::byte{1};
}

TEST(MappingTest, PopulateFillsHolesSoThatTheyAreCharged) {
  for (const Mapping::Access access :
       {Mapping::Access::kRead, Mapping::Access::kReadWrite}) {
    const Expected<UniqueFd> fd = MakeMemfd("sparse", kPages * Page());
    ASSERT_TRUE(fd.ok());
    Expected<Mapping> mapping =
        Mapping::OfFd(fd->get(), 0, kPages * Page(), access);
    ASSERT_TRUE(mapping.ok());
    ASSERT_EQ(BytesAllocated(fd->get()), 0U);
    ASSERT_TRUE(mapping->Populate(access).ok());
    EXPECT_GE(BytesAllocated(fd->get()), kPages * Page());
  }
}

TEST(MappingTest, PopulateBeyondTheEndOfAFileIsAnErrorNotASignal) {
  const UniqueFd fd(memfd_create("short", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(fd.get(), static_cast<off_t>(Page())), 0);
  Expected<Mapping> mapping =
      Mapping::OfFd(fd.get(), 0, 4 * Page(), Mapping::Access::kRead);
  ASSERT_TRUE(mapping.ok());
  const Expected<void> populated = mapping->Populate(Mapping::Access::kRead);
  ASSERT_FALSE(populated.ok());
  EXPECT_EQ(populated.error().code, Code::kResourceExhausted);
}

TEST(MappingTest, PopulatingByReadingFillsHolesToo) {
  // More pages than one round of reading takes, and an odd rest.
  const size_t size = 1000 * Page() + 1;
  const Expected<UniqueFd> fd = MakeMemfd("sparse", size);
  ASSERT_TRUE(fd.ok());
  const Expected<Mapping> mapping =
      Mapping::OfFd(fd->get(), 0, size, Mapping::Access::kReadWrite);
  ASSERT_TRUE(mapping.ok());
  ASSERT_TRUE(mapping->PopulateByReading().ok());
  EXPECT_GE(BytesAllocated(fd->get()), 1001 * Page());
}

TEST(MappingTest, PopulatingByReadingBeyondTheEndIsAnErrorNotASignal) {
  const UniqueFd fd(memfd_create("short", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(fd.get(), static_cast<off_t>(Page())), 0);
  const Expected<Mapping> mapping =
      Mapping::OfFd(fd.get(), 0, 4 * Page(), Mapping::Access::kRead);
  ASSERT_TRUE(mapping.ok());
  const Expected<void> populated = mapping->PopulateByReading();
  ASSERT_FALSE(populated.ok());
  EXPECT_EQ(populated.error().code, Code::kResourceExhausted);
}

TEST(MappingTest, PopulateOfPrivateMemoryWorks) {
  Expected<Mapping> mapping = Mapping::Anonymous(kPages * Page());
  ASSERT_TRUE(mapping.ok());
  EXPECT_TRUE(mapping->Populate(Mapping::Access::kReadWrite).ok());
}

using MappingDeathTest = ::testing::Test;

TEST(MappingDeathTest, AfterMakeReadOnlyAStoreIsFatal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Expected<Mapping> mapping = Mapping::Anonymous(Page());
  ASSERT_TRUE(mapping.ok());
  ASSERT_TRUE(mapping->MakeReadOnly().ok());
  EXPECT_EQ(mapping->data()[0], std::byte{0});
  EXPECT_DEATH(*const_cast<volatile std::byte*>(mapping->data()) = std::byte{1},
               "");
}

TEST(MappingTest, LiveOnesAreCounted) {
  const uint64_t before = Mapping::Live();
  Expected<Mapping> one = Mapping::Anonymous(Page());
  ASSERT_TRUE(one.ok());
  Mapping moved = *std::move(one);
  EXPECT_EQ(Mapping::Live(), before + 1);
  moved = Mapping();
  EXPECT_EQ(Mapping::Live(), before);
}

bool IsMapped(std::byte* page) {
  unsigned char resident = 0;
  return mincore(page, Page(), &resident) == 0 || errno != ENOMEM;
}

TEST(UnmapTest, WhatTheKernelRefusesIsUnmappedLater) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer maps memory of its own with each mapping, "
                  "and ends the process where it cannot";
#endif
  // Pages that are one area: to unmap the middle takes another one.
  const Expected<Mapping> pages = Mapping::Anonymous(5 * Page());
  ASSERT_TRUE(pages.ok());
  std::byte* const middle = pages->data() + 2 * Page();
  const Expected<Mapping> other = Mapping::Anonymous(3 * Page());
  ASSERT_TRUE(other.ok());
  {
    const testing::NoMappings none(0);
    // What the count leaves, as it may be one short of the bound.
    std::array<void*, 8> rest{};
    for (size_t i = 0; i < rest.size(); ++i) {
      rest[i] = mmap(nullptr, Page(), i % 2 == 0 ? PROT_READ : PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    Unmap(middle, Page());
    EXPECT_TRUE(IsMapped(middle)) << "there was room, and nothing to test";
    for (void* const page : rest) {
      if (page != MAP_FAILED) munmap(page, Page());
    }
  }
  Unmap(other->data() + Page(), Page());
  EXPECT_FALSE(IsMapped(middle));
}

}  // namespace
}  // namespace rknnd::base
