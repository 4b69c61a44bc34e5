// The driver's calls: what is asked for, and what each failure becomes.

#include "driver/rknpu/kernel/npu_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/posix/unique_fd.h"
#include "driver/rknpu/kernel/testing/fake_kernel.h"

namespace rknnd::rknpu {
namespace {

using testing::FakeKernel;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const NpuNode kRenderNode = {"/dev/dri/renderD129", true, ""};

base::UniqueFd Foreign(size_t size) {
  base::UniqueFd fd(memfd_create("camera", MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  return fd;
}

TEST(NpuFileTest, SaysWhichDriverItHas) {
  FakeKernel kernel;
  kernel.sram = 978944;
  const auto file = NpuFile::Open(kernel, kRenderNode);

  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->version().Text(), "0.9.8");
  EXPECT_EQ((*file)->hardware(), uapi::kRk3588Hardware);
  EXPECT_EQ((*file)->total_sram(), 978944U);
  EXPECT_EQ(*(*file)->Frequency(), 1000000000U);
}

TEST(NpuFileTest, ADriverWithOneQueueForAllIsTooOld) {
  FakeKernel kernel;
  kernel.version = 402;
  const auto file = NpuFile::Open(kernel, kRenderNode);

  EXPECT_EQ(file.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("0.4.2"));
  EXPECT_EQ(kernel.open_files(), 0U);
}

TEST(NpuFileTest, MemoryIsZeroAndSeenByTheOtherSideAfterASync) {
  FakeKernel kernel;
  const auto file = *NpuFile::Open(kernel, kRenderNode);
  const auto buffer = file->Create(5000, {});

  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ((*buffer)->size(), 8192U);
  EXPECT_EQ((*buffer)->bytes().size(), 8192U);
  EXPECT_TRUE(std::all_of((*buffer)->bytes().begin(), (*buffer)->bytes().end(),
                          [](std::byte b) { return b == std::byte{0}; }));
  (*buffer)->bytes()[4999] = std::byte{7};
  EXPECT_TRUE((*buffer)->Sync(uapi::kToDevice, 4096, 4096).ok());
  (*buffer)->bytes()[4999] = std::byte{8};
  EXPECT_TRUE((*buffer)->Sync(uapi::kFromDevice, 4999, 1).ok());
  EXPECT_EQ((*buffer)->bytes()[4999], std::byte{7});
  EXPECT_EQ((*buffer)->Sync(uapi::kToDevice, 4096, 4097).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_THAT(kernel.complaints(), IsEmpty());
}

TEST(NpuFileTest, SramIsClearedAndReadBack) {
  FakeKernel kernel;
  kernel.sram = 8192;
  const auto file = *NpuFile::Open(kernel, kRenderNode);
  const auto buffer = *file->Create(16384, {.sram = 4096});

  EXPECT_EQ(buffer->sram(), 4096U);
  EXPECT_EQ(buffer->bytes()[0], std::byte{0});
  EXPECT_EQ(buffer->bytes()[4095], std::byte{0});
}

TEST(NpuFileTest, UncachedMemoryHasNothingToSynchronise) {
  FakeKernel kernel;
  const auto file = *NpuFile::Open(kernel, kRenderNode);
  const auto buffer = *file->Create(4096, {.cached = false});

  EXPECT_TRUE(
      absl::IsFailedPrecondition(buffer->Sync(uapi::kToDevice, 0, 4096)));
}

TEST(NpuFileTest, ADmaBufIsImportedOnceHoweverOftenItIsNamed) {
  FakeKernel kernel;
  const auto file = *NpuFile::Open(kernel, kRenderNode);
  const base::UniqueFd camera = Foreign(8192);
  const base::UniqueFd again(fcntl(camera.get(), F_DUPFD_CLOEXEC, 0));
  {
    const auto first = file->Import(camera.get());
    const auto second = file->Import(again.get());
    ASSERT_TRUE(first.ok() && second.ok()) << first.status();
    EXPECT_EQ(*first, *second);
    EXPECT_EQ((*first)->size(), 8192U);
    EXPECT_EQ(kernel.buffers(), 1U);
  }
  EXPECT_EQ(kernel.buffers(), 0U);
  EXPECT_TRUE(file->Import(camera.get()).ok());
  EXPECT_EQ(kernel.buffers(), 0U);
  EXPECT_THAT(kernel.complaints(), IsEmpty());
}

TEST(NpuFileTest, OwnMemoryThatComesBackHasItsAddress) {
  FakeKernel kernel;
  const auto file = *NpuFile::Open(kernel, kRenderNode);
  base::UniqueFd fd;
  uint64_t address = 0;
  {
    const auto made = *file->Create(4096, {.map = false});
    fd.reset(*made->Export());
    address = made->address();
  }
  // The descriptor alone keeps it.
  EXPECT_EQ(kernel.buffers(), 0U);
  const auto imported = file->Import(fd.get());
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ((*imported)->size(), 4096U);
  EXPECT_EQ((*imported)->address(), address);
}

TEST(NpuFileTest, WhatIsNoMemoryIsNotImported) {
  FakeKernel kernel;
  const auto file = *NpuFile::Open(kernel, kRenderNode);
  const base::UniqueFd empty = Foreign(0);

  EXPECT_FALSE(file->Import(empty.get()).ok());
  EXPECT_FALSE(file->Import(-1).ok());
}

TEST(NpuFileTest, TheBuildWithoutDrmHasDescriptorsForHandles) {
  FakeKernel kernel;
  kernel.nodes = {{"/dev/rknpu", {}}};
  {
    const auto file = *NpuFile::Open(kernel, {"/dev/rknpu", false, ""});
    const auto buffer = file->Create(4096, {});
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    (*buffer)->bytes()[0] = std::byte{1};
    EXPECT_TRUE((*buffer)->Sync(uapi::kToDevice, 0, 4096).ok());
    const base::UniqueFd exported(*(*buffer)->Export());
    EXPECT_GE(exported.get(), 0);
    const base::UniqueFd camera = Foreign(4096);
    const auto imported = file->Import(camera.get());
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(kernel.buffers(), 2U);
  }
  EXPECT_EQ(kernel.buffers(), 0U);
  EXPECT_THAT(kernel.complaints(), IsEmpty());
}

TEST(NpuFileTest, MoreThanTheNpuCanAddressIsRefused) {
  FakeKernel kernel;
  const auto file = *NpuFile::Open(kernel, kRenderNode);

  EXPECT_EQ(file->Create(uint64_t{5} << 30, {}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(file->Create(UINT64_MAX, {}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// What each errno of each call becomes: an error, nothing left open or kept.
TEST(NpuFileTest, EachCallMayFailWithEachError) {
  const auto use = [](FakeKernel& kernel) {
    const auto file = NpuFile::Open(kernel, kRenderNode);
    if (!file.ok()) return file.status();
    const auto buffer = (*file)->Create(4096, {.is_task_table = true});
    if (!buffer.ok()) return buffer.status();
    if (auto sync = (*buffer)->Sync(uapi::kToDevice, 0, 4096); !sync.ok()) {
      return sync;
    }
    const auto exported = (*buffer)->Export();
    if (!exported.ok()) return exported.status();
    close(*exported);
    const base::UniqueFd camera = Foreign(4096);
    if (const auto in = (*file)->Import(camera.get()); !in.ok()) {
      return in.status();
    }
    return (*file)->Reset();
  };
  FakeKernel good;
  ASSERT_TRUE(use(good).ok());
  const uint64_t calls = good.calls();
  ASSERT_GT(calls, 8U);
  for (uint64_t call = 0; call < calls; ++call) {
    for (int error = 1; error < 134; ++error) {
      FakeKernel kernel;
      kernel.FailCall(call, error);
      const absl::Status status = use(kernel);
      if (!status.ok()) {
        EXPECT_FALSE(status.message().empty());
      }
      EXPECT_EQ(kernel.open_files(), 0U) << call << " " << error;
      EXPECT_THAT(kernel.complaints(), IsEmpty()) << call << " " << error;
    }
  }
}

}  // namespace
}  // namespace rknnd::rknpu
