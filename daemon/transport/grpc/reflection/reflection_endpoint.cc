// Called by whoever reaches the port, without a token: it tells what the .proto
// files of this program say, and nothing else. Names are looked up and never
// made.

#include "daemon/transport/grpc/reflection/reflection_endpoint.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/grpcpp.h>

#include <set>
#include <string>

#include "reflection/reflection.grpc.pb.h"

namespace rknnd::transport {
namespace {

namespace v1alpha = grpc::reflection::v1alpha;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using Request = v1alpha::ServerReflectionRequest;
using Response = v1alpha::ServerReflectionResponse;

constexpr const char* kServices[] = {
    "grpc.health.v1.Health",
    "grpc.reflection.v1alpha.ServerReflection",
    "inference.GRPCInferenceService",
    "rknnd.v1.Debug",
    "rknnd.v1.Remote",
};

void Refuse(grpc::StatusCode code, const std::string& message,
            Response& response) {
  response.mutable_error_response()->set_error_code(code);
  response.mutable_error_response()->set_error_message(message);
}

// The file and all that it imports, each once.
void AddFiles(const FileDescriptor* file, std::set<std::string>& added,
              v1alpha::FileDescriptorResponse& files) {
  if (!added.insert(file->name()).second) return;
  google::protobuf::FileDescriptorProto text;
  file->CopyTo(&text);
  files.add_file_descriptor_proto(text.SerializeAsString());
  for (int i = 0; i < file->dependency_count(); ++i) {
    AddFiles(file->dependency(i), added, files);
  }
}

void Describe(const FileDescriptor* file, const std::string& name,
              Response& response) {
  if (file == nullptr) {
    return Refuse(grpc::StatusCode::NOT_FOUND,
                  "nothing of this server is called '" + name + "'", response);
  }
  std::set<std::string> added;
  AddFiles(file, added, *response.mutable_file_descriptor_response());
}

void Answer(const Request& request, Response& response) {
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  switch (request.message_request_case()) {
    case Request::kListServices:
      for (const char* name : kServices) {
        response.mutable_list_services_response()->add_service()->set_name(
            name);
      }
      return;
    case Request::kFileByFilename:
      return Describe(pool.FindFileByName(request.file_by_filename()),
                      request.file_by_filename(), response);
    case Request::kFileContainingSymbol:
      return Describe(
          pool.FindFileContainingSymbol(request.file_containing_symbol()),
          request.file_containing_symbol(), response);
    case Request::kFileContainingExtension:
    case Request::kAllExtensionNumbersOfType:
      // No message of ours has any.
      return Refuse(grpc::StatusCode::NOT_FOUND, "there are no extensions",
                    response);
    default:
      return Refuse(grpc::StatusCode::INVALID_ARGUMENT,
                    "the request asks for nothing that is known", response);
  }
}

// One question after the other.
class Stream final : public grpc::ServerBidiReactor<Request, Response> {
 public:
  Stream() { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    response_.Clear();
    Answer(request_, response_);
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  Request request_;
  Response response_;
};

class ReflectionEndpoint final
    : public GrpcEndpoint,
      private v1alpha::ServerReflection::CallbackService {
 public:
  grpc::Service& service() override { return *this; }
  // What is open is cut when the server shuts down.
  void Stop() override {}

 private:
  grpc::ServerBidiReactor<Request, Response>* ServerReflectionInfo(
      grpc::CallbackServerContext* /*context*/) override {
    return new Stream;
  }
};

}  // namespace

std::unique_ptr<GrpcEndpoint> MakeReflectionEndpoint() {
  return std::make_unique<ReflectionEndpoint>();
}

}  // namespace rknnd::transport
