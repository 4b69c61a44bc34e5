// Which tensor a call means. What a context does with it is in api_test.cc.

#include "client/rknnrt/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/rknnrt/tensor.h"
#include "proto/wire/codec.h"

namespace rknnd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<rknn_output> Outputs(std::initializer_list<uint32_t> indices) {
  std::vector<rknn_output> outputs;
  for (const uint32_t index : indices) {
    outputs.emplace_back();
    outputs.back().index = index;
  }
  return outputs;
}

TEST(ResolveOutputsTest, IndicesInAnyOrderAreUsed) {
  const auto outputs = Outputs({2, 0, 1});
  EXPECT_THAT(*ResolveOutputs(outputs, 3), ElementsAre(2, 0, 1));
}

TEST(ResolveOutputsTest, AllZeroIsByPosition) {
  const auto outputs = Outputs({0, 0, 0});
  EXPECT_THAT(*ResolveOutputs(outputs, 3), ElementsAre(0, 1, 2));
}

TEST(ResolveOutputsTest, SingleOutputNamesItsIndex) {
  const auto outputs = Outputs({2});
  EXPECT_THAT(*ResolveOutputs(outputs, 3), ElementsAre(2));
}

TEST(ResolveOutputsTest, IndexPastTheEndIsAnError) {
  const auto outputs = Outputs({0, 3});
  EXPECT_FALSE(ResolveOutputs(outputs, 3).ok());
}

TEST(ResolveOutputsTest, OutputNamedTwiceIsAnError) {
  const auto outputs = Outputs({1, 1});
  EXPECT_FALSE(ResolveOutputs(outputs, 3).ok());
}

TEST(ResolveOutputsTest, MoreThanTheModelHasIsAnError) {
  const auto outputs = Outputs({0, 1});
  EXPECT_FALSE(ResolveOutputs(outputs, 1).ok());
}

TEST(ResolveOutputsTest, NoneIsAnError) {
  EXPECT_FALSE(ResolveOutputs({}, 1).ok());
}

TensorAttr Tensor(const char* name, std::vector<uint32_t> dims,
                  uint32_t layout) {
  TensorAttr attr{};
  wire::SetText(attr.name, name);
  for (const uint32_t dim : dims) attr.dims[attr.dims_count++] = dim;
  attr.layout = layout;
  return attr;
}

ModelDescription TwoByTwo() {
  ModelDescription model;
  model.inputs = {Tensor("a", {1, 4, 4, 3}, RKNN_TENSOR_NHWC),
                  Tensor("x", {1, 8}, RKNN_TENSOR_UNDEFINED)};
  model.outputs = {Tensor("x", {1, 10}, RKNN_TENSOR_UNDEFINED),
                   Tensor("b", {1, 3, 4, 4}, RKNN_TENSOR_NCHW)};
  model.native_outputs = {Tensor("x", {1, 10}, RKNN_TENSOR_UNDEFINED),
                          Tensor("b", {1, 1, 4, 4, 8}, RKNN_TENSOR_NC1HWC2)};
  return model;
}

rknn_tensor_attr Asked(const TensorAttr& tensor, uint32_t index) {
  rknn_tensor_attr attr;
  FillAttr(tensor, index, &attr);
  return attr;
}

TEST(MatchTensorTest, NameAloneDecidesWhereItIsUnique) {
  const ModelDescription model = TwoByTwo();
  rknn_tensor_attr attr = Asked(model.outputs[1], 1);
  attr.type = RKNN_TENSOR_FLOAT32;
  attr.dims[1] = 99;
  const auto match = MatchTensor(model, attr);
  ASSERT_TRUE(match.ok());
  EXPECT_EQ(match->direction, Direction::kOutput);
  EXPECT_EQ(match->index, 1U);
}

TEST(MatchTensorTest, SharedNameIsDecidedByTheShape) {
  const ModelDescription model = TwoByTwo();
  const auto input = MatchTensor(model, Asked(model.inputs[1], 1));
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->direction, Direction::kInput);
  EXPECT_EQ(input->index, 1U);
  const auto output = MatchTensor(model, Asked(model.outputs[0], 0));
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->direction, Direction::kOutput);
  EXPECT_EQ(output->index, 0U);
}

TEST(MatchTensorTest, IndexThatDoesNotGoWithTheNameIsRefused) {
  const ModelDescription model = TwoByTwo();
  const auto match = MatchTensor(model, Asked(model.outputs[1], 0));
  ASSERT_FALSE(match.ok());
  EXPECT_THAT(match.error().message,
              HasSubstr("index 0 does not go with 'b', which is output 1"));
  EXPECT_FALSE(MatchTensor(model, Asked(model.inputs[0], 7)).ok());
}

TEST(MatchTensorTest, UnknownNameIsAnErrorThatNamesTheOthers) {
  const ModelDescription model = TwoByTwo();
  rknn_tensor_attr attr = {};
  const auto match = MatchTensor(model, attr);
  ASSERT_FALSE(match.ok());
  EXPECT_THAT(match.error().message, HasSubstr("'a', 'x', 'x', 'b'"));
}

TEST(MatchTensorTest, NameWithoutAnEndIsReadNoFurtherThanItsField) {
  const ModelDescription model = TwoByTwo();
  rknn_tensor_attr attr = {};
  std::memset(attr.name, 'n', sizeof attr.name);
  EXPECT_FALSE(MatchTensor(model, attr).ok());
}

// A target that keeps what it is shown.
class ShownCopies final : public Target {
 public:
  [[nodiscard]] TargetInfo info() const override { return {}; }
  base::Expected<std::shared_ptr<const ModelDescription>> CreateContext(
      const ContextRequest&, const std::shared_ptr<ModelSource>&) override {
    return kNone;
  }
  base::Expected<void> DestroyContext(uint32_t) override {
    shown = 0;
    return {};
  }
  base::Expected<void> SetCoreMask(uint32_t, uint32_t) override { return {}; }
  base::Expected<std::shared_ptr<const ModelDescription>> SetShapes(
      uint32_t, const std::vector<InputShape>&) override {
    return kNone;
  }
  base::Expected<void> Bind(uint32_t, Direction, uint32_t,
                            const Binding&) override {
    return {};
  }
  base::Expected<void> BindFrame(uint32_t, uint32_t,
                                 const FrameBinding&) override {
    return kNone;
  }
  base::Expected<void> SetInternalMemory(uint32_t,
                                         const MemoryRange&) override {
    return kNone;
  }
  base::Expected<void> SetWeightMemory(uint32_t, const MemoryRange&) override {
    return kNone;
  }
  base::Expected<BufferHandle> AllocateBuffer(uint64_t, uint32_t) override {
    return kNone;
  }
  base::Expected<BufferHandle> ImportPhysical(uint64_t, uint64_t) override {
    return kNone;
  }
  base::Expected<BufferHandle> ImportBuffer(int, uint64_t) override {
    return kNone;
  }
  void ReleaseBuffer(uint32_t) override {}
  base::Expected<MemorySize> GetMemorySize(uint32_t) override { return kNone; }
  base::Expected<MemoryKinds> GetMemory() override { return kNone; }
  base::Expected<std::string> PerfDetail(uint32_t) override { return kNone; }
  base::Expected<wire::PerfDetail> PerfReport(uint32_t) override {
    return kNone;
  }
  base::Expected<std::string> ModelDetail(uint32_t) override { return kNone; }
  base::Expected<void> ArmDump(uint32_t) override { return kNone; }
  base::Expected<LayerDump> TakeDump(uint32_t) override { return kNone; }
  void ShowCopies(uint32_t, uint64_t, uint64_t) override { ++shown; }
  base::Expected<RunReport> Run(const RunRequest&) override { return kNone; }
  base::Expected<RunRef> Start(const RunRequest&) override { return kNone; }
  bool Look(StartedRun&) override { return true; }
  bool Await(StartedRun&, base::Nanoseconds) override { return true; }
  base::Expected<uint32_t> Cancel(uint32_t, uint64_t) override { return kNone; }
  base::Expected<void> SetQueue(uint32_t, const QueuePolicy&) override {
    return kNone;
  }
  base::Expected<uint32_t> RegisterFence(int) override { return kNone; }
  base::Expected<FenceOut> MakeFence() override { return kNone; }
  void ReleaseFence(uint32_t) override {}
  base::Expected<std::shared_ptr<RunNotice>> MakeNotice() override {
    return kNone;
  }

  int shown = 0;

 private:
  const base::Error kNone = {base::Code::kUnimplemented, "not here"};
};

TEST(ContextTest, CallThatEndsAfterTheContextShowsNothing) {
  const auto target = std::make_shared<ShownCopies>();
  Context context(7, 0, target,
                  std::make_shared<const ModelDescription>(TwoByTwo()));
  rknn_input input = {};
  const float value[8] = {};
  input.buf = const_cast<float*>(value);
  input.size = sizeof value;
  input.index = 1;
  input.type = RKNN_TENSOR_FLOAT32;
  (void)context.SetInputs({&input, 1});
  EXPECT_EQ(target->shown, 1);
  ASSERT_TRUE(context.Destroy().ok());
  (void)context.SetInputs({&input, 1});
  EXPECT_EQ(target->shown, 0);
}

}  // namespace
}  // namespace rknnd::client
