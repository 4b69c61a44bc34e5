#include "daemon/transport/session/translate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/transport/session/translate_profile.h"

namespace rknnd::transport {
namespace {

driver::TensorAttr Bytes(const char* name, uint32_t count) {
  driver::TensorAttr attr;
  attr.name = name;
  attr.dims = {1, count};
  attr.type = driver::TensorType::kInt8;
  attr.layout = driver::TensorLayout::kUndefined;
  attr.elements = attr.size = count;
  attr.size_with_stride = (count + 15) / 16 * 16;
  return attr;
}

// An image and a text, and what comes of each.
driver::ProgramInfo Row(uint32_t image, uint32_t text, uint64_t internal) {
  driver::ProgramInfo row;
  row.inputs = {Bytes("image", image), Bytes("text", text)};
  row.outputs = {Bytes("boxes", image), Bytes("words", text)};
  row.native_inputs = row.inputs;
  row.native_outputs = row.outputs;
  row.internal_size = internal;
  return row;
}

driver::ModelInfo TwoRows() {
  driver::ModelInfo model;
  model.name = "m";
  model.programs = {Row(300, 20, 1000), Row(100, 90, 4000)};
  return model;
}

TEST(TranslateTest, SessionsTellWhatTheirJobsCostAndHowLongTheyTook) {
  core::SessionReport session;
  session.drops = 3;
  session.shared = 2;
  session.share = {core::Priority::kLow, 250};
  session.latency = {0, 0, 7};

  const wire::SessionReport out = ToSessionReport(session);

  EXPECT_EQ(out.drops, 3U);
  EXPECT_EQ(out.shared, 2U);
  EXPECT_EQ(out.priority, 2U);
  EXPECT_EQ(out.weight, 250U);
  ASSERT_EQ(out.latency_count, 3U);
  EXPECT_EQ(out.latency[2], 7U);
}

TEST(TranslateTest, MoreBucketsThanAMessageHoldsAreCutOff) {
  core::SessionReport session;
  session.latency.assign(1000, 1);
  EXPECT_EQ(ToSessionReport(session).latency_count,
            std::size(wire::SessionReport{}.latency));
}

TEST(TranslateTest, DynamicModelIsShownAtOneOfItsRows) {
  const auto info = ToContextInfo(TwoRows());

  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->inputs[0].dims[1], 300U);
  EXPECT_EQ(info->inputs[1].dims[1], 20U);
  ASSERT_EQ(info->shapes.size(), 4U);
  EXPECT_EQ(info->shapes[3].dims[1], 90U);
}

TEST(TranslateTest, MemorySizedForADynamicModelDoesForEachRow) {
  const auto info = ToContextInfo(TwoRows());

  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->inputs[0].size_with_stride, 304U);
  EXPECT_EQ(info->inputs[1].size_with_stride, 96U);
  EXPECT_EQ(info->native_inputs[1].size_with_stride, 96U);
  EXPECT_EQ(info->outputs[0].elements, 300U);
  EXPECT_EQ(info->outputs[1].elements, 90U);
  EXPECT_EQ(info->native_outputs[1].elements, 90U);
  EXPECT_EQ(info->internal_size, 4000U);
}

TEST(TranslateTest, AChosenRowIsShownAsItIs) {
  const driver::ModelInfo model = TwoRows();

  const wire::ContextInfo info = ToContextInfo(core::ShapeChoice{&model, 1});

  EXPECT_EQ(info.inputs[0].size_with_stride, 112U);
  EXPECT_EQ(info.outputs[0].elements, 100U);
  EXPECT_TRUE(info.shapes.empty());
}

TEST(TranslateTest, QueueIsPassedOnAndAnAgeBeyondAllTimeRefused) {
  wire::SetQueue message{};
  message.context = 3;
  message.policy = 1;
  message.depth = 2;
  message.max_age_ns = 5'000'000;
  const auto queue = ToQueueRequest(message);
  ASSERT_TRUE(queue.ok());
  EXPECT_EQ(queue->context, 3U);
  EXPECT_EQ(queue->policy, core::QueuePolicy::kNewest);
  EXPECT_EQ(queue->depth, 2U);
  EXPECT_EQ(queue->max_age, 5 * base::kMillisecond);
  message.max_age_ns = uint64_t{1} << 63;
  EXPECT_EQ(ToQueueRequest(message).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(TranslateTest, LayersTrafficIsWhatItReads) {
  driver::LayerInfo layer;
  layer.type = "Conv";
  layer.ddr_bytes = 300;
  layer.ddr_read = 200;
  core::LayerRow row;
  row.layer = &layer;
  EXPECT_EQ(ToLayerReports({row}).at(0).rw_bytes, 200U);
}

TEST(TranslateTest, LayersHaveTheirKernelsWhetherTheyRanOrNot) {
  std::vector<driver::LayerInfo> layers(2);
  layers[0].kernel = "bytes avx2";
  layers[1].type = "Conv";
  layers[1].name = "c";
  layers[1].kernel = "oneDNN " + std::string(1000, 'k');
  layers[1].is_slow = true;
  core::LayerRow row;
  row.layer = layers.data();
  EXPECT_STREQ(ToLayerReports({row}).at(0).kernel, "bytes avx2");

  const auto reports = ToLayerReports(std::span(std::as_const(layers)));

  ASSERT_EQ(reports.size(), 2U);
  EXPECT_STREQ(reports[0].kernel, "bytes avx2");
  EXPECT_FALSE(reports[0].is_slow);
  EXPECT_STREQ(reports[1].name, "Conv:c");
  EXPECT_EQ(std::strlen(reports[1].kernel), sizeof(reports[1].kernel) - 1);
  EXPECT_TRUE(reports[1].is_slow);
}

}  // namespace
}  // namespace rknnd::transport
