#include "daemon/transport/grpc/inference/answer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpc/slice.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstring>
#include <string>
#include <vector>

#include "daemon/core/terms/utf8.h"
#include "daemon/transport/grpc/inference/typed_contents.h"
#include "inference/open_inference.pb.h"

namespace rknnd::transport {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;
using inference::InferParameter;
using inference::ModelInferResponse;
using inference::ModelStreamInferResponse;

// What stands before the bytes of a length-delimited field.
std::string FieldStart(int field, uint64_t size) {
  std::string bytes;
  StringOutputStream out(&bytes);
  CodedOutputStream coded(&out);
  coded.WriteTag(WireFormatLite::MakeTag(
      field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
  coded.WriteVarint64(size);
  coded.Trim();
  return bytes;
}

grpc::Slice CopyOf(std::span<const std::byte> bytes) {
  grpc_slice slice = grpc_slice_malloc(bytes.size());
  if (!bytes.empty()) {
    std::memcpy(GRPC_SLICE_START_PTR(slice), bytes.data(), bytes.size());
  }
  return {slice, grpc::Slice::STEAL_REF};
}

// The batch that a classification is made of: the first dimension, if there
// are others.
uint64_t BatchOf(const std::vector<int64_t>& shape) {
  return shape.size() > 1 ? static_cast<uint64_t>(shape[0]) : 1;
}

void DescribeOutput(const AnswerInput& input, const OutputPlan& plan,
                    ModelInferResponse::InferOutputTensor* out) {
  const TensorView& tensor = input.view->outputs[plan.index];
  const std::vector<int64_t>& shape =
      input.view->rows[input.plan->row].outputs[plan.index];
  out->set_name(tensor.name);
  if (plan.classes != 0) {
    out->set_datatype(DatatypeName(Datatype::kBytes));
    if (shape.size() > 1) out->add_shape(shape[0]);
    out->add_shape(plan.classes);
    return;
  }
  out->set_datatype(DatatypeName(tensor.datatype));
  for (const int64_t dim : shape) out->add_shape(dim);
  if (!plan.region.has_value()) return;
  auto& parameters = *out->mutable_parameters();
  parameters[std::string("shared_memory_region")].set_string_param(
      plan.region->name);
  parameters[std::string("shared_memory_byte_size")].set_int64_param(
      static_cast<int64_t>(plan.bytes));
  if (plan.region->offset != 0) {
    parameters[std::string("shared_memory_offset")].set_int64_param(
        static_cast<int64_t>(plan.region->offset));
  }
}

}  // namespace

void WriteAnswer(const AnswerInput& input,
                 std::span<const std::span<const std::byte>> outputs,
                 grpc::ByteBuffer* answer) {
  ModelInferResponse head;
  head.set_model_name(input.model->name);
  head.set_model_version(input.model->version);
  head.set_id(input.request->id());
  auto& parameters = *head.mutable_parameters();
  parameters[std::string("rknnd_core")].set_int64_param(input.parts.core);
  parameters[std::string("rknnd_queue_ns")].set_int64_param(input.parts.queue);
  parameters[std::string("rknnd_run_ns")].set_int64_param(input.parts.run);
  if (input.streamed && input.plan->marks_final) {
    parameters[std::string("triton_final_response")].set_bool_param(true);
  }
  std::vector<grpc::Slice> raw;
  uint64_t size = 0;
  for (const OutputPlan& plan : input.plan->outputs) {
    DescribeOutput(input, plan, head.add_outputs());
    std::span<const std::byte> bytes;
    std::string classes;
    if (plan.classes != 0) {
      const std::vector<int64_t>& shape =
          input.view->rows[input.plan->row].outputs[plan.index];
      classes = Classify(input.view->outputs[plan.index].datatype,
                         outputs[plan.index], BatchOf(shape), plan.classes);
      bytes = std::as_bytes(std::span(classes));
    } else if (!plan.region.has_value()) {
      bytes = outputs[plan.index];
    }
    raw.emplace_back(FieldStart(
        ModelInferResponse::kRawOutputContentsFieldNumber, bytes.size()));
    size += raw.back().size() + bytes.size();
    if (!bytes.empty()) raw.push_back(CopyOf(bytes));
  }
  // Fields of a message may come one after the other in any bytes.
  std::string start = head.SerializeAsString();
  if (input.streamed) {
    start = FieldStart(ModelStreamInferResponse::kInferResponseFieldNumber,
                       start.size() + size) +
            start;
  }
  std::vector<grpc::Slice> slices = {grpc::Slice(start)};
  slices.insert(slices.end(), raw.begin(), raw.end());
  *answer = grpc::ByteBuffer(slices.data(), slices.size());
}

void WriteStreamError(const std::string& message, const std::string& id,
                      grpc::ByteBuffer* answer) {
  ModelStreamInferResponse error;
  // It may quote the first bytes of a long name, or a model's own words.
  error.set_error_message(core::Utf8(message));
  // Whose error it is: answers come in any order.
  error.mutable_infer_response()->set_id(id);
  const grpc::Slice slice(error.SerializeAsString());
  *answer = grpc::ByteBuffer(&slice, 1);
}

}  // namespace rknnd::transport
