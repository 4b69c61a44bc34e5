// Tests of internal memory: once per core, as large as its largest model.

#include "daemon/core/memory/arenas.h"

#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

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

// Large enough for the pager to make it.
constexpr char kLargeModel[] = "weight=8 internal=4194304 name=large";
constexpr uint64_t kLargeArena = 4194304;

TEST_F(ArenasTest, ContextIsThereWhenOneOfItsCoresHasRoom) {
  const TestSession session = Open();
  Upload(session, kLargeModel);
  std::vector<absl::Status> answers;
  StartCreate(session, 1, kLargeModel, &answers);
  while (answers.empty() && (loop.RunOne() || pager.RunOne())) {
  }

  EXPECT_EQ(answers, std::vector<absl::Status>(1));
  // The second is being made by now.
  EXPECT_LT(memory().internal, 3 * kLargeArena);
  RunLoops();
  EXPECT_EQ(memory().internal, 3 * kLargeArena);
}

TEST_F(ArenasTest, ContextIsRefusedWhenNotAllOfItsCoresCanHaveRoom) {
  options.address_space = 2 * kLargeArena + 4096;
  StartService();
  const TestSession session = Open();
  Upload(session, kLargeModel);
  EXPECT_EQ(Create(session, 1, kLargeModel)->code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(memory().internal, 0U);
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
  ASSERT_TRUE(SetCoreMaskNow(session, 1, 4).ok());
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

TEST_F(ArenasTest, ArenaThatNobodyNeedsIsNotWhatALargerOneIsRefusedFor) {
  options.address_space = 32 * kPage;
  StartService();
  const TestSession session = Open();
  Upload(session, "weight=4096 internal=40960");
  ASSERT_EQ(Create(session, 1, "weight=4096 internal=40960", 0, 2),
            absl::OkStatus());
  ASSERT_TRUE(session->DestroyContext(1).ok());
  Upload(session, "weight=4096 internal=61440");
  ASSERT_EQ(Create(session, 2, "weight=4096 internal=61440", 0, 1),
            absl::OkStatus());
  ASSERT_EQ(memory().internal, 25 * kPage);

  // Once that model has given way, its arena can, too.
  EXPECT_EQ(SetCoreMaskNow(session, 2, 2), absl::OkStatus());

  EXPECT_EQ(memory().internal, 30 * kPage);
}

TEST_F(ArenasTest, RefusedGrowthSaysThatTheOldArenaStaysUntilThen) {
  options.address_space = 24 * kPage;
  StartService();
  const TestSession session = Open();
  MakeReady(session, 1, "weight=4096 internal=40960", 0, 1);
  Upload(session, "weight=4096 internal=49152");

  const auto created = Create(session, 2, "weight=4096 internal=49152", 0, 1);

  ASSERT_TRUE(created.has_value());
  EXPECT_EQ(created->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(created->message().find("internal memory of 49152 bytes (beside "
                                    "the 40960 bytes that a core has until "
                                    "then)"),
            std::string::npos)
      << *created;
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

// --- SRAM ---

// Memfds that say that their start lies in SRAM.
class SramHeap final : public driver::Heap {
 public:
  [[nodiscard]] const std::string& name() const override { return name_; }
  absl::StatusOr<driver::Allocation> Allocate(uint64_t size) override {
    return AllocateWithSram(size, 0);
  }
  absl::StatusOr<driver::Allocation> AllocateWithSram(uint64_t size,
                                                      uint64_t sram) override {
    auto made = driver::MakeMemfdHeap()->Allocate(size);
    if (made.ok()) made->sram = sram;
    return made;
  }

 private:
  const std::string name_ = "rknpu";
};

class SramArenasTest : public ArenasTest {
 protected:
  SramArenasTest() {
    device.set_core_sram(4 * kPage);
    std::vector<std::unique_ptr<driver::Heap>> all;
    all.push_back(std::make_unique<SramHeap>());
    heaps = driver::Heaps(std::move(all));
    StartService();
  }
};

TEST_F(SramArenasTest, EachCoresInternalMemoryHasItsPart) {
  const TestSession session = Open();
  Upload(session, "internal=40960 sram=40960");
  ASSERT_EQ(Create(session, 1, "internal=40960 sram=40960", 0x800, 1),
            absl::OkStatus());
  const SramReport report = service->Sram();
  ASSERT_EQ(report.windows.size(), 1U);
  EXPECT_EQ(report.windows[0].size, 4 * kPage);
  EXPECT_EQ(report.windows[0].holder, "internal memory, core 0");
  EXPECT_EQ(report.windows[0].contexts, 1U);

  ASSERT_TRUE(session->DestroyContext(1).ok());
  // The model stays for a while, and so does its internal memory.
  ASSERT_EQ(service->Sram().windows.size(), 1U);
  EXPECT_EQ(service->Sram().windows[0].contexts, 0U);
}

TEST_F(SramArenasTest, SmallInternalMemoryHasWholePagesOfItAlone) {
  const TestSession session = Open();
  Upload(session, "internal=5000");
  ASSERT_EQ(Create(session, 1, "internal=5000", 0, 2), absl::OkStatus());
  const SramReport report = service->Sram();
  ASSERT_EQ(report.windows.size(), 1U);
  EXPECT_EQ(report.windows[0].size, kPage);
  EXPECT_EQ(report.windows[0].contexts, 0U) << "it did not ask";
}

}  // namespace
}  // namespace rknnd::core
