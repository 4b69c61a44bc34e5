// How many calls gRPC holds, those included whose peers have taken them back:
// it keeps them until their code has ended. gRPC asks it for each call's
// context and returns that with the call's last breath.

#ifndef DAEMON_TRANSPORT_GRPC_LIVE_CALLS_H_
#define DAEMON_TRANSPORT_GRPC_LIVE_CALLS_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>

namespace rknnd::transport {

// Thread: any. `count` outlives it.
class LiveCalls final : public grpc::ContextAllocator {
 public:
  explicit LiveCalls(std::atomic<int64_t>* count) : count_(count) {}

  grpc::CallbackServerContext* NewCallbackServerContext() override {
    count_->fetch_add(1, std::memory_order_relaxed);
    return new grpc::CallbackServerContext;
  }
  grpc::GenericCallbackServerContext* NewGenericCallbackServerContext()
      override {
    count_->fetch_add(1, std::memory_order_relaxed);
    return new grpc::GenericCallbackServerContext;
  }
  void Release(grpc::CallbackServerContext* context) override {
    delete context;
    count_->fetch_sub(1, std::memory_order_relaxed);
  }
  void Release(grpc::GenericCallbackServerContext* context) override {
    delete context;
    count_->fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t>* const count_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_LIVE_CALLS_H_
