// See calls.h. Generic byte-buffer calls, as a proxy would make them; the
// protocol's messages are made once, outside of what is timed.

#include "bench/remote/calls.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "inference/open_inference.pb.h"

namespace rknnd::bench {
namespace {

grpc::ByteBuffer Borrow(const std::string& bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size(),
                          grpc::Slice::STATIC_SLICE);
  return {&slice, 1};
}

class BareReactor final : public grpc::ServerGenericBidiReactor {
 public:
  BareReactor(const std::string& reply, bool stream)
      : reply_(Borrow(reply)), stream_(stream) {
    StartRead(&message_);
  }
  void OnReadDone(bool ok) override {
    if (!ok && !stream_) return Finish(grpc::Status::OK);
    if (ok && stream_) return StartRead(&message_);
    StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_, reply_;
  const bool stream_;
};

class BareService final : public grpc::CallbackGenericService {
 public:
  explicit BareService(size_t reply_bytes) : reply_(reply_bytes, 'x') {}
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new BareReactor(reply_, context->method() == "/bench.Bare/Stream");
  }

 private:
  const std::string reply_;
};

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // A connection of its own for each channel.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   Arguments());
}

}  // namespace

void ServeBare(const std::string& address, size_t reply_bytes) {
  BareService service(reply_bytes);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server != nullptr) server->Wait();
  std::_Exit(1);
}

struct Calls::Channel {
  explicit Channel(const std::string& address)
      : channel(Connect(address)), stub(channel) {}
  std::shared_ptr<grpc::Channel> channel;
  grpc::GenericStub stub;
};

Calls::Calls(const std::string& address)
    : channel_(std::make_unique<Channel>(address)) {
  if (!channel_->channel->WaitForConnected(std::chrono::system_clock::now() +
                                           std::chrono::seconds(20))) {
    throw std::runtime_error("nobody serves gRPC at " + address);
  }
}
Calls::~Calls() = default;

std::string Calls::Unary(const std::string& method,
                         const std::string& request) {
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const grpc::ByteBuffer message = Borrow(request);
  grpc::ByteBuffer reply;
  grpc::Status status;
  auto call =
      channel_->stub.PrepareUnaryCall(&context, method, message, &queue);
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) {
    throw std::runtime_error(method + ": " + status.error_message());
  }
  std::vector<grpc::Slice> slices;
  reply.Dump(&slices);
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

void Calls::Stream(const std::string& method, uint64_t bytes, size_t piece) {
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const std::string text(piece, 'x');
  const auto call = channel_->stub.PrepareCall(&context, method, &queue);
  const auto step = [&] {
    void* tag = nullptr;
    bool ok = false;
    if (!queue.Next(&tag, &ok) || !ok) {
      throw std::runtime_error(method + " broke");
    }
  };
  call->StartCall(nullptr);
  step();
  for (uint64_t sent = 0; sent < bytes; sent += piece) {
    call->Write(Borrow(text), nullptr);
    step();
  }
  call->WritesDone(nullptr);
  step();
  grpc::ByteBuffer reply;
  call->Read(&reply, nullptr);
  step();
  grpc::Status status;
  call->Finish(&status, nullptr);
  step();
}

struct Crowd::Members {
  struct Call {
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    grpc::ByteBuffer reply;
    grpc::Status status;
    grpc::GenericStub* stub = nullptr;
    size_t connection = 0;
  };
  using Clock = std::chrono::system_clock;

  explicit Members(Plan with) : plan(std::move(with)) {}

  void Start(Call* call) {
    call->context = std::make_unique<grpc::ClientContext>();
    call->reader = call->stub->PrepareUnaryCall(
        call->context.get(), plan.method, Borrow(plan.request), &queue);
    call->reader->StartCall();
    call->reader->Finish(&call->reply, &call->status, call);
  }
  // Milliseconds until the server wants to see it again.
  static int Pause(const Call& call) {
    const auto& trailers = call.context->GetServerTrailingMetadata();
    const auto asked = trailers.find("grpc-retry-pushback-ms");
    if (asked == trailers.end()) return 0;
    return std::atoi(
        std::string(asked->second.data(), asked->second.size()).c_str());
  }
  void Run() {
    void* tag = nullptr;
    bool ok = false;
    for (;;) {
      const auto until =
          pauses.empty() ? Clock::time_point::max() : pauses.begin()->first;
      switch (queue.AsyncNext(&tag, &ok, until)) {
        case grpc::CompletionQueue::SHUTDOWN:
          return;
        case grpc::CompletionQueue::TIMEOUT:
          break;
        case grpc::CompletionQueue::GOT_EVENT:
          End(static_cast<Call*>(tag));
      }
      while (!pauses.empty() && pauses.begin()->first <= Clock::now()) {
        Call* const call = pauses.begin()->second;
        pauses.erase(pauses.begin());
        if (!ending) Start(call);
      }
    }
  }
  void End(Call* call) {
    {
      const std::lock_guard lock(mutex);
      const grpc::StatusCode code = call->status.error_code();
      if (call->status.ok()) {
        ++counts.done;
        ++counts.done_by[call->connection];
      } else if (code == grpc::StatusCode::RESOURCE_EXHAUSTED ||
                 code == grpc::StatusCode::UNAVAILABLE) {
        ++counts.refused;
      } else {
        ++counts.failed;
        counts.last_failure = call->status.error_message();
      }
    }
    if (ending) return;
    const int pause = call->status.ok() ? 0 : Pause(*call);
    if (pause == 0) return Start(call);
    pauses.emplace(Clock::now() + std::chrono::milliseconds(pause), call);
  }

  const Plan plan;
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs;
  std::vector<std::unique_ptr<Call>> calls;
  // Calls that come again, by when. Not gRPC's alarms: Debian's gRPC looks at
  // many others for each that is set. Of the thread.
  std::multimap<Clock::time_point, Call*> pauses;
  std::atomic<bool> ending{false};
  mutable std::mutex mutex;
  Counts counts;
  std::thread thread;
};

Crowd::Crowd(const Plan& plan) : members_(std::make_unique<Members>(plan)) {
  members_->counts.done_by.resize(plan.connections);
  for (int i = 0; i < plan.connections; ++i) {
    members_->stubs.push_back(
        std::make_unique<grpc::GenericStub>(Connect(plan.address)));
    for (int c = 0; c < plan.calls; ++c) {
      auto call = std::make_unique<Members::Call>();
      call->stub = members_->stubs.back().get();
      call->connection = i;
      members_->Start(call.get());
      members_->calls.push_back(std::move(call));
    }
  }
  members_->thread =
      std::thread([members = members_.get()] { members->Run(); });
}

Crowd::~Crowd() {
  members_->ending = true;
  for (const auto& call : members_->calls) call->context->TryCancel();
  members_->queue.Shutdown();
  members_->thread.join();
}

Crowd::Counts Crowd::counts() const {
  const std::lock_guard lock(members_->mutex);
  return members_->counts;
}

namespace {

inference::ModelInferRequest InputOf(const std::string& model,
                                     const std::string& input,
                                     const std::string& datatype,
                                     std::initializer_list<int64_t> shape) {
  inference::ModelInferRequest request;
  request.set_model_name(model);
  auto& tensor = *request.add_inputs();
  tensor.set_name(input);
  tensor.set_datatype(datatype);
  for (const int64_t dim : shape) tensor.add_shape(dim);
  return request;
}

template <class Parameters>
void Name(const Region& region, Parameters& parameters) {
  parameters["shared_memory_region"].set_string_param(region.key);
  parameters["shared_memory_offset"].set_int64_param(
      static_cast<int64_t>(region.offset));
  parameters["shared_memory_byte_size"].set_int64_param(
      static_cast<int64_t>(region.size));
}

}  // namespace

std::string InferRequest(const std::string& model, const std::string& input,
                         const std::string& datatype,
                         std::initializer_list<int64_t> shape,
                         const std::string& bytes) {
  inference::ModelInferRequest request = InputOf(model, input, datatype, shape);
  request.add_raw_input_contents(bytes);
  return request.SerializeAsString();
}

std::string InferRequest(const std::string& model, const std::string& input,
                         const std::string& datatype,
                         std::initializer_list<int64_t> shape,
                         const Region& from, const std::string& output,
                         const Region& to) {
  inference::ModelInferRequest request = InputOf(model, input, datatype, shape);
  Name(from, *request.mutable_inputs(0)->mutable_parameters());
  auto& asked = *request.add_outputs();
  asked.set_name(output);
  Name(to, *asked.mutable_parameters());
  return request.SerializeAsString();
}

std::string LoadRequest(const std::string& model, const std::string& file) {
  inference::RepositoryModelLoadRequest request;
  request.set_model_name(model);
  (*request.mutable_parameters())["file:1/model.onnx"].set_bytes_param(file);
  return request.SerializeAsString();
}

}  // namespace rknnd::bench
