#include "tests/torture/judge.h"

#include <gtest/gtest.h>

#include "client/include/rknn_api.h"

namespace rknnd::torture {
namespace {

using base::kSecond;

class JudgeTest : public testing::Test {
 protected:
  JudgeTest() {
    judge_.Remember(EventKind::kFailCalls, 10 * kSecond, 11 * kSecond);
    judge_.Remember(EventKind::kHangForGood, 30 * kSecond, 31 * kSecond);
  }

  static Note Refusal(base::Nanoseconds at) {
    return {NoteKind::kError,     at,
            RKNN_ERR_MALLOC_FAIL, 0,
            "rknn_create_mem",    "memfd_create: Cannot allocate memory"};
  }
  static Note Timeout(base::Nanoseconds at) {
    return {NoteKind::kError,          at, RKNN_ERR_TIMEOUT, 5, "rknn_run",
            "the job ran for too long"};
  }

  Judge judge_;
};

TEST_F(JudgeTest, ForgivesRefusalsInAShortage) {
  EXPECT_TRUE(judge_.IsJustified(Refusal(10 * kSecond)));
  EXPECT_TRUE(judge_.IsJustified(Refusal(12 * kSecond)));
}

TEST_F(JudgeTest, ForgivesNoneBeforeOrLongAfter) {
  EXPECT_FALSE(judge_.IsJustified(Refusal(9 * kSecond)));
  EXPECT_FALSE(judge_.IsJustified(Refusal(16 * kSecond)));
  EXPECT_FALSE(judge_.IsJustified(Refusal(30 * kSecond)));
}

TEST_F(JudgeTest, ForgivesNoneWithoutAReason) {
  Note silent = Refusal(10 * kSecond);
  silent.text.clear();
  EXPECT_FALSE(judge_.IsJustified(silent));
}

TEST_F(JudgeTest, ForgivesARunForAReasonOnly) {
  Note run = Refusal(10 * kSecond);
  run.call = "rknn_run";
  EXPECT_TRUE(judge_.IsJustified(run));
  run.text = "a thread: Resource temporarily unavailable";
  EXPECT_TRUE(judge_.IsJustified(run));
  run.text = "the queue is full";
  EXPECT_FALSE(judge_.IsJustified(run));
}

TEST_F(JudgeTest, ForgivesALostMessageWithoutDescriptorsOnly) {
  Note lost = Refusal(10 * kSecond);
  lost.code = RKNN_ERR_FAIL;
  lost.text = "rknnd went away 5 times during this call";
  EXPECT_FALSE(judge_.IsJustified(lost));
  judge_.Remember(EventKind::kFewDescriptors, 10 * kSecond, 11 * kSecond);
  EXPECT_TRUE(judge_.IsJustified(lost));
  lost.call = "rknn_run";
  EXPECT_FALSE(judge_.IsJustified(lost));
}

TEST_F(JudgeTest, ForgivesATimeoutUnderAHangOnly) {
  EXPECT_TRUE(judge_.IsJustified(Timeout(35 * kSecond)));
  EXPECT_FALSE(judge_.IsJustified(Timeout(10 * kSecond)));
}

TEST_F(JudgeTest, ForgivesALateFrameOfALostDeviceOnly) {
  Note late = Refusal(20 * kSecond);
  late.kind = NoteKind::kTurn;
  EXPECT_FALSE(judge_.IsJustified(late));
  judge_.Remember(EventKind::kDeviceLost, 19 * kSecond, 19 * kSecond);
  EXPECT_TRUE(judge_.IsJustified(late));
}

TEST_F(JudgeTest, ForgivesNoWrongAnswerEver) {
  for (const NoteKind kind :
       {NoteKind::kWrong, NoteKind::kLost, NoteKind::kDouble}) {
    Note note = Refusal(10 * kSecond);
    note.kind = kind;
    EXPECT_FALSE(judge_.IsJustified(note)) << NameOf(kind);
  }
}

}  // namespace
}  // namespace rknnd::torture
