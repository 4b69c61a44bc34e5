// Makes a program one that uses gRPC itself: its own memory has copies of
// variables of libgrpc++ then, which that library's initialisers fill.

#include <grpcpp/completion_queue.h>

namespace {

[[gnu::constructor]] void UseGrpc() {
  grpc::CompletionQueue queue;
  queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) continue;
}

}  // namespace
