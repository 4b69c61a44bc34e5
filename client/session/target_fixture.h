// A session against a daemon that lives in the test, dies and comes back.

#ifndef CLIENT_SESSION_TARGET_FIXTURE_H_
#define CLIENT_SESSION_TARGET_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/posix/socket.h"
#include "client/include/rknn_api.h"
#include "client/session/fake_daemon.h"
#include "client/session/target.h"

namespace rknnd::client {

class TargetTest : public testing::Test {
 protected:
  static constexpr uint32_t kContext = 0x4001;

  static std::span<const std::byte> DataOf(const char* text) {
    return std::as_bytes(std::span(text, strlen(text)));
  }
  static std::string TestSocket() {
    return testing::TempDir() + "session_target_test." +
           std::to_string(getpid()) + ".sock";
  }

  SessionOptions Options() {
    SessionOptions options;
    options.dial = [path = daemon_.path()]() -> base::Expected<base::UniqueFd> {
      auto socket = base::ConnectUnix(path);
      if (socket.ok()) return socket;
      return base::Error{base::Code::kUnavailable, "nobody is there"};
    };
    options.name = "the test's daemon";
    return options;
  }

  void Open() { Open(Options()); }
  void Open(SessionOptions options) {
    auto opened = Target::Open(std::move(options));
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    target_ = *std::move(opened);
  }

  base::Expected<std::shared_ptr<const ModelDescription>> Create(
      uint32_t number, const char* model = "model") {
    auto source = ModelSource::OfBytes(DataOf(model), std::nullopt);
    ContextRequest request;
    request.number = number;
    return target_->CreateContext(request, *source);
  }

  base::Expected<std::shared_ptr<const ModelDescription>> CreateFollower(
      uint32_t number, uint32_t owner, const char* model) {
    auto source = ModelSource::OfBytes(DataOf(model), std::nullopt);
    ContextRequest request;
    request.number = number;
    request.weights_of = owner;
    return target_->CreateContext(request, *source);
  }

  // A context with memory on both sides, ready to run.
  void MakeRunnable(uint32_t number) {
    ASSERT_TRUE(Create(number).ok());
    for (const Direction direction : {Direction::kInput, Direction::kOutput}) {
      auto buffer = target_->AllocateBuffer(64, 0);
      ASSERT_TRUE(buffer.ok());
      Binding binding;
      binding.buffer = buffer->number;
      binding.size = 64;
      binding.type = RKNN_TENSOR_FLOAT32;
      ASSERT_TRUE(target_->Bind(number, direction, 0, binding).ok());
    }
  }

  base::Expected<RunReport> Run(uint32_t number, uint32_t timeout_ms = 0) {
    RunRequest request;
    request.context = number;
    request.timeout_ms = timeout_ms;
    return target_->Run(request);
  }

  FakeDaemon daemon_{TestSocket()};
  std::shared_ptr<Target> target_;
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_TARGET_FIXTURE_H_
