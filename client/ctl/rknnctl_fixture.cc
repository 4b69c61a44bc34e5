#include "client/ctl/rknnctl_fixture.h"

#include <poll.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/posix/socket.h"

namespace rknnd::client {
namespace {

using base::Block;

std::string Slurp(const std::string& path) {
  std::string text;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char buffer[4096];
    size_t got = 0;
    while ((got = std::fread(buffer, 1, sizeof(buffer), file)) > 0) {
      text.append(buffer, got);
    }
    std::fclose(file);
  }
  return text;
}

// False when nothing comes for as long as a test may take.
bool Readable(int fd) {
  pollfd wait{fd, POLLIN, 0};
  return ::poll(&wait, 1, 30'000) > 0;
}

}  // namespace

Result RknnctlTest::Run(const std::string& arguments,
                        const std::string& environment) const {
  const std::string out = folder_.File("out");
  const std::string err = folder_.File("err");
  const std::string command = "env -u RKNND_TARGET " + environment +
                              " " RKNND_BINARY_ROOT "/bin/rknnctl " +
                              arguments + " >" + out + " 2>" + err +
                              " </dev/null";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): a shell for its redirections
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Slurp(out), Slurp(err)};
}

ScriptedDaemon::ScriptedDaemon(const std::string& path, Script script)
    : script_(std::move(script)) {
  auto listener = base::ListenUnix(path, 0600);
  EXPECT_TRUE(listener.ok());
  listener_ = *std::move(listener);
  thread_ = std::thread([this] { Serve(); });
}

ScriptedDaemon::ScriptedDaemon(const std::string& path,
                               std::optional<wire::Report> report)
    : ScriptedDaemon(path,
                     [report = std::move(report)](const wire::Frame& request) {
                       std::vector<wire::Frame> frames;
                       if (report) frames.push_back(ReplyTo(request, *report));
                       return frames;
                     }) {}

ScriptedDaemon::~ScriptedDaemon() { thread_.join(); }

void ScriptedDaemon::Serve() {
  if (!Readable(listener_.get())) return;
  auto connection = base::Accept(listener_.get());
  if (!connection.ok()) return;
  const int fd = connection->get();
  while (Readable(fd)) {
    auto received = wire::ReceiveFrame(fd, Block::kNo);
    if (!received.ok()) return;
    if (received->kind == wire::FrameResult::Kind::kEndOfFile) return;
    if (received->kind != wire::FrameResult::Kind::kFrame) continue;
    const wire::Frame& request = received->frame;
    std::vector<wire::Frame> frames;
    if (request.verb == wire::Verb::kHello) {
      wire::Welcome welcome{};
      welcome.protocol = wire::kProtocolCurrent;
      welcome.session = 5;
      wire::SetText(welcome.daemon_version, "0.1.0");
      frames.push_back(ReplyTo(request, welcome));
    } else {
      frames = script_(request);
    }
    for (const wire::Frame& frame : frames) {
      if (!wire::SendFrame(fd, frame, Block::kYes).ok()) return;
    }
  }
}

wire::Frame RefusalOf(const wire::Frame& request, base::Code code,
                      std::string_view message) {
  wire::Frame reply = ReplyTo(request, wire::Empty{});
  reply.code = code;
  reply.body = wire::EncodeFailure(message);
  return reply;
}

}  // namespace rknnd::client
