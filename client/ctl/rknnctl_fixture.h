// For tests: the program itself, and a daemon that says what a test wants.

#ifndef CLIENT_CTL_RKNNCTL_FIXTURE_H_
#define CLIENT_CTL_RKNNCTL_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/posix/unique_fd.h"
#include "client/image/temporary_folder.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"

namespace rknnd::client {

struct Result {
  int exit_code;
  std::string out, err;
};

class RknnctlTest : public testing::Test {
 protected:
  [[nodiscard]] std::string socket_path() const { return folder_.File("s"); }
  [[nodiscard]] std::string File(const std::string& name) const {
    return folder_.File(name);
  }

  // `environment`: as for the program env.
  [[nodiscard]] Result Run(const std::string& arguments,
                           const std::string& environment = "") const;
  // The same against the daemon at socket_path().
  [[nodiscard]] Result Ask(const std::string& arguments) const {
    return Run("--target unix:" + socket_path() + " " + arguments);
  }

 private:
  TemporaryFolder folder_;
};

// Answers one connection, of which it says that it is session 5.
// Thread: any; the script runs on one of its own.
class ScriptedDaemon {
 public:
  // What is sent for a request that is no Hello.
  using Script = std::function<std::vector<wire::Frame>(const wire::Frame&)>;

  ScriptedDaemon(const std::string& path, Script script);
  // Every report with `report`, or nothing, as a daemon that hangs.
  ScriptedDaemon(const std::string& path, std::optional<wire::Report> report);
  ScriptedDaemon(const ScriptedDaemon&) = delete;
  ScriptedDaemon& operator=(const ScriptedDaemon&) = delete;
  // Waits for the connection's end.
  ~ScriptedDaemon();

 private:
  void Serve();

  const Script script_;
  base::UniqueFd listener_;
  std::thread thread_;
};

// The reply to `request`.
template <class Message>
wire::Frame ReplyTo(const wire::Frame& request, const Message& message) {
  wire::Frame reply;
  reply.verb = request.verb;
  reply.kind = wire::FrameKind::kReply;
  reply.request = request.request;
  reply.body = *wire::Encode(message);
  return reply;
}
wire::Frame RefusalOf(const wire::Frame& request, base::Code code,
                      std::string_view message);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_RKNNCTL_FIXTURE_H_
