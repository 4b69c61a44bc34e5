// Requests against a model with two inputs: what fits, and what each refusal
// says.

#include "daemon/transport/grpc/inference/conversion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/values/half.h"
#include "daemon/transport/grpc/inference/request_message.h"
#include "daemon/transport/grpc/inference/typed_contents.h"
#include "inference/open_inference.pb.h"

namespace rknnd::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

driver::TensorAttr Tensor(const std::string& name, driver::TensorType type,
                          driver::TensorType file_type,
                          std::vector<uint32_t> dims,
                          driver::TensorLayout layout) {
  driver::TensorAttr attr;
  attr.name = name;
  attr.type = type;
  attr.file_type = file_type;
  attr.dims = std::move(dims);
  attr.layout = layout;
  return attr;
}

// 'image' is 1x3x2x4 in the file and quantised, 'count' int64; 'scores' float.
driver::ProgramInfo RowOfWidth(uint32_t width) {
  using driver::TensorLayout;
  using driver::TensorType;
  driver::ProgramInfo row;
  row.inputs = {Tensor("image", TensorType::kInt8, TensorType::kFloat32,
                       {1, 2, width, 3}, TensorLayout::kNhwc),
                Tensor("count", TensorType::kInt64, TensorType::kInt64, {2},
                       TensorLayout::kUndefined)};
  row.outputs = {Tensor("scores", TensorType::kFloat16, TensorType::kFloat32,
                        {1, width}, TensorLayout::kUndefined),
                 Tensor("best", TensorType::kInt64, TensorType::kInt64, {1},
                        TensorLayout::kUndefined)};
  return row;
}

ModelView ViewOfWidths(const std::vector<uint32_t>& widths) {
  driver::ModelInfo info;
  for (const uint32_t width : widths) {
    info.programs.push_back(RowOfWidth(width));
  }
  return *MakeModelView({}, info);
}

void SetNumber(inference::InferParameter* parameter, int64_t value) {
  parameter->set_int64_param(value);
}

class ConversionTest : public ::testing::Test {
 protected:
  ConversionTest() {
    auto* const image = request_.add_inputs();
    image->set_name("image");
    image->set_datatype("FP32");
    for (const int64_t dim : {1, 3, 2, 4}) image->add_shape(dim);
    auto* const count = request_.add_inputs();
    count->set_name("count");
    count->set_datatype("INT64");
    count->add_shape(2);
    raw_ = {96, 16};
  }

  absl::StatusOr<RequestPlan> Plan() {
    return PlanRequest(view_, request_, raw_);
  }
  void ExpectRefusal(const std::string& text) {
    const auto plan = Plan();
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr(text));
  }
  auto* input(int index) { return request_.mutable_inputs(index); }
  auto& parameter(const std::string& name) {
    return (*request_.mutable_parameters())[name];
  }

  ModelView view_ = ViewOfWidths({4});
  inference::ModelInferRequest request_;
  std::vector<uint64_t> raw_;
};

TEST_F(ConversionTest, TheViewIsThatOfTheFile) {
  EXPECT_THAT(view_.inputs[0].shape, ElementsAre(1, 3, 2, 4));
  EXPECT_EQ(view_.inputs[0].datatype, Datatype::kFp32);
  EXPECT_EQ(view_.inputs[0].layout, driver::TensorLayout::kNchw);
  EXPECT_EQ(view_.inputs[1].datatype, Datatype::kInt64);
  EXPECT_THAT(view_.outputs[0].shape, ElementsAre(1, 4));
}

TEST_F(ConversionTest, NamesThatAreNoUtf8AreToldSoThatMessagesCanBe) {
  driver::ModelInfo info;
  info.name = "graph\xFF";
  info.programs.emplace_back().inputs = {
      Tensor("in\xC3", driver::TensorType::kInt64, driver::TensorType::kInt64,
             {1}, driver::TensorLayout::kUndefined)};
  view_ = *MakeModelView({}, info);
  EXPECT_EQ(view_.graph, "graph?");
  EXPECT_EQ(view_.inputs[0].name, "in?");
  request_.mutable_inputs()->DeleteSubrange(0, 1);
  raw_ = {8};
  input(0)->set_name("in?");
  input(0)->clear_shape();
  EXPECT_TRUE(Plan().ok()) << Plan().status();
}

TEST_F(ConversionTest, AScalarIsOneElementWithAShapeOrWithout) {
  driver::ModelInfo info;
  info.programs.emplace_back().inputs = {
      Tensor("count", driver::TensorType::kInt64, driver::TensorType::kInt64,
             {1}, driver::TensorLayout::kUndefined)};
  view_ = *MakeModelView({}, info);
  request_.mutable_inputs()->DeleteSubrange(0, 1);
  raw_ = {8};
  input(0)->clear_shape();
  EXPECT_TRUE(Plan().ok()) << Plan().status();
  input(0)->add_shape(1);
  EXPECT_TRUE(Plan().ok()) << Plan().status();
  input(0)->set_shape(0, 2);
  ExpectRefusal("has shape [2], the model takes [1]");
}

TEST_F(ConversionTest, RawEntriesFollowTheRequestsOrder) {
  request_.mutable_inputs()->SwapElements(0, 1);
  raw_ = {16, 96};
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[0].raw, 1U);
  EXPECT_EQ(plan->inputs[0].bytes, 96U);
  EXPECT_EQ(plan->inputs[1].raw, 0U);
  ASSERT_EQ(plan->outputs.size(), 2U);
  EXPECT_EQ(plan->outputs[0].bytes, 16U);
}

TEST_F(ConversionTest, OtherDatatypesThatTheDeviceConvertsAreTaken) {
  input(0)->set_datatype("UINT8");
  raw_[0] = 24;
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[0].datatype, Datatype::kUint8);
  input(0)->set_datatype("FP64");
  ExpectRefusal("input 'image' is FP64, the model takes FP32 or INT8 or UINT8");
  input(0)->set_datatype("fp32");
  ExpectRefusal("datatype 'fp32' does not exist");
  input(0)->set_datatype("BYTES");
  ExpectRefusal("is BYTES");
}

TEST_F(ConversionTest, SizesAreExact) {
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{95}, uint64_t{97}, uint64_t{1} << 40}) {
    raw_[0] = size;
    ExpectRefusal("needs 96");
  }
}

TEST_F(ConversionTest, NamesAreTheModels) {
  input(0)->set_name("picture");
  ExpectRefusal("input 'picture' is unknown: the model has 'image', 'count'");
  input(0)->set_name("count");
  ExpectRefusal("input 'count' comes twice");
  request_.mutable_inputs()->RemoveLast();
  input(0)->set_name("image");
  ExpectRefusal("input 'count' is missing");
}

TEST_F(ConversionTest, ShapesAreTheModels) {
  const std::vector<std::vector<int64_t>> wrong = {
      {},
      {1, 3, 2},
      {1, 4, 2, 3},
      {-1, 3, 2, 4},
      {1, 3, 2, 4, 1},
      {int64_t{1} << 62, int64_t{1} << 62, 2, 4},
      {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN}};
  for (const auto& shape : wrong) {
    input(0)->mutable_shape()->Assign(shape.begin(), shape.end());
    ExpectRefusal("the model takes [1,3,2,4]");
  }
  input(0)->mutable_shape()->Resize(5000, 1);
  ExpectRefusal("has 5000 dimensions");
}

TEST_F(ConversionTest, ListedShapesAreChosenByTheRequest) {
  view_ = ViewOfWidths({4, 6});
  EXPECT_THAT(view_.inputs[0].shape, ElementsAre(1, 3, 2, -1));
  input(0)->set_shape(3, 6);
  raw_[0] = 144;
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->row, 1U);
  EXPECT_EQ(plan->outputs[0].bytes, 24U);
  input(0)->set_shape(3, 5);
  ExpectRefusal("the model takes [1,3,2,4] or [1,3,2,6]");
}

TEST_F(ConversionTest, RawAndTypedAreNotMixed) {
  input(1)->mutable_contents()->add_int64_contents(1);
  ExpectRefusal("cannot be mixed");
}

TEST_F(ConversionTest, EntriesAreAsManyAsInputs) {
  raw_.push_back(1);
  ExpectRefusal("raw_input_contents has 3 entries for 2 inputs");
  raw_.resize(1);
  ExpectRefusal("raw_input_contents has 1 entries for 2 inputs");
}

TEST_F(ConversionTest, TypedContentsAreCopiedAsTheRawOnesWould) {
  raw_.clear();
  for (int i = 0; i < 24; ++i) {
    input(0)->mutable_contents()->add_fp32_contents(0.5F * i);
  }
  input(1)->mutable_contents()->add_int64_contents(-1);
  input(1)->mutable_contents()->add_int64_contents(INT64_MAX);
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_NE(plan->inputs[1].typed, nullptr);
  std::vector<int64_t> numbers(2);
  CopyTyped(*plan->inputs[1].typed, Datatype::kInt64,
            std::as_writable_bytes(std::span(numbers)));
  EXPECT_THAT(numbers, ElementsAre(-1, INT64_MAX));
  std::vector<float> pixels(24);
  CopyTyped(*plan->inputs[0].typed, Datatype::kFp32,
            std::as_writable_bytes(std::span(pixels)));
  EXPECT_EQ(pixels[23], 11.5F);
}

TEST_F(ConversionTest, TypedContentsAreChecked) {
  raw_.clear();
  input(1)->mutable_contents()->add_int64_contents(1);
  input(1)->mutable_contents()->add_int64_contents(2);
  ExpectRefusal("input 'image': contents have 0 elements, its shape has 24");
  for (int i = 0; i < 24; ++i) {
    input(0)->mutable_contents()->add_fp32_contents(1);
  }
  input(0)->set_datatype("UINT8");
  ExpectRefusal("in the list of another datatype");
  input(0)->mutable_contents()->Clear();
  for (int i = 0; i < 24; ++i) {
    input(0)->mutable_contents()->add_uint_contents(i == 7 ? 256 : 255);
  }
  ExpectRefusal("contents have 256, which UINT8 cannot hold");
  input(0)->mutable_contents()->set_uint_contents(7, 255);
  EXPECT_TRUE(Plan().ok());
  input(0)->set_datatype("INT8");
  input(0)->mutable_contents()->Clear();
  for (int i = 0; i < 24; ++i) {
    input(0)->mutable_contents()->add_int_contents(i == 7 ? -129 : -128);
  }
  ExpectRefusal("contents have -129, which INT8 cannot hold");
}

TEST_F(ConversionTest, HalvesComeRawOnly) {
  inference::InferTensorContents contents;
  EXPECT_EQ(CheckTyped(contents, Datatype::kFp16, 4).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckTyped(contents, Datatype::kBf16, 0).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ConversionTest, OutputsAreChosenInTheClientsOrder) {
  request_.add_outputs()->set_name("best");
  request_.add_outputs()->set_name("scores");
  auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->outputs[0].index, 1U);
  EXPECT_EQ(plan->outputs[1].index, 0U);
  request_.mutable_outputs(0)->set_name("scores");
  ExpectRefusal("output 'scores' is asked for twice");
  request_.mutable_outputs(0)->set_name("labels");
  ExpectRefusal("output 'labels' is unknown: the model has 'scores', 'best'");
}

TEST_F(ConversionTest, SharedMemoryTakesNoRawEntry) {
  auto& parameters = *input(0)->mutable_parameters();
  parameters["shared_memory_region"].set_string_param("frames");
  ExpectRefusal("without 'shared_memory_byte_size'");
  SetNumber(&parameters["shared_memory_byte_size"], 4096);
  SetNumber(&parameters["shared_memory_offset"], 64);
  raw_ = {16};
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[0].region->name, "frames");
  EXPECT_EQ(plan->inputs[0].region->offset, 64U);
  EXPECT_EQ(plan->inputs[1].raw, 0U);
  SetNumber(&parameters["shared_memory_offset"], -1);
  ExpectRefusal("'shared_memory_offset' must be an int64_param");
  SetNumber(&parameters["shared_memory_offset"], 0);
  SetNumber(&parameters["shared_memory_byte_size"], 95);
  ExpectRefusal("has 95 bytes");
  parameters.erase("shared_memory_region");
  ExpectRefusal("without 'shared_memory_region'");
}

TEST_F(ConversionTest, PixelsMayHaveTheirChannelsLast) {
  input(0)->mutable_shape()->Clear();
  for (const int64_t dim : {1, 2, 4, 3}) input(0)->add_shape(dim);
  input(0)->set_datatype("UINT8");
  raw_[0] = 24;
  auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->inputs[0].channels_last);
  // A square of three pixels can be either: then it is as in the file.
  view_ = ViewOfWidths({3});
  view_.rows[0].inputs[0] = {1, 3, 3, 3};
  input(0)->mutable_shape()->Clear();
  for (const int64_t dim : {1, 3, 3, 3}) input(0)->add_shape(dim);
  raw_[0] = 27;
  plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->inputs[0].channels_last);
}

TEST_F(ConversionTest, ParametersOfTheRequestAreRead) {
  SetNumber(&parameter("priority"), 3);
  SetNumber(&parameter("timeout"), 1500);
  SetNumber(&parameter("sequence_id"), 0);
  parameter("anything").set_string_param("else");
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->priority, 3U);
  EXPECT_EQ(plan->timeout, 1500 * base::kMicrosecond);
  SetNumber(&parameter("priority"), -3);
  ExpectRefusal("'priority' must be an int64_param");
  SetNumber(&parameter("priority"), 0);
  SetNumber(&parameter("sequence_id"), 9);
  ExpectRefusal("sequences");
  SetNumber(&parameter("sequence_id"), 0);
  parameter("triton_anything").set_bool_param(true);
  ExpectRefusal("'triton_anything'");
}

TEST_F(ConversionTest, TheLargestAreNamed) {
  const std::vector<float> scores = {0.5F, 2, -1, 2, 9, 0, 0, 0};
  const std::string bytes =
      Classify(Datatype::kFp32, std::as_bytes(std::span(scores)), 2, 2);
  EXPECT_EQ(bytes, std::string("\x0a\0\0\0"
                               "2.000000:1"
                               "\x0a\0\0\0"
                               "2.000000:3"
                               "\x0a\0\0\0"
                               "9.000000:0"
                               "\x0a\0\0\0"
                               "0.000000:1",
                               56));
  const std::vector<base::Half> halves = {0x3800, 0x4000};
  EXPECT_EQ(Classify(Datatype::kFp16, std::as_bytes(std::span(halves)), 1, 1),
            std::string("\x0a\0\0\0"
                        "2.000000:1",
                        14));
  auto* const output = request_.add_outputs();
  output->set_name("scores");
  auto& parameters = *output->mutable_parameters();
  SetNumber(&parameters["classification"], 0);
  ExpectRefusal("classification is 0");
  SetNumber(&parameters["classification"], 100);
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->outputs[0].classes, 4U);
}

absl::Status TakeAll(uint64_t /*more*/) { return absl::OkStatus(); }

// However gRPC's pieces fall.
TEST(RequestMessageTest, RawTensorsAreTheSameInAnyPieces) {
  inference::ModelInferRequest whole;
  whole.set_model_name("model");
  whole.set_id("7");
  std::string first(300, 'a');
  first.push_back('b');
  whole.add_raw_input_contents(first);
  whole.add_raw_input_contents("");
  whole.add_raw_input_contents("xyz");
  const std::string bytes = whole.SerializeAsString();
  for (size_t piece = 1; piece <= bytes.size(); piece += piece / 2 + 1) {
    RequestMessage::Pieces pieces;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      pieces.push_back(std::as_bytes(
          std::span(bytes).subspan(at, std::min(piece, bytes.size() - at))));
      pieces.emplace_back();
    }
    const auto message = RequestMessage::Parse(pieces, TakeAll);
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(message->head().model_name(), "model");
    EXPECT_EQ(message->head().id(), "7");
    EXPECT_EQ(message->head().raw_input_contents_size(), 0);
    EXPECT_THAT(message->raw_sizes(), ElementsAre(301, 0, 3));
    for (int i = 0; i < 3; ++i) {
      std::string copy(whole.raw_input_contents(i).size(), '?');
      message->CopyRaw(static_cast<size_t>(i), 0,
                       std::as_writable_bytes(std::span(copy)));
      EXPECT_EQ(copy, whole.raw_input_contents(i));
    }
  }
}

TEST(RequestMessageTest, WhatEndsEarlyIsRefused) {
  inference::ModelInferRequest whole;
  whole.add_raw_input_contents("abcdef");
  const std::string bytes = whole.SerializeAsString();
  for (size_t size = 1; size < bytes.size(); ++size) {
    const auto message = RequestMessage::Parse(
        {std::as_bytes(std::span(bytes).first(size))}, TakeAll);
    EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// What is asked for before a request of `bytes` is parsed, altogether.
uint64_t CostOf(const std::string& bytes) {
  uint64_t cost = 0;
  const auto message = RequestMessage::Parse({std::as_bytes(std::span(bytes))},
                                             [&cost](uint64_t more) {
                                               cost += more;
                                               return absl::OkStatus();
                                             });
  EXPECT_TRUE(message.ok()) << message.status();
  // Beside messages of a few hundred bytes that each has.
  if (message.ok()) {
    EXPECT_LE(message->head().SpaceUsedLong(), cost + 1024);
  }
  return cost;
}

TEST(RequestMessageTest, MemoryIsAskedForBeforeItIsTaken) {
  constexpr int kMany = 100'000;
  inference::ModelInferRequest request;
  auto* const contents = request.add_inputs()->mutable_contents();
  for (int i = 0; i < kMany; ++i) contents->add_bytes_contents("");
  CostOf(request.SerializeAsString());
  contents->clear_bytes_contents();
  for (int i = 0; i < kMany; ++i) contents->add_int64_contents(1);
  CostOf(request.SerializeAsString());
  contents->clear_int64_contents();
  for (int i = 0; i < kMany; ++i) contents->add_uint_contents(1);
  CostOf(request.SerializeAsString());
  contents->clear_uint_contents();
  for (int i = 0; i < kMany; ++i) request.mutable_inputs(0)->add_shape(1);
  CostOf(request.SerializeAsString());
  request.mutable_inputs(0)->clear_shape();
  // Fields that nobody knows: they are kept all the same.
  std::string unknown;
  for (int i = 0; i < kMany; ++i) unknown.append("\x78\x00", 2);
  std::string field("\x2a\xc0\x9a\x0c", 4);  // inputs, of 200000 bytes
  CostOf(field + unknown);

  // Tensors as they should be cost about what they have.
  contents->Clear();
  for (int i = 0; i < kMany; ++i) contents->add_fp32_contents(1.5F);
  const std::string bytes = request.SerializeAsString();
  EXPECT_LT(CostOf(bytes), 3 * bytes.size());

  const auto refused = RequestMessage::Parse(
      {std::as_bytes(std::span(bytes))},
      [](uint64_t /*more*/) { return absl::ResourceExhaustedError("full"); });
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
}

// A few bytes each, and many times that here.
TEST(RequestMessageTest, MoreTensorsThanAnyModelHasAreRefused) {
  for (const char* const part : {"\x2a", "\x32", "\x3a"}) {
    std::string bytes;
    for (int i = 0; i < 1'000'000; ++i) bytes.append(part).push_back('\0');
    const auto message =
        RequestMessage::Parse({std::as_bytes(std::span(bytes))}, TakeAll);
    EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace rknnd::transport
