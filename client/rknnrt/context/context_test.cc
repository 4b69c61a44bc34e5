// What a context does beyond what programs see of it, which is in api_test.cc.

#include "client/rknnrt/context/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/posix/socket.h"
#include "client/session/fake_daemon.h"

namespace rknnd::client {
namespace {

using ::testing::ElementsAre;

TEST(ContextTest, CallThatEndsAfterTheContextShowsNothing) {
  FakeDaemon daemon(testing::TempDir() + "context_test." +
                    std::to_string(getpid()) + ".sock");
  SessionOptions options;
  options.dial = [&] { return base::ConnectUnix(daemon.path()); };
  options.name = "the test's daemon";
  auto target = Target::Open(std::move(options));
  ASSERT_TRUE(target.ok()) << target.error().message;
  const auto source =
      ModelSource::OfBytes(std::as_bytes(std::span("model", 5)), std::nullopt);
  ASSERT_TRUE(source.ok());
  ContextRequest request;
  request.number = 7;
  auto model = (*target)->CreateContext(request, *source);
  ASSERT_TRUE(model.ok()) << model.error().message;
  Context context(7, 0, *target, *model);
  const float values[kFakeElements] = {};
  rknn_input input = {};
  input.buf = const_cast<float*>(values);
  input.size = sizeof values;
  input.type = RKNN_TENSOR_FLOAT32;
  input.fmt = RKNN_TENSOR_NHWC;
  ASSERT_TRUE(context.SetInputs({&input, 1}).ok());
  // With its next request the daemon looks at what it is shown.
  (void)(*target)->GetMemorySize(7);
  EXPECT_THAT(daemon.seen().copiers, ElementsAre(7));
  ASSERT_TRUE(context.Destroy().ok());
  (void)context.SetInputs({&input, 1});
  (void)(*target)->GetMemorySize(7);
  EXPECT_THAT(daemon.seen().copiers, ElementsAre());
}

}  // namespace
}  // namespace rknnd::client
