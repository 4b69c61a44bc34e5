// What large models leave behind is given back once for many of them, later and
// on the thread that was named.

#include "daemon/core/memory/spare_memory.h"

#include <memory>

#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

class SpareMemoryTest : public ::testing::Test {
 protected:
  testing::ManualExecutor thread_;
  int given_back_ = 0;
  std::shared_ptr<SpareMemory> spare_ =
      std::make_shared<SpareMemory>(&thread_, [this] { ++given_back_; });
};

TEST_F(SpareMemoryTest, IsGivenBackLaterAndOnceForSeveral) {
  spare_->NoteFreed(kInlineBytes + 1);
  spare_->NoteFreed(kInlineBytes + 1);
  EXPECT_EQ(given_back_, 0);
  EXPECT_TRUE(thread_.RunOne());
  EXPECT_FALSE(thread_.RunOne());
  EXPECT_EQ(given_back_, 1);
}

TEST_F(SpareMemoryTest, IsGivenBackAgainForTheNextOne) {
  for (int i = 1; i <= 2; ++i) {
    spare_->NoteFreed(kInlineBytes + 1);
    EXPECT_TRUE(thread_.RunOne());
    EXPECT_EQ(given_back_, i);
  }
}

TEST_F(SpareMemoryTest, OfASmallModelIsKept) {
  spare_->NoteFreed(kInlineBytes);
  EXPECT_FALSE(thread_.RunOne());
}

TEST_F(SpareMemoryTest, GoesBeforeItsTurn) {
  spare_->NoteFreed(kInlineBytes + 1);
  spare_.reset();
  EXPECT_TRUE(thread_.RunOne());
  EXPECT_EQ(given_back_, 0);
}

class ModelsSpareMemoryTest : public testing::CoreTest {
 protected:
  ModelsSpareMemoryTest() {
    options.give_back_memory = [this] { ++given_back_; };
    StopService();
    StartService();
  }

  static constexpr char kLarge[] = "weight=4000000 internal=5000 name=large";
  int given_back_ = 0;
};

TEST_F(ModelsSpareMemoryTest, IsGivenBackAfterALoadAndWhenTheModelGoes) {
  {
    const testing::TestSession session = Open();
    EXPECT_EQ(Upload(session, kLarge), absl::OkStatus());
    EXPECT_EQ(Create(session, 1, kLarge), absl::OkStatus());
    EXPECT_EQ(given_back_, 1);
    service->CloseSession(session->id());
  }
  RunLoops();
  EXPECT_EQ(given_back_, 1);
  Advance(options.model_grace);
  RunLoops();
  EXPECT_EQ(given_back_, 2);
}

TEST_F(ModelsSpareMemoryTest, IsKeptAfterSmallModels) {
  const testing::TestSession session = Open();
  EXPECT_EQ(Upload(session, "weight=1000 internal=5000 name=small"),
            absl::OkStatus());
  EXPECT_EQ(given_back_, 0);
}

}  // namespace
}  // namespace rknnd::core
