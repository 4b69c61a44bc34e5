// A job of the software NPU works on its client's memory and not on a copy: it
// is stopped between its start and its first layer, by a clock that does
// something when it is asked for the time.

#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::TensorFormat;
using driver::TensorLayout;
using driver::TensorType;
using testing::BoundModel;
using testing::OnnxBuilder;

class InterruptingClock final : public base::Clock {
 public:
  [[nodiscard]] base::Nanoseconds Now() const override {
    ++asked_;
    if (asked_ == at_) interrupt_();
    return asked_;
  }
  void SleepUntil(base::Nanoseconds /*time*/) const override {}
  // At the `at`th question from now.
  void Interrupt(int at, std::function<void()> interrupt) {
    asked_ = 0;
    at_ = at;
    interrupt_ = std::move(interrupt);
  }

 private:
  mutable int asked_ = 0;
  int at_ = 0;
  std::function<void()> interrupt_;
};

TEST(ZeroCopyTest, ByteChangedBeforeTheFirstLayerChangesTheAnswer) {
  InterruptingClock clock;
  auto device =
      OpenSoftDevice({.kind = "soft", .soc = "rk3588", .clock = &clock});
  ASSERT_TRUE(device.ok()) << device.status();
  (*device)->EnterWorker();
  OnnxBuilder builder;
  builder.Input("x", {1, 4}).Node("Relu", {"x"}, {"y"}).Output("y", {1, 4});
  auto model = (*device)->Load({builder.Bytes(), "", "m.onnx"});
  ASSERT_TRUE(model.ok()) << model.status();
  constexpr TensorFormat kHalves{.type = TensorType::kFloat16,
                                 .layout = TensorLayout::kUndefined};
  auto bound = BoundModel::Make(**device, **model, {kHalves}, {kHalves});
  ASSERT_TRUE(bound.ok()) << bound.status();
  const std::vector<uint16_t> ones(4, 0x3c00);
  std::byte* input = (*bound)->input(0).data();
  std::memcpy(input, ones.data(), 8);

  // The first question is when the job starts; with layer times asked for, the
  // second is when the first layer does.
  bool interrupted = false;
  clock.Interrupt(2, [&] {
    interrupted = true;
    input[3] = std::byte{0x40};  // 2.0
  });
  std::vector<int64_t> layer_times((*model)->info().programs[0].layers.size());
  const driver::JobResult result = (*bound)->Run(0, &layer_times);

  ASSERT_TRUE(result.status.ok()) << result.status;
  ASSERT_TRUE(interrupted);
  std::vector<uint16_t> answer(4);
  std::memcpy(answer.data(), (*bound)->output(0).data(), 8);
  EXPECT_EQ(answer, (std::vector<uint16_t>{0x3c00, 0x4000, 0x3c00, 0x3c00}));
}

}  // namespace
}  // namespace rknnd::soft
