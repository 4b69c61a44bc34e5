// Loads librknnd-remote.so as the client library does.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/values/expected.h"
#include "client/remote/remote.h"

namespace {

// Whether this process is the child of the test that forks.
bool forked_child = false;

}  // namespace

// Asked by the sanitizer of leaks before it looks. gRPC's threads are not in a
// forked child, so what only their stacks point to looks like leaks there.
// It is found by its name at run time, so it must be visible.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() {
  return forked_child ? 1 : 0;
}

namespace rknnd::client {
namespace {

using ::testing::HasSubstr;

class RemoteLibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path =
        std::string(RKNND_BINARY_ROOT) + "/lib/" RKNND_REMOTE_LIBRARY;
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is per thread
    ASSERT_NE(library, nullptr) << dlerror();
    connect_ = reinterpret_cast<rknnd_remote_connect_function>(
        dlsym(library, RKNND_REMOTE_CONNECT));
    ASSERT_NE(connect_, nullptr);
  }

  rknnd_remote_connect_function connect_ = nullptr;
};

TEST_F(RemoteLibraryTest, NothingOfGrpcIsSeenByTheProgram) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "grpc_init"), nullptr);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, RKNND_REMOTE_CONNECT), nullptr);
}

TEST_F(RemoteLibraryTest, AFailureHasAReasonAndACode) {
  const char* error = nullptr;
  int32_t code = 0;
  EXPECT_EQ(connect_("127.0.0.1:1", 10'000, nullptr, nullptr, &error, &code),
            -1);
  EXPECT_THAT(error, HasSubstr("no rknnd at 127.0.0.1:1: refused"));
  EXPECT_EQ(code, static_cast<int32_t>(base::Code::kUnavailable));
  EXPECT_EQ(connect_("", 10'000, nullptr, nullptr, nullptr, nullptr), -1);
}

// gRPC would end the process.
TEST_F(RemoteLibraryTest, TooFewDescriptorsAreAnError) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit few = {10, 10};
    const char* error = nullptr;
    int32_t code = 0;
    const bool told =
        setrlimit(RLIMIT_NOFILE, &few) == 0 &&
        connect_("127.0.0.1:1", 10'000, nullptr, nullptr, &error, &code) ==
            -1 &&
        std::string(error).find("ulimit -n") != std::string::npos &&
        code == static_cast<int32_t>(base::Code::kResourceExhausted);
    _exit(told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(RemoteLibraryTest, AForkedChildIsToldAndEnds) {
  const char* error = nullptr;
  int32_t code = 0;
  connect_("127.0.0.1:1", 10'000, nullptr, nullptr, &error, &code);
  const pid_t child = fork();
  if (child == 0) {
    forked_child = true;
    const bool refused = connect_("127.0.0.1:1", 10'000, nullptr, nullptr,
                                  &error, &code) == -1 &&
                         std::string(error).find("fork") != std::string::npos;
    // With all that is to run at a process's end.
    exit(refused ? 0 : 1);  // NOLINT(concurrency-mt-unsafe): it has no threads
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace rknnd::client
