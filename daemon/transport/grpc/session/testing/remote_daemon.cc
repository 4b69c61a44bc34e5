#include "daemon/transport/grpc/session/testing/remote_daemon.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstring>
#include <map>
#include <utility>

#include "base/values/sha256.h"
#include "daemon/transport/grpc/authenticator.h"
#include "daemon/transport/grpc/request_budget.h"
#include "daemon/transport/grpc/session/session_endpoint.h"
#include "driver/tensor.h"
#include "proto/wire/features.h"
#include "rknnd/v1/remote.grpc.pb.h"

namespace rknnd::transport::testing {
namespace {

std::span<const std::byte> ViewOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string ModelOf(uint64_t bytes) {
  return "bytes=" + std::to_string(bytes) + " weight=1000 internal=4096";
}

}  // namespace

struct RemoteDaemon::Server {
  GrpcOptions options;
  std::unique_ptr<GrpcAuthenticator> authenticator;
  std::unique_ptr<RequestBudget> budget;
  std::unique_ptr<GrpcEndpoint> endpoint;
  std::unique_ptr<grpc::Server> server;
};

RemoteDaemon::RemoteDaemon(const TestDaemonOptions& options, bool insecure)
    : daemon_(options), server_(std::make_unique<Server>()) {
  server_->options.insecure = insecure;
  auto authenticator = GrpcAuthenticator::Create(
      server_->options, &daemon_.failures(), &daemon_.clock());
  EXPECT_TRUE(authenticator.ok()) << authenticator.status();
  server_->authenticator = *std::move(authenticator);
  server_->budget = std::make_unique<RequestBudget>(RequestBudget::Limits{
      server_->options.memory, server_->options.requests});
  GrpcEnvironment environment;
  environment.loop = &daemon_.loop();
  environment.clock = &daemon_.clock();
  environment.service = &daemon_.service();
  environment.workers = &daemon_.workers();
  environment.log = &daemon_.log();
  environment.failures = &daemon_.failures();
  environment.limits = options.limits;
  environment.authenticator = server_->authenticator.get();
  environment.budget = server_->budget.get();
  server_->endpoint = MakeSessionEndpoint(server_->options, environment);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.SetMaxReceiveMessageSize(64 << 20);
  builder.RegisterService(&server_->endpoint->service());
  server_->server = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
}

RemoteDaemon::~RemoteDaemon() { Stop(); }

void RemoteDaemon::Stop() {
  if (server_->server == nullptr) return;
  daemon_.RunOnLoop([this] { server_->endpoint->Stop(); });
  server_->server->Shutdown(std::chrono::system_clock::now() +
                            std::chrono::seconds(10));
  server_->server.reset();
  // What was posted before has run when the endpoint goes.
  daemon_.RunOnLoop([] {});
  server_->endpoint.reset();
}

struct RemoteClient::Stream {
  grpc::ClientContext context;
  std::unique_ptr<v1::Remote::Stub> stub;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ToDaemon, v1::ToClient>> stream;
  bool finished = false;
};

struct RemoteClient::Pending {
  struct Reply {
    Answer answer;
    std::vector<uint64_t> missing;  // of each attachment
    size_t at = 0;
    [[nodiscard]] bool whole() const { return at == missing.size(); }
    void Skip() {
      while (!whole() && missing[at] == 0) ++at;
    }
  };
  std::map<uint32_t, Reply> replies;
  std::string read;  // of the run that ends next
  std::map<uint32_t, Ended> ended;
};

RemoteClient::RemoteClient(const RemoteDaemon& daemon)
    : call_(std::make_unique<Stream>()), pending_(std::make_unique<Pending>()) {
  grpc::ChannelArguments arguments;
  // A connection of its own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  call_->stub = v1::Remote::NewStub(grpc::CreateCustomChannel(
      daemon.address(), grpc::InsecureChannelCredentials(), arguments));
  call_->context.set_deadline(std::chrono::system_clock::now() +
                              std::chrono::seconds(60));
  call_->stream = call_->stub->Session(&call_->context);
}

RemoteClient::~RemoteClient() {
  if (call_->finished) return;
  Cancel();
  End();
}

bool RemoteClient::Send(const v1::ToDaemon& message) {
  return call_->stream->Write(message);
}

bool RemoteClient::Receive(v1::ToClient* message) {
  return call_->stream->Read(message);
}

std::string RemoteClient::Answer::failure() const {
  wire::Frame reply;
  reply.code = code;
  reply.body = body;
  return wire::DecodeFailure(reply).message;
}

uint32_t RemoteClient::SendFrame(wire::Verb verb,
                                 const std::vector<std::byte>& body,
                                 const std::vector<uint64_t>& attachments) {
  v1::ToDaemon message;
  v1::Frame& frame = *message.mutable_frame();
  frame.set_verb(static_cast<uint32_t>(verb));
  frame.set_request(++request_);
  frame.set_body(body.data(), body.size());
  for (const uint64_t size : attachments) frame.add_attachments(size);
  Send(message);
  return request_;
}

void RemoteClient::SendChunk(uint32_t request, const std::string& bytes) {
  v1::ToDaemon message;
  message.mutable_chunk()->set_request(request);
  message.mutable_chunk()->set_data(bytes);
  Send(message);
}

bool RemoteClient::Take(const v1::ToClient& message) {
  if (message.has_frame()) {
    const v1::Frame& frame = message.frame();
    if (frame.kind() != static_cast<uint32_t>(wire::FrameKind::kReply)) {
      return true;
    }
    Pending::Reply& reply = pending_->replies[frame.request()];
    reply.answer.code = static_cast<base::Code>(frame.code());
    const auto body = ViewOf(frame.body());
    reply.answer.body.assign(body.begin(), body.end());
    reply.missing.assign(frame.attachments().begin(),
                         frame.attachments().end());
    reply.answer.attachments.resize(reply.missing.size());
    reply.Skip();
  } else if (message.has_chunk()) {
    Pending::Reply& reply = pending_->replies[message.chunk().request()];
    if (reply.whole()) return false;
    reply.answer.attachments[reply.at] += message.chunk().data();
    reply.missing[reply.at] -= message.chunk().data().size();
    reply.Skip();
  } else if (message.has_read()) {
    pending_->read += message.read().data();
  } else if (message.has_run_end()) {
    Ended& ended = pending_->ended[message.run_end().slot()];
    ended.code = static_cast<base::Code>(message.run_end().code());
    ended.text = message.run_end().text();
    ended.sequence = message.run_end().sequence();
    ended.outputs = std::exchange(pending_->read, {});
    for (const v1::Data& output : message.run_end().outputs()) {
      ended.outputs += output.data();
    }
  }
  return true;
}

RemoteClient::Answer RemoteClient::WaitFor(uint32_t request) {
  v1::ToClient message;
  for (;;) {
    const auto found = pending_->replies.find(request);
    if (found != pending_->replies.end() && found->second.whole()) {
      Answer answer = std::move(found->second.answer);
      pending_->replies.erase(found);
      return answer;
    }
    if (!Receive(&message)) return {};
    EXPECT_TRUE(Take(message));
  }
}

RemoteClient::Answer RemoteClient::SayHello() {
  wire::Hello hello{};
  hello.protocol_min = wire::kProtocolMinimum;
  hello.protocol_max = wire::kProtocolCurrent;
  hello.features = wire::kKnownFeatures;
  wire::SetText(hello.comm, "remote-test");
  return Call(wire::Verb::kHello, hello);
}

base::Code RemoteClient::Upload(const std::string& model, size_t chunk) {
  wire::UploadModel upload;
  upload.model = base::Sha256Of(ViewOf(model));
  upload.name = "test-model";
  const auto body = wire::Encode(upload);
  EXPECT_TRUE(body.ok());
  const uint32_t request =
      SendFrame(wire::Verb::kUploadModel, *body, {model.size()});
  for (size_t at = 0; at < model.size(); at += chunk) {
    SendChunk(request, model.substr(at, chunk));
  }
  return WaitFor(request).code;
}

base::Code RemoteClient::CreateContext(uint32_t number,
                                       const std::string& model) {
  wire::CreateContext create{};
  create.context = number;
  const auto id = base::Sha256Of(ViewOf(model));
  std::memcpy(create.model, id.data(), id.size());
  return Call(wire::Verb::kCreateContext, create).code;
}

base::Code RemoteClient::Allocate(uint32_t number, uint64_t size) {
  wire::AllocateBuffer allocate{};
  allocate.buffer = number;
  allocate.size = size;
  return Call(wire::Verb::kAllocateBuffer, allocate).code;
}

base::Code RemoteClient::BindTo(uint32_t context, bool output, uint32_t buffer,
                                uint64_t size) {
  wire::Bind bind{};
  bind.context = context;
  bind.output = output;
  bind.buffer = buffer;
  bind.size = size;
  bind.type = static_cast<uint32_t>(driver::TensorType::kUint8);
  bind.layout = static_cast<uint32_t>(driver::TensorLayout::kNhwc);
  return Call(wire::Verb::kBind, bind).code;
}

void RemoteClient::MakeReady(uint32_t context, uint64_t bytes) {
  if (CreateContext(context, ModelOf(bytes)) == base::Code::kNotFound) {
    ASSERT_EQ(Upload(ModelOf(bytes)), base::Code::kOk);
    ASSERT_EQ(CreateContext(context, ModelOf(bytes)), base::Code::kOk);
  }
  ASSERT_EQ(Allocate(context * 10, bytes), base::Code::kOk);
  ASSERT_EQ(Allocate(context * 10 + 1, bytes), base::Code::kOk);
  ASSERT_EQ(BindTo(context, false, context * 10, bytes), base::Code::kOk);
  ASSERT_EQ(BindTo(context, true, context * 10 + 1, bytes), base::Code::kOk);
}

void RemoteClient::Run(uint32_t slot, uint32_t sequence,
                       const std::string& input, bool written,
                       uint64_t output_bytes) {
  v1::ToDaemon message;
  constexpr size_t kAtOnce = 1 << 20;
  for (size_t at = 0; written && at < input.size(); at += kAtOnce) {
    v1::Data& data = *message.mutable_write();
    data.set_buffer(10);
    data.set_offset(at);
    data.set_data(input.substr(at, kAtOnce));
    Send(message);
  }
  v1::Run& run = *message.mutable_run();
  run.set_operation(static_cast<uint32_t>(wire::RingOperation::kRun));
  run.set_context(1);
  run.set_slot(slot);
  run.set_sequence(sequence);
  if (!written) {
    run.add_inputs()->set_buffer(10);
    run.mutable_inputs(0)->set_data(input);
  }
  if (output_bytes > 0) {
    run.add_outputs()->set_buffer(11);
    run.mutable_outputs(0)->set_size(output_bytes);
  }
  Send(message);
}

RemoteClient::Ended RemoteClient::WaitForRun(uint32_t slot) {
  v1::ToClient message;
  for (;;) {
    const auto found = pending_->ended.find(slot);
    if (found != pending_->ended.end()) {
      Ended ended = std::move(found->second);
      pending_->ended.erase(found);
      return ended;
    }
    if (!Receive(&message)) return {};
    EXPECT_TRUE(Take(message));
  }
}

std::pair<int, std::string> RemoteClient::End() {
  v1::ToClient message;
  while (Receive(&message)) {
  }
  call_->finished = true;
  const grpc::Status status = call_->stream->Finish();
  return {static_cast<int>(status.error_code()), status.error_message()};
}

void RemoteClient::WritesDone() { call_->stream->WritesDone(); }
void RemoteClient::Cancel() { call_->context.TryCancel(); }

}  // namespace rknnd::transport::testing
