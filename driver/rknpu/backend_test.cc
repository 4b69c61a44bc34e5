// The address space, and a program on the emulated back end.

#include "driver/rknpu/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "driver/rknpu/address_space.h"
#include "driver/rknpu/emulated_backend.h"

namespace rknnd::rknpu {
namespace {

TEST(AddressSpaceTest, RangesDoNotOverlapAndComeBack) {
  AddressSpace space;

  const auto a = space.Take(1);
  const auto b = space.Take(5000);
  const auto c = space.Take(4096);

  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_NE(*a, 0U) << "0 is no address";
  EXPECT_EQ(*a % 4096, 0U);
  EXPECT_GE(*b, *a + 4096);
  EXPECT_GE(*c, *b + 8192);
  space.GiveBack(*b);
  EXPECT_EQ(*space.Take(8192), *b) << "the lowest hole that is large enough";
}

TEST(AddressSpaceTest, ItIsAsLargeAsTheRegisters) {
  AddressSpace space;

  EXPECT_TRUE(space.Take(uint64_t{3} << 30).ok());
  EXPECT_EQ(space.Take(uint64_t{1} << 30).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(space.Take(UINT64_MAX).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(space.Take(uint64_t{1} << 20).ok());
}

TEST(EmulatedBackendTest, MemoryIsZeroAndHasAnAddress) {
  const std::unique_ptr<Backend> backend = MakeEmulatedBackend();

  const auto memory = backend->Allocate(100);
  const auto nothing = backend->Allocate(0);

  ASSERT_TRUE(memory.ok() && nothing.ok());
  EXPECT_THAT((*memory)->bytes(), ::testing::SizeIs(100));
  EXPECT_TRUE(std::all_of((*memory)->bytes().begin(), (*memory)->bytes().end(),
                          [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_NE((*memory)->address(), (*nothing)->address());
}

// A command list of one task that no NPU knows.
TEST(EmulatedBackendTest, AJobSaysWhatIsWrongWithIt) {
  const std::unique_ptr<Backend> backend = MakeEmulatedBackend();
  const auto commands = backend->Allocate(64);
  ASSERT_TRUE(commands.ok());
  const TaskEntry task = {.enable_mask = 0x7f, .words = 1};
  const auto table = backend->PlaceTable({&task, 1}, (*commands)->address());
  ASSERT_TRUE(table.ok());
  const CoreTasks core = {0, {0, 1}};
  const CoreTasks absent = {3, {0, 1}};
  const ReachableMemory memory = {commands->get(), false};

  const absl::Status unknown = backend->Run(
      {.table = table->get(), .cores = {&core, 1}, .memory = {&memory, 1}});
  const absl::Status no_core = backend->Run(
      {.table = table->get(), .cores = {&absent, 1}, .memory = {&memory, 1}});

  EXPECT_THAT(std::string(unknown.message()), ::testing::HasSubstr("0x7f"));
  EXPECT_THAT(std::string(no_core.message()),
              ::testing::HasSubstr("no core 3"));
  EXPECT_TRUE(backend->Reset().ok());
}

}  // namespace
}  // namespace rknnd::rknpu
