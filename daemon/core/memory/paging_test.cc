// Tests of what the pager does: large buffers and arenas are made while the
// loop answers others, whatever happens to who asked meanwhile.

#include "daemon/core/memory/paging.h"

#include <string>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

constexpr uint64_t kSmall = 4096;
constexpr uint64_t kLarge = 4 * kInlineBytes;
constexpr char kHugeModel[] = "internal=4194304";

class PagingTest : public testing::CoreTest {
 protected:
  using Answers = std::vector<absl::Status>;

  // All but the pager.
  void RunLoop() {
    while (loop.RunOne() || loader.RunOne()) {
    }
  }
  void StartAllocate(const TestSession& session, uint32_t number, uint64_t size,
                     Answers* answers) {
    session->AllocateBuffer(number, size, 0,
                            [answers](const absl::StatusOr<BufferInfo>& made) {
                              answers->push_back(made.status());
                            });
    RunLoop();
  }
  void StartImport(const TestSession& session, uint32_t number, uint64_t size,
                   Answers* answers) {
    auto fd = base::MakeMemfd("frame", size);
    ASSERT_TRUE(fd.ok());
    session->ImportBuffer(number, *std::move(fd), size,
                          [answers](const absl::StatusOr<BufferInfo>& made) {
                            answers->push_back(made.status());
                          });
    RunLoop();
  }
  void StartSetCoreMask(const TestSession& session, uint32_t mask,
                        Answers* answers) {
    session->SetCoreMask(1, mask, [answers](const absl::Status& done) {
      answers->push_back(done);
    });
    RunLoop();
  }
};

// ---- buffers ----------------------------------------------------------------

TEST_F(PagingTest, OthersAreAnsweredWhileALargeBufferIsMade) {
  const TestSession slow = Open(1);
  const TestSession other = Open(2);
  Answers slow_answers, answers;
  StartAllocate(slow, 1, kLarge, &slow_answers);
  StartImport(slow, 2, kLarge, &slow_answers);

  StartAllocate(other, 1, kSmall, &answers);
  EXPECT_TRUE(other->ReleaseBuffer(1).ok());

  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0], absl::OkStatus());
  EXPECT_TRUE(slow_answers.empty());
  RunLoops();
  EXPECT_EQ(slow_answers, Answers({absl::OkStatus(), absl::OkStatus()}));
  EXPECT_EQ(memory().io, 2 * kLarge);
}

TEST_F(PagingTest, SmallBuffersAreOneStepOfTheLoop) {
  const TestSession session = Open();
  Answers answers;
  session->AllocateBuffer(1, kInlineBytes, 0,
                          [&](const absl::StatusOr<BufferInfo>& made) {
                            answers.push_back(made.status());
                          });
  EXPECT_EQ(answers, Answers({absl::OkStatus()}));
}

TEST_F(PagingTest, NumberOfABufferThatIsBeingMadeIsTaken) {
  const TestSession session = Open();
  Answers first, second;
  StartAllocate(session, 7, kLarge, &first);

  StartAllocate(session, 7, kSmall, &second);
  StartImport(session, 7, kSmall, &second);

  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(second[0].code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(second[1].code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(PagingTest, BufferThatIsBeingMadeCannotBeBound) {
  const TestSession session = Open();
  Upload(session, "bytes=4");
  Create(session, 1, "bytes=4");
  Answers answers;
  StartAllocate(session, 7, kLarge, &answers);

  const absl::Status bound =
      session->Bind(BindTo(1, driver::Direction::kInput, 0, 7, kSmall));

  EXPECT_EQ(bound.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(bound.message().find("buffer 7 is not ready yet"),
            std::string::npos);
  RunLoops();
  EXPECT_TRUE(
      session->Bind(BindTo(1, driver::Direction::kInput, 0, 7, kSmall)).ok());
}

TEST_F(PagingTest, ReleaseWhileItIsMadeCancelsABuffer) {
  const TestSession session = Open();
  const size_t fds = OpenFds();
  Answers answers;
  StartAllocate(session, 7, kLarge, &answers);

  ASSERT_TRUE(session->ReleaseBuffer(7).ok());

  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(memory().total(), 0U);
  EXPECT_EQ(session->ReleaseBuffer(7).code(), absl::StatusCode::kNotFound);
  // The number is another's from now on.
  StartAllocate(session, 7, kLarge, &answers);
  RunLoops();
  EXPECT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[1], absl::OkStatus());
  EXPECT_EQ(device.memories(), 1U);
  ASSERT_TRUE(session->ReleaseBuffer(7).ok());
  RunLoops();
  EXPECT_EQ(OpenFds(), fds);
}

TEST_F(PagingTest, ReleaseWhenThePagerIsDoneCancelsABufferToo) {
  const TestSession session = Open();
  Answers answers;
  StartAllocate(session, 7, kLarge, &answers);
  ASSERT_TRUE(pager.RunOne());

  ASSERT_TRUE(session->ReleaseBuffer(7).ok());
  RunLoops();

  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(device.memories(), 0U);
  EXPECT_EQ(memory().total(), 0U);
}

TEST_F(PagingTest, EndOfTheSessionDropsWhatIsBeingMade) {
  const size_t fds = OpenFds();
  Answers answers;
  {
    const TestSession session = Open();
    StartAllocate(session, 1, kLarge, &answers);
    StartAllocate(session, 2, kLarge, &answers);
    ASSERT_TRUE(pager.RunOne());
    service->CloseSession(session->id());
  }
  EXPECT_EQ(memory().total(), 0U);
  RunLoops();
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(device.memories(), 0U);
  EXPECT_EQ(OpenFds(), fds);
}

TEST_F(PagingTest, FailureOfALargeBufferGivesTheChargeBack) {
  const TestSession session = Open();
  const size_t fds = OpenFds();
  device.set_attach_limit(kInlineBytes);
  Answers answers;
  StartAllocate(session, 1, kLarge, &answers);
  StartImport(session, 2, kLarge, &answers);
  EXPECT_EQ(memory().io, 2 * kLarge);

  RunLoops();

  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(answers[1].code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(memory().io, 0U);
  EXPECT_EQ(OpenFds(), fds);
}

TEST_F(PagingTest, BuffersThatAreBeingMadeCountTowardsTheLimits) {
  options.limits.buffers = 2;
  options.limits.memory = 3 * kLarge;
  StartService();
  const TestSession session = Open();
  Answers answers;
  StartAllocate(session, 1, kLarge, &answers);
  StartAllocate(session, 2, kLarge, &answers);
  StartAllocate(session, 3, kSmall, &answers);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_NE(answers[0].message().find("'buffers' is 2"), std::string::npos);
  ASSERT_TRUE(session->ReleaseBuffer(2).ok());
  StartAllocate(session, 2, 2 * kLarge + 1, &answers);
  EXPECT_NE(answers.back().message().find("its limit 'memory' of"),
            std::string::npos);
}

TEST_F(PagingTest, BufferReleasedBeforeItsTurnLeavesNothingMeanwhile) {
  const TestSession session = Open();
  Answers answers;
  StartAllocate(session, 1, kLarge, &answers);
  const size_t fds = OpenFds();
  for (uint32_t number = 2; number < 50; ++number) {
    StartImport(session, number, kLarge, &answers);
    ASSERT_TRUE(session->ReleaseBuffer(number).ok());
  }

  EXPECT_EQ(answers.size(), 48U);
  EXPECT_EQ(OpenFds(), fds);
  EXPECT_EQ(memory().io, kLarge);
  // Nor is the pager asked for them.
  while (loop.RunOne()) {
  }
  EXPECT_TRUE(pager.RunOne());
  while (loop.RunOne()) {
  }
  EXPECT_FALSE(pager.RunOne());
  EXPECT_EQ(answers.back(), absl::OkStatus());
}

TEST_F(PagingTest, OneSessionsQueueKeepsAnotherWaitingForOneBufferOnly) {
  const TestSession greedy = Open(1);
  const TestSession other = Open(2);
  Upload(other, kHugeModel);
  Answers greedy_answers, buffer, context;
  for (uint32_t number = 1; number <= 20; ++number) {
    StartAllocate(greedy, number, kLarge, &greedy_answers);
  }
  StartAllocate(other, 1, kLarge, &buffer);
  StartCreate(other, 1, kHugeModel, &context);
  RunLoop();

  const auto greedy_had_when_answered = [&](const Answers& answers) {
    while (answers.empty() && pager.RunOne()) RunLoop();
    EXPECT_EQ(answers, Answers({absl::OkStatus()}));
    return greedy_answers.size();
  };

  EXPECT_LE(greedy_had_when_answered(buffer), 1U);
  EXPECT_LE(greedy_had_when_answered(context), 2U);
  RunLoops();
  EXPECT_EQ(greedy_answers, Answers(20, absl::OkStatus()));
}

TEST_F(PagingTest, PagesOfALargeBufferAreFreedByThePager) {
  const TestSession session = Open();
  ASSERT_TRUE(AllocateNow(session, 1, kLarge, 0).ok());
  ASSERT_TRUE(session->ReleaseBuffer(1).ok());
  EXPECT_EQ(memory().total(), 0U);
  EXPECT_EQ(device.memories(), 1U);
  RunLoops();
  EXPECT_EQ(device.memories(), 0U);
}

// ---- arenas -----------------------------------------------------------------

TEST_F(PagingTest, ContextIsThereWhenItsArenasAre) {
  const TestSession slow = Open(1);
  const TestSession other = Open(2);
  Upload(slow, kHugeModel);
  Answers created, answers;
  StartCreate(slow, 1, kHugeModel, &created);
  RunLoop();
  EXPECT_TRUE(created.empty());
  ASSERT_TRUE(Submit(slow, 1, 0).ok());
  EXPECT_EQ(slow.sink->last().status.code(), absl::StatusCode::kNotFound);
  StartAllocate(other, 1, kSmall, &answers);
  EXPECT_EQ(answers, Answers({absl::OkStatus()}));

  RunLoops();

  EXPECT_EQ(created, Answers({absl::OkStatus()}));
  EXPECT_EQ(memory().internal, 3 * kLarge);
}

TEST_F(PagingTest, NumberOfAContextThatWaitsForItsArenasIsTaken) {
  const TestSession session = Open();
  Upload(session, kHugeModel);
  Answers answers;
  StartCreate(session, 1, kHugeModel, &answers);
  StartCreate(session, 1, kHugeModel, &answers);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].code(), absl::StatusCode::kAlreadyExists);
  RunLoops();
  EXPECT_EQ(answers.size(), 2U);
}

TEST_F(PagingTest, SeveralGrowthsAtOnceEndWithTheLargest) {
  const TestSession session = Open();
  Answers answers;
  const std::vector<std::string> models = {
      "internal=2097152", "internal=6291456", "internal=4194304"};
  for (const std::string& model : models) Upload(session, model);
  uint32_t number = 0;
  for (const std::string& model : models) {
    StartCreate(session, ++number, model, &answers);
    RunLoop();
  }
  EXPECT_TRUE(answers.empty());
  RunLoops();
  EXPECT_EQ(answers, Answers(3, absl::OkStatus()));
  EXPECT_EQ(memory().internal, 3 * 6291456U);
  EXPECT_EQ(device.memories(), 3U);
}

TEST_F(PagingTest, GrowthThatFailsLeavesSmallerOnesTheirs) {
  const TestSession session = Open();
  Upload(session, "internal=2097152");
  Upload(session, "internal=8388608");
  device.set_attach_limit(kLarge);
  Answers small, large;
  StartCreate(session, 1, "internal=2097152", &small);
  StartCreate(session, 2, "internal=8388608", &large);
  RunLoops();
  EXPECT_EQ(small, Answers({absl::OkStatus()}));
  ASSERT_EQ(large.size(), 1U);
  EXPECT_EQ(large[0].code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(large[0].message().find("internal memory of 8388608 bytes"),
            std::string::npos);
  EXPECT_EQ(memory().internal, 3 * 2097152U);
}

TEST_F(PagingTest, ContextDestroyedBeforeItsArenasAreThereLeavesNone) {
  const TestSession session = Open();
  Upload(session, kHugeModel);
  Answers answers;
  StartCreate(session, 1, kHugeModel, &answers);
  RunLoop();
  ASSERT_TRUE(session->DestroyContext(1).ok());
  RunLoops();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(memory().internal, 0U);
  EXPECT_EQ(device.memories(), 0U);
}

TEST_F(PagingTest, SessionThatEndsBeforeItsArenasAreThereLeavesNone) {
  Answers answers;
  {
    const TestSession session = Open();
    Upload(session, kHugeModel);
    StartCreate(session, 1, kHugeModel, &answers);
    RunLoop();
    service->CloseSession(session->id());
  }
  RunLoops();
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(memory().internal, 0U);
}

TEST_F(PagingTest, LatestCoreMaskCountsWhicheverArenaIsThereFirst) {
  const TestSession session = Open();
  Upload(session, kHugeModel);
  ASSERT_EQ(Create(session, 1, kHugeModel, 0, 1), absl::OkStatus());
  Answers first, second;
  StartSetCoreMask(session, 2, &first);  // needs an arena
  StartSetCoreMask(session, 1, &second);
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(second, Answers({absl::OkStatus()}));

  RunLoops();

  EXPECT_EQ(first, Answers({absl::OkStatus()}));
  EXPECT_EQ(service->Contexts()[0].core_mask, 1U);
  EXPECT_EQ(memory().internal, kLarge);
}

TEST_F(PagingTest, CoreMaskChangesWhenTheArenaIsThere) {
  const TestSession session = Open();
  MakeReady(session, 1, kHugeModel, 0, 1);
  Answers answers;
  StartSetCoreMask(session, 2, &answers);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_EQ(session.sink->last().core, 0U);

  RunLoops();

  EXPECT_EQ(answers, Answers({absl::OkStatus()}));
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_EQ(session.sink->last().core, 1U);
  EXPECT_EQ(session.sink->last().status, absl::OkStatus());
}

TEST_F(PagingTest, ArenasOfVendorSharingAreMadeByThePagerToo) {
  options.vendor_sharing = true;
  StartService();
  const TestSession session = Open();
  Upload(session, kHugeModel);
  Answers answers;
  StartCreate(session, 1, kHugeModel, &answers);
  RunLoop();
  EXPECT_TRUE(answers.empty());
  RunLoops();
  EXPECT_EQ(answers, Answers({absl::OkStatus()}));
  EXPECT_EQ(memory().internal, kLarge);
}

TEST_F(PagingTest, ArenaThatShrinksIsNotTakenWhereALargerIsNeededAgain) {
  const TestSession session = Open();
  Upload(session, "internal=2097152");
  Upload(session, kHugeModel);
  ASSERT_EQ(Create(session, 1, "internal=2097152", 0, 1), absl::OkStatus());
  ASSERT_EQ(Create(session, 2, kHugeModel, 0, 1), absl::OkStatus());
  ASSERT_TRUE(session->DestroyContext(2).ok());
  clock.Advance(options.model_grace);
  timers.RunDue();  // the pager begins to shrink the arena
  ASSERT_EQ(Upload(session, kHugeModel), absl::OkStatus());
  ASSERT_EQ(Create(session, 2, kHugeModel, 0, 1), absl::OkStatus());
  EXPECT_EQ(memory().internal, kLarge);
}

}  // namespace
}  // namespace rknnd::core
