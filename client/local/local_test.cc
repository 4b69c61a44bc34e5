// Loads librknnd-local.so as the client library does.

#include "client/local/local.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/unique_fd.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"

namespace rknnd::client {
namespace {

using ::testing::HasSubstr;

class LocalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path =
        std::string(RKNND_BINARY_ROOT) + "/lib/" RKNND_LOCAL_LIBRARY;
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is per thread
    ASSERT_NE(library, nullptr) << dlerror();
    connect_ = reinterpret_cast<rknnd_local_connect_function>(
        dlsym(library, RKNND_LOCAL_CONNECT));
    ASSERT_NE(connect_, nullptr);
    library_ = library;
  }

  base::UniqueFd Connect(const char* sharing = "full") {
    const char* error = "";
    base::UniqueFd socket(connect_(sharing, &error));
    EXPECT_TRUE(socket.valid()) << error;
    return socket;
  }

  static wire::Frame Ask(int socket, wire::Verb verb,
                         std::vector<std::byte> body) {
    wire::Frame request;
    request.verb = verb;
    request.request = 1;
    request.body = std::move(body);
    EXPECT_TRUE(wire::SendFrame(socket, request, base::Block::kYes).ok());
    auto reply = wire::ReceiveFrame(socket, base::Block::kYes);
    EXPECT_TRUE(reply.ok() && reply->kind == wire::FrameResult::Kind::kFrame);
    return reply.ok() ? std::move(reply->frame) : wire::Frame{};
  }

  static wire::Frame SayHello(int socket) {
    wire::Hello hello{};
    hello.protocol_min = wire::kProtocolMinimum;
    hello.protocol_max = wire::kProtocolCurrent;
    auto body = wire::Encode(hello);
    return Ask(socket, wire::Verb::kHello, *std::move(body));
  }

  rknnd_local_connect_function connect_ = nullptr;
  void* library_ = nullptr;
};

TEST_F(LocalTest, SpeaksTheSessionProtocol) {
  const base::UniqueFd socket = Connect();
  const wire::Frame welcome = SayHello(socket.get());
  ASSERT_EQ(welcome.code, base::Code::kOk);
  EXPECT_EQ(welcome.fds.size(), 2U);
  const auto message = wire::Decode<wire::Welcome>(welcome.body);
  ASSERT_TRUE(message.ok());
  EXPECT_STREQ(message->soc, "rk3588");
  EXPECT_EQ(message->cores, 3U);
}

TEST_F(LocalTest, StartsAgainAfterItsLastConnectionWasClosed) {
  for (int round = 0; round < 5; ++round) {
    const base::UniqueFd socket = Connect();
    EXPECT_EQ(SayHello(socket.get()).code, base::Code::kOk);
  }
}

TEST_F(LocalTest, ConnectionsOfOneProcessShareTheDaemon) {
  const base::UniqueFd one = Connect();
  const base::UniqueFd two = Connect();
  ASSERT_EQ(SayHello(one.get()).code, base::Code::kOk);
  ASSERT_EQ(SayHello(two.get()).code, base::Code::kOk);
  auto request =
      wire::Encode(wire::ReportRequest{rknnd_v1_ReportKind_REPORT_STATUS});
  const wire::Frame reply =
      Ask(one.get(), wire::Verb::kReport, *std::move(request));
  const auto report = wire::Decode<wire::Report>(reply.body);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->session_count, 2U);
}

TEST_F(LocalTest, TwoKindsOfSharingDoNotMix) {
  const base::UniqueFd full = Connect("full");
  const char* error = nullptr;
  EXPECT_EQ(connect_("vendor", &error), -1);
  EXPECT_THAT(error, HasSubstr("'full'"));
}

TEST_F(LocalTest, UnknownSharingIsRefused) {
  const char* error = nullptr;
  EXPECT_EQ(connect_("half", &error), -1);
  EXPECT_THAT(error, HasSubstr("'half'"));
}

TEST_F(LocalTest, ExportsOneNameOnly) {
  EXPECT_EQ(dlsym(library_, "pb_decode"), nullptr);
  EXPECT_EQ(dlsym(library_, "_ZN5rknnd7Runtime3RunEv"), nullptr);
}

TEST_F(LocalTest, HostsSignalsAreNotTakenByItsThreads) {
  const base::UniqueFd socket = Connect();
  ASSERT_EQ(SayHello(socket.get()).code, base::Code::kOk);
  // Blocked here, the signal stays pending, because nobody else may take it.
  sigset_t usr1, before, pending;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, &before);
  kill(getpid(), SIGUSR1);
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGUSR1), 1);
  int taken = 0;
  sigwait(&usr1, &taken);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

using LocalDeathTest = LocalTest;

TEST_F(LocalDeathTest, ProcessEndsWithAnOpenConnection) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const int socket = Connect().release();
        SayHello(socket);
        std::exit(7);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST_F(LocalDeathTest, ForkedChildIsToldAndEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // At its exit a child of a process with threads may wait for ever for a lock
  // of the leak checker's, which one of those threads held.
  const char* const given = std::getenv("ASAN_OPTIONS");
  setenv(
      "ASAN_OPTIONS",
      (std::string(given == nullptr ? "" : given) + ":detect_leaks=0").c_str(),
      1);
  EXPECT_EXIT(
      {
        const base::UniqueFd socket = Connect();
        const pid_t child = fork();
        if (child == 0) {
          const char* error = nullptr;
          const bool refused = connect_("full", &error) == -1;
          std::exit(refused ? 5 : 6);
        }
        int status = 0;
        waitpid(child, &status, 0);
        std::exit(WEXITSTATUS(status));
      },
      ::testing::ExitedWithCode(5), "");
}

}  // namespace
}  // namespace rknnd::client
