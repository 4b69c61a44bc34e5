// Tests of internal memory: once per core, as large as its largest model.

#include "daemon/core/arenas.h"

#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

constexpr uint64_t kPage = 4096;

class ArenasTest : public testing::CoreTest {};

TEST_F(ArenasTest, NothingIsAllocatedWithoutAModel) {
  const TestSession session = Open();
  EXPECT_EQ(memory().internal, 0U);
  Upload(session, "internal=5000");
  EXPECT_EQ(memory().internal, 0U);
}

TEST_F(ArenasTest, ManyContextsShareOneArenaPerCore) {
  const TestSession first = Open(1);
  const TestSession second = Open(2);
  Upload(first, "internal=5000");
  for (uint32_t i = 1; i <= 5; ++i) {
    ASSERT_EQ(Create(first, i, "internal=5000"), absl::OkStatus());
    ASSERT_EQ(Create(second, i, "internal=5000"), absl::OkStatus());
  }
  EXPECT_EQ(memory().internal, 3 * 2 * kPage);
}

TEST_F(ArenasTest, ArenaHasTheSizeOfTheLargestModelThatMayRunThere) {
  const TestSession session = Open();
  Upload(session, "internal=4096");
  Upload(session, "internal=40960");
  ASSERT_EQ(Create(session, 1, "internal=4096"), absl::OkStatus());
  ASSERT_EQ(Create(session, 2, "internal=40960", 0, 2), absl::OkStatus());
  EXPECT_EQ(memory().internal, 2 * kPage + 10 * kPage);
}

TEST_F(ArenasTest, CoreMaskGrowsTheArenaOfTheNewCore) {
  const TestSession session = Open();
  Upload(session, "internal=4096");
  ASSERT_EQ(Create(session, 1, "internal=4096", 0, 1), absl::OkStatus());
  EXPECT_EQ(memory().internal, kPage);
  ASSERT_TRUE(session->SetCoreMask(1, 4).ok());
  EXPECT_EQ(memory().internal, 2 * kPage);
}

TEST_F(ArenasTest, ArenasShrinkWhenTheLargestModelLeaves) {
  const TestSession session = Open();
  Upload(session, "internal=4096");
  Upload(session, "internal=40960");
  ASSERT_EQ(Create(session, 1, "internal=4096"), absl::OkStatus());
  ASSERT_EQ(Create(session, 2, "internal=40960"), absl::OkStatus());
  ASSERT_TRUE(session->DestroyContext(2).ok());
  EXPECT_EQ(memory().internal, 30 * kPage);
  Advance(options.model_grace);
  EXPECT_EQ(memory().internal, 3 * kPage);
}

TEST_F(ArenasTest, RunningJobKeepsItsArenaWhileAnotherModelGrowsIt) {
  const TestSession session = Open();
  MakeReady(session, 1, "internal=4096");
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  Upload(session, "internal=40960");
  ASSERT_EQ(Create(session, 2, "internal=40960"), absl::OkStatus());
  EXPECT_EQ(memory().internal, 31 * kPage);

  EXPECT_TRUE(device.Release());

  EXPECT_EQ(session.sink->last().status, absl::OkStatus());
  EXPECT_EQ(memory().internal, 30 * kPage);
}

TEST_F(ArenasTest, LackOfMemoryFailsTheContextAndLeavesOthersAsTheyWere) {
  const TestSession session = Open();
  MakeReady(session, 1, "internal=4096");
  Upload(session, "internal=1048576");
  device.set_attach_limit(65536);

  const auto created = Create(session, 2, "internal=1048576");

  ASSERT_TRUE(created.has_value());
  EXPECT_EQ(created->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(created->message().find("internal memory of 1048576 bytes"),
            std::string::npos);
  EXPECT_EQ(memory().internal, 3 * kPage);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_EQ(session.sink->last().status, absl::OkStatus());
}

TEST_F(ArenasTest, ModelWithoutInternalMemoryRuns) {
  const TestSession session = Open();
  MakeReady(session, 1, "internal=0");
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_EQ(session.sink->last().status, absl::OkStatus());
  EXPECT_EQ(memory().internal, 0U);
}

TEST_F(ArenasTest, WhatAJobUsedIsClearedAfterIt) {
  const TestSession session = Open();
  MakeReady(session, 1, "internal=5000");
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_EQ(device.cleared(), 5000U);
}

}  // namespace
}  // namespace rknnd::core
