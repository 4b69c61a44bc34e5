#include "tests/integration/harness/grpc_client.h"

#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/credentials.h>

#include <fstream>
#include <ostream>
#include <sstream>
#include <stdexcept>

#include "inference/open_inference.pb.h"
#include "rknnd/v1/debug.pb.h"
#include "rknnd/v1/remote.pb.h"

namespace rknnd::integration {
namespace {

// The messages of these files, which the linker would leave out.
[[gnu::used]] const std::array<const void*, 3> kLinked = {
    &descriptor_table_inference_2fopen_5finference_2eproto,
    &descriptor_table_rknnd_2fv1_2fdebug_2eproto,
    &descriptor_table_rknnd_2fv1_2fremote_2eproto};

std::string FileText(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::string ToBytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

const google::protobuf::Descriptor& MessageNamed(const std::string& name) {
  const auto* descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
          name);
  if (descriptor == nullptr) throw std::invalid_argument("no message " + name);
  return *descriptor;
}

std::unique_ptr<google::protobuf::Message> NewMessage(const std::string& name) {
  return std::unique_ptr<google::protobuf::Message>(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(&MessageNamed(name))
          ->New());
}

class OpenCall final : public GrpcCall {
 public:
  OpenCall(grpc::GenericStub* stub, const GrpcClientOptions& options,
           const std::string& method) {
    context_.set_deadline(std::chrono::system_clock::now() + options.timeout);
    for (const auto& [name, value] : options.headers) {
      context_.AddMetadata(name, value);
    }
    if (!options.token.empty()) {
      context_.AddMetadata("authorization", "Bearer " + options.token);
    }
    call_ = stub->PrepareCall(&context_, method, &queue_);
    call_->StartCall(this);
    over_ = !Next();
  }
  ~OpenCall() override {
    if (!finished_) {
      context_.TryCancel();
      Finish();
    }
    queue_.Shutdown();
    while (Next()) {
    }
  }

  bool Write(const std::string& message) override {
    if (over_) return false;
    call_->Write(ToBuffer(message), this);
    return Next();
  }
  bool WritesDone() override {
    if (over_) return false;
    call_->WritesDone(this);
    return Next();
  }
  std::optional<std::string> Read() override {
    if (over_) return std::nullopt;
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, this);
    if (!Next()) return std::nullopt;
    return ToBytes(buffer);
  }
  void Cancel() override { context_.TryCancel(); }
  GrpcResult Finish() override {
    grpc::Status status;
    call_->Finish(&status, this);
    Next();
    finished_ = over_ = true;
    GrpcResult result{
        static_cast<GrpcCode>(status.error_code()), status.error_message(), {}};
    const auto& trailers = context_.GetServerTrailingMetadata();
    const auto again = trailers.find("grpc-retry-pushback-ms");
    if (again != trailers.end()) {
      result.come_again = std::chrono::milliseconds(
          std::stoll({again->second.data(), again->second.size()}));
    }
    return result;
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool over_ = false, finished_ = false;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, GrpcCode code) {
  return out << "gRPC status " << static_cast<int>(code);
}

std::string GrpcMessage(const std::string& message,
                        const nlohmann::json& json) {
  const auto made = NewMessage(message);
  const auto parsed =
      google::protobuf::util::JsonStringToMessage(json.dump(), made.get());
  if (!parsed.ok()) {
    throw std::invalid_argument(message + ": " + parsed.ToString());
  }
  return made->SerializeAsString();
}

nlohmann::json GrpcMessageJson(const std::string& message,
                               const std::string& bytes) {
  const auto made = NewMessage(message);
  if (!made->ParseFromString(bytes)) return {};
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(*made, &text, options)
           .ok()) {
    return {};
  }
  return nlohmann::json::parse(text);
}

std::string EncodeOip(const OipRequest& request) {
  inference::ModelInferRequest message;
  message.set_model_name(request.model);
  message.set_model_version(request.version);
  message.set_id(request.id);
  for (const OipTensor& input : request.inputs) {
    auto* const tensor = message.add_inputs();
    tensor->set_name(input.name);
    tensor->set_datatype(input.datatype);
    for (const int64_t dim : input.shape) tensor->add_shape(dim);
    message.add_raw_input_contents(input.raw);
  }
  for (const std::string& output : request.outputs) {
    message.add_outputs()->set_name(output);
  }
  return message.SerializeAsString();
}

OipAnswer DecodeOip(const GrpcResult& result) {
  OipAnswer answer;
  answer.code = result.code;
  answer.message = result.message;
  inference::ModelInferResponse message;
  if (!result.ok() || !message.ParseFromString(result.bytes)) return answer;
  answer.model = message.model_name();
  answer.version = message.model_version();
  answer.id = message.id();
  for (int i = 0; i < message.outputs_size(); ++i) {
    const auto& output = message.outputs(i);
    answer.outputs.push_back({output.name(),
                              output.datatype(),
                              {output.shape().begin(), output.shape().end()},
                              i < message.raw_output_contents_size()
                                  ? message.raw_output_contents(i)
                                  : ""});
  }
  return answer;
}

class GrpcClient::Impl {
 public:
  Impl(const std::string& address, const GrpcClientOptions& options)
      : options_(options) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    // A connection of its own, not one that another client here has.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    for (const auto& [name, value] : options.text_arguments) {
      arguments.SetString(name, value);
    }
    for (const auto& [name, value] : options.number_arguments) {
      arguments.SetInt(name, value);
    }
    if (!options.host_name.empty()) {
      arguments.SetSslTargetNameOverride(options.host_name);
    }
    std::shared_ptr<grpc::ChannelCredentials> credentials =
        grpc::InsecureChannelCredentials();
    if (!options.ca.empty() || !options.certificate.empty()) {
      credentials =
          grpc::SslCredentials({FileText(options.ca), FileText(options.key),
                                FileText(options.certificate)});
    }
    channel_ = grpc::CreateCustomChannel(address, credentials, arguments);
    stub_ = std::make_unique<grpc::GenericStub>(channel_);
  }

  const GrpcClientOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

GrpcClient::GrpcClient(const std::string& address,
                       const GrpcClientOptions& options)
    : impl_(std::make_unique<Impl>(address, options)) {}

GrpcClient::~GrpcClient() = default;

std::unique_ptr<GrpcCall> GrpcClient::Start(const std::string& method) const {
  return std::make_unique<OpenCall>(impl_->stub_.get(), impl_->options_,
                                    method);
}

GrpcResult GrpcClient::Call(const std::string& method,
                            const std::string& request) const {
  const std::unique_ptr<GrpcCall> call = Start(method);
  if (call->Write(request)) call->WritesDone();
  std::optional<std::string> reply = call->Read();
  // A server may send one message and then say that it failed.
  GrpcResult result = call->Finish();
  if (reply.has_value()) result.bytes = *std::move(reply);
  return result;
}

GrpcJson GrpcClient::Ask(const std::string& method,
                         const nlohmann::json& request) const {
  const size_t slash = method.find('/');
  const auto* service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
          method.substr(0, slash));
  const auto* described =
      service == nullptr ? nullptr
                         : service->FindMethodByName(method.substr(slash + 1));
  if (described == nullptr) throw std::invalid_argument("no method " + method);
  const GrpcResult result = Call(
      "/" + method, GrpcMessage(described->input_type()->full_name(), request));
  GrpcJson json;
  json.code = result.code;
  json.message = result.message;
  if (result.ok()) {
    json.reply =
        GrpcMessageJson(described->output_type()->full_name(), result.bytes);
  }
  return json;
}

GrpcJson GrpcClient::AskOip(const std::string& method,
                            const nlohmann::json& request) const {
  return Ask("inference.GRPCInferenceService/" + method, request);
}

OipAnswer GrpcClient::Infer(const OipRequest& request) const {
  return DecodeOip(
      Call("/inference.GRPCInferenceService/ModelInfer", EncodeOip(request)));
}

std::optional<int> GrpcClient::Health(const std::string& service) const {
  // HealthCheckRequest has a string as field 1, its response a number.
  std::string request;
  if (!service.empty()) {
    request =
        "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
  }
  const GrpcResult result = Call("/grpc.health.v1.Health/Check", request);
  if (!result.ok()) return std::nullopt;
  return result.bytes.size() < 2 ? 0 : result.bytes[1];
}

bool GrpcClient::Connect(std::chrono::milliseconds timeout) const {
  return impl_->channel_->WaitForConnected(std::chrono::system_clock::now() +
                                           timeout);
}

}  // namespace rknnd::integration
