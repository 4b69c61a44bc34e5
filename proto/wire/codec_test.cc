#include "proto/wire/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace rknnd::wire {
namespace {

using ::testing::HasSubstr;

// Sends a message through its encoding.
template <class Message>
Message RoundTrip(const Message& message) {
  auto bytes = Encode(message);
  EXPECT_TRUE(bytes.ok()) << bytes.error().message;
  auto decoded = Decode<Message>(*bytes);
  EXPECT_TRUE(decoded.ok()) << decoded.error().message;
  return *std::move(decoded);
}

TEST(CodecTest, HelloKeepsItsFields) {
  Hello hello{};
  hello.protocol_min = 1;
  hello.protocol_max = 3;
  hello.features = uint64_t{1} << 63;
  SetText(hello.comm, "camera");
  hello.log_level = 4;

  const Hello decoded = RoundTrip(hello);

  EXPECT_EQ(decoded.protocol_max, 3U);
  EXPECT_EQ(decoded.features, uint64_t{1} << 63);
  EXPECT_STREQ(decoded.comm, "camera");
  EXPECT_EQ(decoded.log_level, 4U);
}

TEST(CodecTest, ContextInfoKeepsItsSixListsApart) {
  const auto tensor = [](const char* name, uint32_t width) {
    TensorAttr attr{};
    SetText(attr.name, name);
    attr.dims_count = 4;
    attr.dims[2] = width;
    attr.zero_point = -128;
    attr.scale = 0.5F;
    return attr;
  };
  ContextInfo info;
  info.inputs = {tensor("image", 320)};
  info.outputs = {tensor("boxes", 4), tensor("scores", 2)};
  info.native_inputs = {tensor("image", 336)};
  info.native_outputs = {};
  info.native_nhwc_inputs = {tensor("nhwc_in", 1)};
  info.native_nhwc_outputs = {tensor("nhwc_out", 2)};
  info.weight_size = uint64_t{5} << 32;
  info.custom_string = "labels";

  const ContextInfo decoded = RoundTrip(info);

  ASSERT_EQ(decoded.outputs.size(), 2U);
  EXPECT_STREQ(decoded.outputs[1].name, "scores");
  EXPECT_EQ(decoded.outputs[1].zero_point, -128);
  EXPECT_EQ(decoded.outputs[1].scale, 0.5F);
  ASSERT_EQ(decoded.inputs.size(), 1U);
  EXPECT_EQ(decoded.inputs[0].dims[2], 320U);
  ASSERT_EQ(decoded.native_inputs.size(), 1U);
  EXPECT_EQ(decoded.native_inputs[0].dims[2], 336U);
  EXPECT_TRUE(decoded.native_outputs.empty());
  ASSERT_EQ(decoded.native_nhwc_inputs.size(), 1U);
  EXPECT_STREQ(decoded.native_nhwc_inputs[0].name, "nhwc_in");
  ASSERT_EQ(decoded.native_nhwc_outputs.size(), 1U);
  EXPECT_STREQ(decoded.native_nhwc_outputs[0].name, "nhwc_out");
  EXPECT_EQ(decoded.weight_size, uint64_t{5} << 32);
  EXPECT_EQ(decoded.custom_string, "labels");
}

TEST(CodecTest, FaultKeepsWhatIsNotSaidApartFromZero) {
  FaultReport report{};
  report.id = 3;
  report.has_fault = true;
  SetText(report.fault.kind, "wrong-status");
  report.fault.has_status = true;
  report.fault.every = 2;
  report.fault.factor = 1.5;
  FaultList list;
  list.faults = {report, {}};

  const FaultList decoded = RoundTrip(list);

  ASSERT_EQ(decoded.faults.size(), 2U);
  const Fault& fault = decoded.faults[0].fault;
  EXPECT_EQ(decoded.faults[0].id, 3U);
  EXPECT_STREQ(fault.kind, "wrong-status");
  EXPECT_TRUE(fault.has_status);
  EXPECT_EQ(fault.status, 0U);
  EXPECT_FALSE(fault.has_core);
  EXPECT_EQ(fault.every, 2U);
  EXPECT_EQ(fault.factor, 1.5);
}

TEST(CodecTest, UploadModelKeepsHashNameAndOptions) {
  UploadModel upload;
  upload.model.fill(0xAB);
  upload.name = "net.onnx";
  upload.options = std::string("mean_values:\0 [0]", 17);

  const UploadModel decoded = RoundTrip(upload);

  EXPECT_EQ(decoded.model, upload.model);
  EXPECT_EQ(decoded.name, "net.onnx");
  EXPECT_EQ(decoded.options, upload.options);
}

TEST(CodecTest, ReportKeepsItsListsAndKinds) {
  Report report;
  SetText(report.device, "soft");
  report.jobs_done = 12;
  report.memory.io = 4096;
  report.sessions.resize(3);
  report.sessions[2].pid = -1;
  report.models.resize(1);
  report.models[0].sha256[31] = 9;
  report.contexts.resize(2);
  report.contexts[1].core_mask = 7;
  report.contexts[1].has_copied = true;
  report.contexts[1].copied.from_device_outputs_get = 6;
  report.uptime_ns = 77;
  report.core_reports = {{1, 2, "", "", 0, 0, ""}, {3, 4, "", "", 0, 0, ""}};
  report.buffers.resize(500);
  SetText(report.buffers[499].heap, "memfd");
  report.unshared_total = 99;
  report.numbers.resize(1);
  SetText(report.numbers[0].name, "jobs_done_total");
  report.numbers[0].value = 12;

  const Report decoded = RoundTrip(report);

  EXPECT_STREQ(decoded.device, "soft");
  EXPECT_EQ(decoded.jobs_done, 12U);
  EXPECT_EQ(decoded.memory.io, 4096U);
  ASSERT_EQ(decoded.sessions.size(), 3U);
  EXPECT_EQ(decoded.sessions[2].pid, -1);
  ASSERT_EQ(decoded.models.size(), 1U);
  EXPECT_EQ(decoded.models[0].sha256[31], 9);
  ASSERT_EQ(decoded.contexts.size(), 2U);
  EXPECT_EQ(decoded.contexts[1].core_mask, 7U);
  EXPECT_EQ(decoded.contexts[1].copied.from_device_outputs_get, 6U);
  EXPECT_EQ(decoded.uptime_ns, 77U);
  ASSERT_EQ(decoded.core_reports.size(), 2U);
  EXPECT_EQ(decoded.core_reports[1].jobs, 4U);
  ASSERT_EQ(decoded.buffers.size(), 500U);
  EXPECT_STREQ(decoded.buffers[499].heap, "memfd");
  EXPECT_EQ(decoded.unshared_total, 99U);
  ASSERT_EQ(decoded.numbers.size(), 1U);
  EXPECT_STREQ(decoded.numbers[0].name, "jobs_done_total");
  EXPECT_EQ(decoded.numbers[0].value, 12U);
}

TEST(CodecTest, PerfDetailMayBeLong) {
  PerfDetail detail;
  detail.text = std::string(100'000, 'x');
  EXPECT_EQ(RoundTrip(detail).text.size(), 100'000U);
}

TEST(CodecTest, PerfDetailHasARowPerLayer) {
  PerfDetail detail;
  detail.layers.resize(2);
  SetText(detail.layers[1].type, "ConvRelu");
  detail.layers[1].mac_usage_count = 3;
  detail.layers[1].mac_usage[2] = 12.5F;
  SetText(detail.layers[1].kernel, "bytes avx2");
  detail.layers[1].is_slow = true;
  const PerfDetail decoded = RoundTrip(detail);
  ASSERT_EQ(decoded.layers.size(), 2U);
  EXPECT_STREQ(decoded.layers[1].type, "ConvRelu");
  ASSERT_EQ(decoded.layers[1].mac_usage_count, 3U);
  EXPECT_EQ(decoded.layers[1].mac_usage[2], 12.5F);
  EXPECT_STREQ(decoded.layers[1].kernel, "bytes avx2");
  EXPECT_TRUE(decoded.layers[1].is_slow);
  EXPECT_STREQ(decoded.layers[0].kernel, "");
}

TEST(CodecTest, PerfDetailOfTooManyLayersIsRefused) {
  PerfDetail detail;
  detail.layers.resize(kMaxLayers + 1);
  EXPECT_FALSE(Encode(detail).ok());
}

TEST(CodecTest, DumpReplyListsTensors) {
  DumpReply reply;
  reply.size = 24;
  reply.tensors.resize(1);
  SetText(reply.tensors[0].name, "features");
  reply.tensors[0].dims_count = 2;
  reply.tensors[0].dims[1] = uint64_t{1} << 40;
  const DumpReply decoded = RoundTrip(reply);
  EXPECT_EQ(decoded.size, 24U);
  ASSERT_EQ(decoded.tensors.size(), 1U);
  EXPECT_STREQ(decoded.tensors[0].name, "features");
  EXPECT_EQ(decoded.tensors[0].dims[1], uint64_t{1} << 40);
}

TEST(CodecTest, DrainReplyListsSessions) {
  DrainReply reply;
  reply.sessions.resize(2);
  reply.sessions[1].id = 8;
  const DrainReply decoded = RoundTrip(reply);
  ASSERT_EQ(decoded.sessions.size(), 2U);
  EXPECT_EQ(decoded.sessions[1].id, 8U);
}

TEST(CodecTest, EmptyBodyIsAMessageOfZeros) {
  auto bind = Decode<Bind>({});
  ASSERT_TRUE(bind.ok());
  EXPECT_EQ(bind->context, 0U);
}

TEST(CodecTest, NumberOutsideAnEnumerationIsKept) {
  ReportRequest request;
  request.kind = 250;
  EXPECT_EQ(RoundTrip(request).kind, 250U);
}

TEST(CodecTest, UnknownFieldsAreSkipped) {
  auto bytes = Encode(DestroyContext{7});
  ASSERT_TRUE(bytes.ok());
  // Field 500, a varint: a newer peer's.
  for (const int byte : {0xA0, 0x1F, 0x05}) {
    bytes->push_back(static_cast<std::byte>(byte));
  }
  auto decoded = Decode<DestroyContext>(*bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->context, 7U);
}

TEST(CodecTest, ListAboveItsBoundIsRefused) {
  // Empty entries of field 1: two bytes each.
  std::vector<std::byte> body;
  for (size_t i = 0; i <= kMaxTensors; ++i) {
    body.push_back(std::byte{0x0A});
    body.push_back(std::byte{0x00});
  }
  auto decoded = Decode<ContextInfo>(body);
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code, base::Code::kInvalidArgument);
  EXPECT_THAT(decoded.error().message, HasSubstr("too long"));
}

TEST(CodecTest, ShapesOfInputsSurviveTheTrip) {
  InputShape shape{};
  shape.dims_count = 2;
  shape.dims[0] = 1;
  shape.dims[1] = 224;
  shape.layout = 3;
  ContextInfo info;
  info.shapes = {shape, shape};
  info.shapes[1].dims[1] = 112;
  info.batch = 4;

  const ContextInfo listed = RoundTrip(info);
  const SetShapes asked = RoundTrip(SetShapes{7, {shape}});

  ASSERT_EQ(listed.shapes.size(), 2U);
  EXPECT_EQ(listed.shapes[1].dims_count, 2U);
  EXPECT_EQ(listed.shapes[1].dims[1], 112U);
  EXPECT_EQ(listed.shapes[0].layout, 3U);
  EXPECT_EQ(listed.batch, 4U);
  EXPECT_EQ(asked.context, 7U);
  ASSERT_EQ(asked.shapes.size(), 1U);
  EXPECT_EQ(asked.shapes[0].dims[1], 224U);
}

TEST(CodecTest, AModelOfADaemonThatKnowsNoBatchHasNone) {
  ContextInfo info;
  info.batch = 0;

  EXPECT_EQ(RoundTrip(info).batch, 1U);
}

TEST(CodecTest, MoreShapesThanThereAreInputsAreNotTaken) {
  SetShapes shapes;
  shapes.shapes.resize(kMaxTensors + 1);

  EXPECT_FALSE(Encode(shapes).ok());
}

TEST(CodecTest, ListAboveItsBoundIsNotEncoded) {
  ContextInfo info;
  info.inputs.resize(kMaxTensors + 1);
  auto bytes = Encode(info);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.error().code, base::Code::kOutOfRange);
}

TEST(CodecTest, TextLongerThanItsFieldIsRefused) {
  std::vector<std::byte> body = {std::byte{0x2A}, std::byte{60}};  // comm
  body.resize(62, std::byte{'a'});
  EXPECT_FALSE(Decode<Hello>(body).ok());
}

TEST(CodecTest, HashOfTheWrongLengthIsRefused) {
  std::vector<std::byte> body = {std::byte{0x0A}, std::byte{31}};
  body.resize(33, std::byte{1});
  EXPECT_FALSE(Decode<UploadModel>(body).ok());
}

TEST(CodecTest, FailureCarriesItsReason) {
  Frame reply;
  reply.code = base::Code::kResourceExhausted;
  reply.body = EncodeFailure("limit 'buffers' is 16384");
  const base::Error error = DecodeFailure(reply);
  EXPECT_EQ(error.code, base::Code::kResourceExhausted);
  EXPECT_EQ(error.message, "limit 'buffers' is 16384");
}

TEST(CodecTest, FailureWithBrokenReasonKeepsItsCode) {
  Frame reply;
  reply.code = base::Code::kInternal;
  reply.body.assign(3, std::byte{0xFF});
  EXPECT_EQ(DecodeFailure(reply).code, base::Code::kInternal);
}

TEST(CodecTest, CutTextEndsAtAWholeCharacter) {
  char field[4];
  SetText(field, "ab\xC3\xA9");  // e acute needs two bytes, one is left
  EXPECT_STREQ(field, "ab");
}

TEST(CodecTest, TextEndsAtAZeroInsideIt) {
  char field[8];
  SetText(field, std::string_view("ab\0cd", 5));
  EXPECT_STREQ(field, "ab");
  EXPECT_EQ(field[3], '\0');
}

// Every decoder gets the same bytes that nobody made for it.
TEST(CodecTest, GarbageIsRefusedOrDecodedButNeverMore) {
  std::mt19937 random(7);  // the same bytes in every run
  size_t refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::byte> body(random() % 300);
    for (std::byte& byte : body) byte = static_cast<std::byte>(random());
    // Small first bytes are plausible tags of length-delimited fields.
    if (!body.empty() && round % 2 == 0) {
      body[0] = static_cast<std::byte>(((random() % 20) << 3) | 2);
    }
    refused += Decode<Hello>(body).ok() ? 0 : 1;
    refused += Decode<CreateContext>(body).ok() ? 0 : 1;
    refused += Decode<UploadModel>(body).ok() ? 0 : 1;
    refused += Decode<ContextInfo>(body).ok() ? 0 : 1;
    refused += Decode<Bind>(body).ok() ? 0 : 1;
    refused += Decode<SetShapes>(body).ok() ? 0 : 1;
    refused += Decode<Report>(body).ok() ? 0 : 1;
    refused += Decode<Fault>(body).ok() ? 0 : 1;
    refused += Decode<FaultList>(body).ok() ? 0 : 1;
    refused += Decode<SyncBuffer>(body).ok() ? 0 : 1;
    refused += Decode<ReportRequest>(body).ok() ? 0 : 1;
    refused += Decode<PerfDetail>(body).ok() ? 0 : 1;
    refused += Decode<LogEvent>(body).ok() ? 0 : 1;
    refused += Decode<Error>(body).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 0U);
}

// Valid messages with single bytes changed reach deeper than garbage.
TEST(CodecTest, DamagedReportsAreRefusedOrDecoded) {
  Report report;
  report.sessions.resize(4);
  report.models.resize(4);
  for (auto& model : report.models) SetText(model.name, "model");
  auto bytes = Encode(report);
  ASSERT_TRUE(bytes.ok());
  std::mt19937 random(11);
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::byte> damaged = *bytes;
    damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    auto decoded = Decode<Report>(damaged);
    if (decoded.ok()) {
      EXPECT_LE(decoded->models.size(), damaged.size());
    }
  }
}

}  // namespace
}  // namespace rknnd::wire
