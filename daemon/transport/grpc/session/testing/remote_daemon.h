// A daemon whose sessions come over gRPC, and a client that says what a test
// wants, message by message. gRPC itself is in the .cc.

#ifndef DAEMON_TRANSPORT_GRPC_SESSION_TESTING_REMOTE_DAEMON_H_
#define DAEMON_TRANSPORT_GRPC_SESSION_TESTING_REMOTE_DAEMON_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/values/expected.h"
#include "daemon/transport/session/testing/test_daemon.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"

namespace rknnd::v1 {
class ToClient;
class ToDaemon;
}  // namespace rknnd::v1

namespace rknnd::transport::testing {

class RemoteDaemon {
 public:
  // `insecure`: its clients are operators.
  explicit RemoteDaemon(const TestDaemonOptions& options = {},
                        bool insecure = false);
  ~RemoteDaemon();

  TestDaemon& daemon() { return daemon_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  // As the daemon's end: all calls have ended when it returns.
  void Stop();

 private:
  struct Server;
  TestDaemon daemon_;
  std::unique_ptr<Server> server_;
  std::string address_;
};

// One stream. Gives up after a minute.
class RemoteClient {
 public:
  explicit RemoteClient(const RemoteDaemon& daemon);
  // Vanishes, if it is still there.
  ~RemoteClient();

  bool Send(const v1::ToDaemon& message);
  // False: the stream has ended.
  bool Receive(v1::ToClient* message);

  struct Answer {
    base::Code code = base::Code::kUnavailable;
    std::vector<std::byte> body;
    std::vector<std::string> attachments;
    [[nodiscard]] std::string failure() const;
  };
  // Its number.
  uint32_t SendFrame(wire::Verb verb, const std::vector<std::byte>& body,
                     const std::vector<uint64_t>& attachments = {});
  void SendChunk(uint32_t request, const std::string& bytes);
  // The answer to it; what else comes meanwhile is kept for WaitForRun.
  Answer WaitFor(uint32_t request);
  template <class Message>
  Answer Call(wire::Verb verb, const Message& message) {
    const auto body = wire::Encode(message);
    EXPECT_TRUE(body.ok());
    return WaitFor(SendFrame(verb, *body));
  }
  Answer SayHello();
  base::Code Upload(const std::string& model, size_t chunk = 7);
  base::Code CreateContext(uint32_t number, const std::string& model);
  base::Code Allocate(uint32_t number, uint64_t size);
  base::Code BindTo(uint32_t context, bool output, uint32_t buffer,
                    uint64_t size);
  // As TestClient's, with tensors of `bytes`.
  void MakeReady(uint32_t context, uint64_t bytes = 64);

  struct Ended {
    base::Code code = base::Code::kUnavailable;
    std::string text;
    std::string outputs;  // what came, in its order
    uint32_t sequence = 0;
  };
  // A run of what MakeReady made; its input filled with `input`. `written`:
  // sends it before, else in the run.
  void Run(uint32_t slot, uint32_t sequence, const std::string& input,
           bool written, uint64_t output_bytes);
  Ended WaitForRun(uint32_t slot);

  // Waits for the end. The status' code and text.
  std::pair<int, std::string> End();
  // Says that nothing more comes.
  void WritesDone();
  void Cancel();

 private:
  struct Stream;
  bool Take(const v1::ToClient& message);

  std::unique_ptr<Stream> call_;
  uint32_t request_ = 0;
  struct Pending;
  std::unique_ptr<Pending> pending_;
};

}  // namespace rknnd::transport::testing

#endif  // DAEMON_TRANSPORT_GRPC_SESSION_TESTING_REMOTE_DAEMON_H_
