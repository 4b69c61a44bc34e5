#include "daemon/transport/grpc/inference/descriptions.h"

#include "base/values/sha256.h"
#include "inference/open_inference.pb.h"

namespace rknnd::transport {
namespace {

// In the form that the protocol gives: project and format of the file.
constexpr char kPlatform[] = "onnx_onnxv1";

void Describe(const TensorView& tensor,
              inference::ModelMetadataResponse::TensorMetadata* out) {
  out->set_name(tensor.name);
  out->set_datatype(DatatypeName(tensor.datatype));
  for (const int64_t dim : tensor.shape) out->add_shape(dim);
}

void Set(const Statistics::Sum& sum, inference::StatisticDuration* out) {
  out->set_count(sum.count);
  out->set_ns(static_cast<uint64_t>(sum.time));
}

}  // namespace

void DescribeModel(const ServedModel& model, const ModelView& view,
                   const std::string& soc,
                   inference::ModelMetadataResponse* metadata) {
  metadata->set_name(model.name);
  metadata->add_versions(model.version);
  metadata->set_platform(kPlatform);
  for (const TensorView& tensor : view.inputs) {
    Describe(tensor, metadata->add_inputs());
  }
  for (const TensorView& tensor : view.outputs) {
    Describe(tensor, metadata->add_outputs());
  }
  auto& properties = *metadata->mutable_properties();
  properties["sha256"] = base::ToHex(view.id);
  properties["soc"] = soc;
  properties["graph"] = view.graph;
  properties["weight_bytes"] = std::to_string(view.weight_bytes);
  if (!view.custom_string.empty()) {
    properties["custom_string"] = view.custom_string;
  }
  if (!view.target_platform.empty()) {
    properties["target_platform"] = view.target_platform;
  }
}

void DescribeConfig(const ServedModel& model, const ModelView& view,
                    inference::ModelConfig* config) {
  config->set_name(model.name);
  config->set_platform(kPlatform);
  config->set_backend("rknnd");
  // The first dimension of a tensor is part of its shape, not a batch that the
  // server makes.
  config->set_max_batch_size(0);
  for (const TensorView& tensor : view.inputs) {
    inference::ModelInput* const input = config->add_input();
    input->set_name(tensor.name);
    input->set_data_type(static_cast<inference::DataType>(tensor.datatype));
    for (const int64_t dim : tensor.shape) input->add_dims(dim);
  }
  for (const TensorView& tensor : view.outputs) {
    inference::ModelOutput* const output = config->add_output();
    output->set_name(tensor.name);
    output->set_data_type(static_cast<inference::DataType>(tensor.datatype));
    for (const int64_t dim : tensor.shape) output->add_dims(dim);
  }
}

void DescribeStatistics(const Statistics::Entry& entry,
                        inference::ModelStatistics* statistics) {
  statistics->set_name(entry.name);
  statistics->set_version(entry.version);
  statistics->set_last_inference(entry.last_ms);
  statistics->set_inference_count(entry.success.count);
  statistics->set_execution_count(entry.success.count);
  inference::InferStatistics* const sums =
      statistics->mutable_inference_stats();
  Set(entry.success, sums->mutable_success());
  Set(entry.fail, sums->mutable_fail());
  Set(entry.queue, sums->mutable_queue());
  Set(entry.input, sums->mutable_compute_input());
  Set(entry.run, sums->mutable_compute_infer());
  Set(entry.output, sums->mutable_compute_output());
  if (entry.success.count == 0) return;
  // One request is one execution here.
  inference::InferBatchStatistics* const batch = statistics->add_batch_stats();
  batch->set_batch_size(1);
  Set(entry.input, batch->mutable_compute_input());
  Set(entry.run, batch->mutable_compute_infer());
  Set(entry.output, batch->mutable_compute_output());
}

void DescribeServer(const std::string& version,
                    inference::ServerMetadataResponse* server) {
  server->set_name("rknnd");
  server->set_version(version);
  for (const char* const extension :
       {"classification", "model_repository", "schedule_policy",
        "model_configuration", "system_shared_memory", "binary_tensor_data",
        "parameters", "statistics"}) {
    server->add_extensions(extension);
  }
}

}  // namespace rknnd::transport
