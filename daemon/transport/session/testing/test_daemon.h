// The transport with the real core behind it and a fake device below, on
// threads of its own, and a client to talk to it that can be as hostile as a
// test wants.

#ifndef DAEMON_TRANSPORT_SESSION_TESTING_TEST_DAEMON_H_
#define DAEMON_TRANSPORT_SESSION_TESTING_TEST_DAEMON_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/service.h"
#include "daemon/core/testing/fake_device.h"
#include "daemon/transport/session/event_log.h"
#include "daemon/transport/session/ring/fences.h"
#include "daemon/transport/session/ring/workers.h"
#include "daemon/transport/session/server.h"
#include "driver/memory/heap.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"
#include "proto/wire/ring.h"

namespace rknnd::transport::testing {

class RecordingEventLog final : public EventLog {
 public:
  void Write(Severity severity, const std::string& text) override;
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  mutable base::Mutex mutex_;
  std::vector<std::string> lines_ RKNND_GUARDED_BY(mutex_);
};

struct TestDaemonOptions {
  core::SessionLimits limits;
  ServerLimits server_limits;
  uint32_t cores = 2;
  base::Nanoseconds spin = 0;
  bool incoherent = false;  // as core::ServiceOptions
  Board* board = nullptr;
};

// Its clock stands still, so that no timer fires by itself.
class TestDaemon {
 public:
  explicit TestDaemon(const TestDaemonOptions& options = {});
  ~TestDaemon();

  // The client's end of a new connection.
  base::UniqueFd Connect(bool admin = false);
  // Runs `task` on the loop and waits for it.
  void RunOnLoop(const std::function<void()>& task);
  // Timers that are due after `time` have fired when it returns.
  void Advance(base::Nanoseconds time);
  // Waits until what the service says satisfies `wanted`.
  void WaitUntil(const std::function<bool(const core::StatusReport&)>& wanted);
  [[nodiscard]] core::StatusReport Status();

  core::testing::FakeDevice& device() { return *device_; }
  SessionServer& server() { return *server_; }
  core::Service& service() { return *service_; }
  Workers& workers() { return *workers_; }
  Fences& fences() { return *fences_; }
  RecordingEventLog& log() { return log_; }
  // What other share sockets are made of.
  base::EventLoop& loop() { return *loop_; }
  base::FakeClock& clock() { return clock_; }
  FailureLog& failures() { return *failures_; }

 private:
  class Timers;

  void Run(const TestDaemonOptions& options, const std::function<void()>& up);

  base::FakeClock clock_;
  RecordingEventLog log_;
  std::unique_ptr<base::EventLoop> loop_;
  std::unique_ptr<base::EventLoop> loader_, pager_;
  std::unique_ptr<core::testing::FakeDevice> device_;
  std::optional<driver::Heaps> heaps_;
  std::unique_ptr<Workers> workers_;
  std::optional<Fences> fences_;
  std::unique_ptr<core::Service> service_;
  std::optional<FailureLog> failures_;
  std::unique_ptr<SessionServer> server_;
  std::thread loop_thread_, loader_thread_, pager_thread_;
};

// A socket at which processes of their own find the daemon.
struct ServedFolder {
  void Serve(TestDaemon* daemon) const {
    daemon->RunOnLoop([this, daemon] {
      auto listener = ListenAt(path, 0600);
      ASSERT_TRUE(listener.ok()) << listener.status();
      ASSERT_TRUE(daemon->server().Serve(*std::move(listener), false).ok());
    });
  }

  const base::TemporaryFolder folder = *base::TemporaryFolder::Make();
  const std::string path = folder.path() + "/session.sock";
};

// One end of a connection.
class TestClient {
 public:
  explicit TestClient(base::UniqueFd socket) : socket_(std::move(socket)) {}

  // Sends a request and receives its answer; log events are kept aside.
  wire::Frame Call(wire::Verb verb, std::vector<std::byte> body,
                   std::vector<base::UniqueFd> fds = {});
  template <class Message>
  wire::Frame Call(wire::Verb verb, const Message& message,
                   std::vector<base::UniqueFd> fds = {}) {
    auto body = wire::Encode(message);
    EXPECT_TRUE(body.ok());
    return Call(verb, *std::move(body), std::move(fds));
  }
  // Says Hello and maps the ring.
  wire::Frame SayHello(uint32_t protocol_min = wire::kProtocolMinimum,
                       uint32_t protocol_max = wire::kProtocolCurrent);
  // Reads until the end of the connection.
  void ExpectEnd();

  base::Code Upload(const std::string& model);
  base::Code CreateContext(uint32_t number, const std::string& model);
  base::Code Allocate(uint32_t number, uint64_t size, uint32_t flags = 0);
  base::Code BindTo(uint32_t context, bool output, uint32_t buffer);
  // A context of a small model with buffers context * 10 (input) and
  // context * 10 + 1 (output), ready to run.
  void MakeReady(uint32_t context);
  void Submit(uint32_t context, uint32_t slot);
  // The same with what else `entry` says; its sequence is given here, and kRun
  // where it names no operation.
  void Submit(wire::Submission entry);
  // The code of the answer to the last submission of `slot`.
  base::Code WaitFor(uint32_t slot);
  // Whether that answer is there.
  [[nodiscard]] bool HasEnded(uint32_t slot) const;
  // Of the answer that is there.
  [[nodiscard]] std::string ReasonOf(uint32_t slot) const;
  base::Code RunOnce(uint32_t context);

  [[nodiscard]] int socket() const { return socket_.get(); }
  [[nodiscard]] int doorbell() const { return doorbell_.get(); }
  [[nodiscard]] wire::Ring* ring() const { return ring_; }
  [[nodiscard]] uint64_t session() const { return session_; }
  [[nodiscard]] const std::vector<std::string>& log() const { return log_; }
  [[nodiscard]] std::byte* buffer(uint32_t number);
  void Close() { socket_.reset(); }

 private:
  struct MappedBuffer {
    uint32_t number = 0;
    base::Mapping mapping;
  };

  base::UniqueFd socket_, memory_, doorbell_;
  base::Mapping mapping_;
  wire::Ring* ring_ = nullptr;
  uint64_t session_ = 0;
  uint32_t request_ = 0;
  uint32_t sequence_ = 0;
  std::vector<uint32_t> sequences_ = std::vector<uint32_t>(wire::kRingEntries);
  std::vector<MappedBuffer> buffers_;
  std::vector<std::string> log_;
};

// Fds this process has open.
size_t OpenFds();

}  // namespace rknnd::transport::testing

#endif  // DAEMON_TRANSPORT_SESSION_TESTING_TEST_DAEMON_H_
