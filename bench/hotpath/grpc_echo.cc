// See grpc_echo.h. Generic byte-buffer calls: no generated code to build.

#include "bench/hotpath/grpc_echo.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>

#include "base/posix/clock.h"

namespace rknnd::bench {
namespace {

class EchoReactor final : public grpc::ServerGenericBidiReactor {
 public:
  EchoReactor() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class EchoService final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* /*context*/) override {
    return new EchoReactor;
  }
};

}  // namespace

void ServeGrpcEcho(const std::string& address) {
  EchoService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server != nullptr) server->Wait();
  std::_Exit(1);
}

struct GrpcEchoClient::Channel {
  explicit Channel(const std::string& address)
      : channel(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        stub(channel) {
    channel->WaitForConnected(std::chrono::system_clock::now() +
                              std::chrono::seconds(10));
  }
  std::shared_ptr<grpc::Channel> channel;
  grpc::GenericStub stub;
};

GrpcEchoClient::GrpcEchoClient(const std::string& address)
    : channel_(std::make_unique<Channel>(address)) {}
GrpcEchoClient::~GrpcEchoClient() = default;

void GrpcEchoClient::Round(int count, Samples* samples) {
  const base::MonotonicClock clock;
  const grpc::Slice slice(std::string(16, 'x'));
  const grpc::ByteBuffer request(&slice, 1);
  for (int i = 0; i < count; ++i) {
    const base::Nanoseconds start = clock.Now();
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    grpc::ByteBuffer reply;
    grpc::Status status;
    auto call = channel_->stub.PrepareUnaryCall(&context, "/bench.Echo/Echo",
                                                request, &queue);
    call->StartCall();
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    if (!ok || !status.ok()) return;
    samples->Add(clock.Now() - start);
  }
}

}  // namespace rknnd::bench
