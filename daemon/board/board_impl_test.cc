// Tests of a board's pins: whom they belong to, and what ends them.

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/board/board.h"
#include "daemon/board/testing/board_tree.h"
#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::board {
namespace {

using core::testing::ManualExecutor;
using ::testing::HasSubstr;
using transport::BoardClock;
using transport::ClockPin;
using transport::Severity;

class Remembering final : public transport::EventLog {
 public:
  void Write(Severity /*severity*/, const std::string& text) override {
    text_ += text + "\n";
  }
  std::string text_;
};

class BoardImplTest : public ::testing::Test {
 protected:
  void Start() {
    BoardOptions options;
    options.root = tree_.root();
    options.record = tree_.root() + "/record";
    options.log = &tail_;
    options.loop = &loop_;
    options.pager = &pager_;
    board_ = std::make_unique<BoardImpl>(options);
    Run();
  }
  void Run() {
    while (pager_.RunOne() || loop_.RunOne()) {
    }
  }
  std::shared_ptr<ClockPin> Pin() {
    std::shared_ptr<ClockPin> result;
    board_->PinClocks([&](absl::StatusOr<std::shared_ptr<ClockPin>> pin,
                          const std::vector<BoardClock>& clocks) {
      EXPECT_TRUE(pin.ok()) << pin.status();
      EXPECT_TRUE(clocks[0].pinned);
      if (pin.ok()) result = *std::move(pin);
    });
    Run();
    return result;
  }
  [[nodiscard]] std::string Governor() const {
    return tree_.Get("/sys/class/devfreq/fdab0000.npu/governor");
  }

  testing::BoardTree tree_;
  Remembering log_;
  LogTail tail_{&log_, 3};
  ManualExecutor loop_, pager_;
  std::unique_ptr<BoardImpl> board_;
};

TEST_F(BoardImplTest, PinEndsWithItsHolder) {
  tree_.AddClocks();
  Start();
  std::shared_ptr<ClockPin> first = Pin();
  std::shared_ptr<ClockPin> second = Pin();
  first.reset();
  Run();
  EXPECT_EQ(Governor(), "performance");
  second.reset();
  Run();
  EXPECT_EQ(Governor(), "rknpu_ondemand");
}

TEST_F(BoardImplTest, PinThatOutlivesTheBoardIsUndoneWithIt) {
  tree_.AddClocks();
  Start();
  std::shared_ptr<ClockPin> pin = Pin();
  board_.reset();
  EXPECT_EQ(Governor(), "rknpu_ondemand");
  EXPECT_FALSE(tree_.Has("/record"));
  pin.reset();
  Run();
}

TEST_F(BoardImplTest, NextStartUndoesWhatACrashLeft) {
  tree_.AddClocks();
  tree_.Put("/sys/class/devfreq/fdab0000.npu/governor", "performance\n");
  tree_.Put("/record",
            "/sys/class/devfreq/fdab0000.npu/governor\trknpu_ondemand\n");
  Start();
  EXPECT_EQ(Governor(), "rknpu_ondemand");
  EXPECT_THAT(log_.text_, HasSubstr("1 settings are as they were before"));
}

TEST_F(BoardImplTest, BoardWithoutClocksCannotPin) {
  Start();
  std::optional<absl::Status> answer;
  board_->PinClocks([&](const absl::StatusOr<std::shared_ptr<ClockPin>>& pin,
                        const std::vector<BoardClock>& /*clocks*/) {
    answer = pin.status();
  });
  Run();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace rknnd::board
