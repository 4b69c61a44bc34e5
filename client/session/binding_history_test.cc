// What runs keep of bindings that were changed while they were on their way.

#include "client/session/binding_history.h"

#include <gtest/gtest.h>

#include <vector>

namespace rknnd::client {
namespace {

constexpr uint32_t kContext = 7;
constexpr PortKey kInput{0, Direction::kInput, 0};
constexpr PortKey kInputOfSet1{1, Direction::kInput, 0};

Binding To(uint32_t buffer) {
  Binding binding;
  binding.buffer = buffer;
  return binding;
}

class BindingHistoryTest : public testing::Test {
 protected:
  // As the session does: first the history, then the record.
  bool Bind(const PortKey& port, uint32_t buffer) {
    const bool kept = history_.Keep(kContext, port, record_, runs_);
    record_.bindings[port] = To(buffer);
    return kept;
  }
  BindingHistory::Start Start(uint32_t set = 0) {
    runs_.push_back({kContext, set, history_.last()});
    return runs_.back();
  }
  uint32_t BufferThen(const BindingHistory::Start& run, size_t port = 0) {
    const auto ports = history_.BindingsOf(run, record_);
    if (ports.size() <= port) return 0;
    const auto* binding = std::get_if<Binding>(&ports[port].second);
    return binding == nullptr ? 0 : binding->buffer;
  }

  BindingHistory history_;
  ContextRecord record_;
  std::vector<BindingHistory::Start> runs_;
};

TEST_F(BindingHistoryTest, ChangeThatNoRunSawIsNotKept) {
  EXPECT_FALSE(Bind(kInput, 1));
  EXPECT_FALSE(Bind(kInput, 2));
  EXPECT_EQ(history_.last(), 0U);
}

TEST_F(BindingHistoryTest, RunKeepsWhatWasBoundAtItsStart) {
  Bind(kInput, 1);
  const auto first = Start();
  EXPECT_TRUE(Bind(kInput, 2));
  const auto second = Start();
  EXPECT_TRUE(Bind(kInput, 3));

  EXPECT_TRUE(history_.IsOutdated(first));
  EXPECT_EQ(BufferThen(first), 1U);
  EXPECT_EQ(BufferThen(second), 2U);
  const auto third = Start();
  EXPECT_FALSE(history_.IsOutdated(third));
  EXPECT_TRUE(history_.BindingsOf(third, record_).empty());
}

TEST_F(BindingHistoryTest, SecondChangeBetweenTwoStartsIsNotKept) {
  Bind(kInput, 1);
  const auto run = Start();
  EXPECT_TRUE(Bind(kInput, 2));
  EXPECT_FALSE(Bind(kInput, 3));
  EXPECT_EQ(BufferThen(run), 1U);
}

TEST_F(BindingHistoryTest, ChangeOfAnotherSetConcernsNoRun) {
  Bind(kInput, 1);
  const auto run = Start(2);
  Bind(kInputOfSet1, 9);
  EXPECT_FALSE(history_.IsOutdated(run));
}

TEST_F(BindingHistoryTest, SetWithoutABindingHadThatOfSet0) {
  Bind(kInput, 1);
  const auto run = Start(1);
  Bind(kInputOfSet1, 9);
  EXPECT_TRUE(history_.IsOutdated(run));
  EXPECT_EQ(BufferThen(run), 1U);
}

TEST_F(BindingHistoryTest, ChangesAreForgottenWithTheRunsThatNeedThem) {
  Bind(kInput, 1);
  const auto run = Start();
  Bind(kInput, 2);
  runs_.clear();
  Bind(kInput, 3);
  EXPECT_FALSE(history_.IsOutdated(run));
}

}  // namespace
}  // namespace rknnd::client
