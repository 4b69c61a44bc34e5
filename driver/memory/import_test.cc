#include "driver/memory/import.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <thread>

#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/posix/unique_fd.h"
#include "base/status/matchers.h"
#include "driver/memory/heap.h"

namespace rknnd::driver {
namespace {

using ::rknnd::base::IsOk;
using ::rknnd::base::Mapping;
using ::rknnd::base::StatusIs;
using ::rknnd::base::UniqueFd;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kImportSize = size_t{16} * 4096;

UniqueFd Unsealed(uint64_t size) {
  UniqueFd fd(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  return fd;
}

UniqueFd SealedWith(int seals, uint64_t size = kImportSize) {
  UniqueFd fd = Unsealed(size);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

UniqueFd Reopened(int fd, int flags) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return UniqueFd(open(path.c_str(), flags | O_CLOEXEC));
}

// Refused, saying what it is and what it must be instead.
auto IsRefusedAs(const std::string& what) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr(what), HasSubstr("F_SEAL_SHRINK")));
}

TEST(CheckImportTest, ASealedMemfdIsTakenWithTheKernelsSize) {
  const UniqueFd fd = SealedWith(F_SEAL_SHRINK, 5000);
  RKNND_ASSERT_OK_AND_ASSIGN(const ImportCheck check, CheckImport(fd.get()));
  EXPECT_EQ(check.size, 5000U);
  EXPECT_EQ(check.heap, "memfd");
  EXPECT_FALSE(check.is_dma_buf);
  EXPECT_TRUE(check.writable);
}

TEST(CheckImportTest, TheMemoryIsTheSameWhateverFdNamesIt) {
  const UniqueFd fd = SealedWith(F_SEAL_SHRINK);
  const UniqueFd other = SealedWith(F_SEAL_SHRINK);
  const UniqueFd again = Reopened(fd.get(), O_RDWR);
  RKNND_ASSERT_OK_AND_ASSIGN(const ImportCheck first, CheckImport(fd.get()));
  RKNND_ASSERT_OK_AND_ASSIGN(const ImportCheck same, CheckImport(again.get()));
  RKNND_ASSERT_OK_AND_ASSIGN(const ImportCheck different,
                             CheckImport(other.get()));
  EXPECT_EQ(first.identity, same.identity);
  EXPECT_NE(first.identity, different.identity);
}

TEST(CheckImportTest, AMemfdOpenedForReadingIsNotWritable) {
  const UniqueFd fd = SealedWith(F_SEAL_SHRINK);
  const UniqueFd read_only = Reopened(fd.get(), O_RDONLY);
  RKNND_ASSERT_OK_AND_ASSIGN(const ImportCheck check,
                             CheckImport(read_only.get()));
  EXPECT_FALSE(check.writable);
}

TEST(CheckImportTest, AMemfdSealedAgainstWritingIsNotWritable) {
  for (const int seal : {F_SEAL_WRITE, F_SEAL_FUTURE_WRITE}) {
    const UniqueFd fd = SealedWith(F_SEAL_SHRINK | seal);
    RKNND_ASSERT_OK_AND_ASSIGN(const ImportCheck check, CheckImport(fd.get()));
    EXPECT_FALSE(check.writable);
  }
}

TEST(CheckImportTest, AnUnsealedMemfdIsRefused) {
  const UniqueFd fd = Unsealed(kImportSize);
  EXPECT_THAT(CheckImport(fd.get()), IsRefusedAs("can be truncated"));
}

TEST(CheckImportTest, AMemfdSealedAgainstGrowingOnlyIsRefused) {
  const UniqueFd fd = SealedWith(F_SEAL_GROW);
  EXPECT_THAT(CheckImport(fd.get()), IsRefusedAs("can be truncated"));
}

TEST(CheckImportTest, AHugetlbMemfdIsRefused) {
  const UniqueFd fd(
      memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!fd.valid()) GTEST_SKIP() << "this kernel has no hugetlb memfds";
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_THAT(CheckImport(fd.get()), IsRefusedAs("hugetlbfs"));
}

TEST(CheckImportTest, AnEmptyMemfdIsRefused) {
  const UniqueFd fd = SealedWith(F_SEAL_SHRINK, 0);
  EXPECT_THAT(CheckImport(fd.get()), IsRefusedAs("empty"));
}

TEST(CheckImportTest, APipeIsRefused) {
  std::array<int, 2> ends = {-1, -1};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd out(ends[0]);
  const UniqueFd in(ends[1]);
  EXPECT_THAT(CheckImport(out.get()), IsRefusedAs("a pipe"));
}

TEST(CheckImportTest, ASocketIsRefused) {
  const auto pair = *base::SeqpacketPair();
  EXPECT_THAT(CheckImport(pair.first.get()), IsRefusedAs("a socket"));
}

TEST(CheckImportTest, AnEventFdIsRefused) {
  const UniqueFd fd = *base::MakeEventFd();
  EXPECT_THAT(CheckImport(fd.get()), IsRefusedAs("an eventfd"));
}

TEST(CheckImportTest, ADirectoryIsRefused) {
  const UniqueFd fd(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_THAT(CheckImport(fd.get()), IsRefusedAs("a directory"));
}

TEST(CheckImportTest, ACharacterDeviceIsRefused) {
  const UniqueFd fd(open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_THAT(CheckImport(fd.get()), IsRefusedAs("a character device"));
}

TEST(CheckImportTest, ARegularFileIsRefusedOnWhateverFilesystem) {
  std::string name = ::testing::TempDir() + "/rknnd-XXXXXX";
  const UniqueFd fd(mkostemp(name.data(), O_CLOEXEC));
  ASSERT_TRUE(fd.valid());
  unlink(name.c_str());
  ASSERT_EQ(ftruncate(fd.get(), kImportSize), 0);
  EXPECT_THAT(CheckImport(fd.get()), IsRefusedAs("F_SEAL_SHRINK"));
}

TEST(CheckImportTest, AFileOnTmpfsThatIsNoMemfdIsRefused) {
  std::string name = "/dev/shm/rknnd-XXXXXX";
  const UniqueFd fd(mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) GTEST_SKIP() << "cannot write to /dev/shm";
  unlink(name.c_str());
  struct statfs filesystem = {};
  ASSERT_EQ(fstatfs(fd.get(), &filesystem), 0);
  if (filesystem.f_type != TMPFS_MAGIC) GTEST_SKIP() << "/dev/shm is no tmpfs";
  ASSERT_EQ(ftruncate(fd.get(), kImportSize), 0);
  EXPECT_THAT(CheckImport(fd.get()), IsRefusedAs("can be truncated"));
}

TEST(CheckImportTest, AnFdThatOnlyNamesTheFileIsRefused) {
  const UniqueFd memory = SealedWith(F_SEAL_SHRINK);
  const UniqueFd fd = Reopened(memory.get(), O_PATH);
  ASSERT_TRUE(fd.valid());
  EXPECT_THAT(CheckImport(fd.get()), IsRefusedAs("O_PATH"));
}

TEST(CheckImportTest, AnFdForWritingOnlyIsRefused) {
  const UniqueFd memory = SealedWith(F_SEAL_SHRINK);
  const UniqueFd fd = Reopened(memory.get(), O_WRONLY);
  ASSERT_TRUE(fd.valid());
  EXPECT_THAT(CheckImport(fd.get()), IsRefusedAs("for writing only"));
}

TEST(CheckImportTest, AClosedFdIsRefused) {
  EXPECT_THAT(CheckImport(-1), IsRefusedAs("not open"));
  const int number = [] { return Unsealed(kImportSize).get(); }();
  EXPECT_THAT(CheckImport(number), IsRefusedAs("not open"));
}

TEST(CheckImportTest, WhatOurOwnHeapGivesIsTaken) {
  RKNND_ASSERT_OK_AND_ASSIGN(const Allocation allocation,
                             MakeMemfdHeap()->Allocate(kImportSize));
  RKNND_ASSERT_OK_AND_ASSIGN(const ImportCheck check,
                             CheckImport(allocation.fd.get()));
  EXPECT_EQ(check.size, allocation.size);
}

// What the seal against shrinking does not forbid, and why hugetlbfs is
// refused: on tmpfs a hole is filled with zeros when it is touched.
TEST(ImportedMemoryTest, AHolePunchedAfterwardsReadsAsZeroAndHarmsNobody) {
  const UniqueFd fd = SealedWith(F_SEAL_SHRINK);
  ASSERT_THAT(CheckImport(fd.get()), IsOk());
  RKNND_ASSERT_OK_AND_ASSIGN(
      Mapping mapping,
      Mapping::OfFd(fd.get(), 0, kImportSize, Mapping::Access::kReadWrite));
  ASSERT_THAT(mapping.Populate(Mapping::Access::kReadWrite), IsOk());
  std::memset(mapping.data(), 0x5a, kImportSize);

  ASSERT_EQ(fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                      kImportSize),
            0);

  EXPECT_TRUE(std::all_of(mapping.bytes().begin(), mapping.bytes().end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(ImportedMemoryTest, AnImportedMemfdCannotBeTruncatedAfterwards) {
  const UniqueFd fd = SealedWith(F_SEAL_SHRINK);
  ASSERT_THAT(CheckImport(fd.get()), IsOk());
  EXPECT_NE(ftruncate(fd.get(), 0), 0);
}

// An epoll set whose lock is held for as long as its owner likes: a thread of
// his gets an event into a page that never comes.
class HeldEpollSet {
 public:
  // Not valid() where the kernel gives us no userfaultfd.
  HeldEpollSet() {
    faults_.reset(
        static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
    page_ = mmap(nullptr, kPage, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
    uffdio_register missing{
        .range = Range(), .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
    if (!faults_.valid() || ioctl(faults_.get(), UFFDIO_API, &api) != 0 ||
        ioctl(faults_.get(), UFFDIO_REGISTER, &missing) != 0) {
      return;
    }
    event_.reset(eventfd(1, EFD_CLOEXEC));
    set_.reset(epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{.events = EPOLLIN, .data = {}};
    epoll_ctl(set_.get(), EPOLL_CTL_ADD, event_.get(), &event);
    owner_ = std::thread([this] {
      epoll_wait(set_.get(), static_cast<epoll_event*>(page_), 1, -1);
    });
    pollfd fault{.fd = faults_.get(), .events = POLLIN, .revents = 0};
    valid_ = poll(&fault, 1, 10000) == 1;
  }
  ~HeldEpollSet() {
    Release();
    if (owner_.joinable()) owner_.join();
    munmap(page_, kPage);
  }

  [[nodiscard]] bool valid() const { return valid_; }
  [[nodiscard]] int fd() const { return set_.get(); }
  void Release() {
    uffdio_zeropage zero{.range = Range(), .mode = 0, .zeropage = 0};
    if (faults_.valid()) ioctl(faults_.get(), UFFDIO_ZEROPAGE, &zero);
  }

 private:
  static constexpr size_t kPage = 4096;

  [[nodiscard]] uffdio_range Range() const {
    return {.start = reinterpret_cast<uint64_t>(page_), .len = kPage};
  }

  UniqueFd faults_, event_, set_;
  void* page_ = nullptr;
  std::thread owner_;
  bool valid_ = false;
};

TEST(CheckImportTest, AnEpollSetThatIsHeldHoldsNobody) {
  HeldEpollSet held;
  if (!held.valid()) GTEST_SKIP() << "this kernel gives us no userfaultfd";
  std::promise<absl::Status> judged;
  std::future<absl::Status> status = judged.get_future();
  std::thread judge([&] { judged.set_value(CheckImport(held.fd()).status()); });
  const bool in_time =
      status.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  held.Release();
  judge.join();
  EXPECT_TRUE(in_time) << "it waited for the set's owner";
  EXPECT_THAT(status.get(), IsRefusedAs("an eventfd, epoll set"));
}

}  // namespace
}  // namespace rknnd::driver
