// One test: from the entry in the ring to its completion the daemon allocates
// nothing. A program of its own, as it replaces operator new.

#include <gtest/gtest.h>

#include <cstdint>

#include "base/posix/testing/allocations.h"
#include "daemon/transport/session/testing/test_daemon.h"

namespace rknnd::transport {
namespace {

using testing::TestClient;
using testing::TestDaemon;
using testing::TestDaemonOptions;

// What the whole process allocates while frames are run, all threads together.
uint64_t AllocationsOfFrames(base::Nanoseconds spin) {
  TestDaemonOptions options;
  options.spin = spin;
  TestDaemon daemon(options);
  TestClient client(daemon.Connect());
  client.SayHello();
  client.MakeReady(1);
  client.MakeReady(2);
  const auto run = [&client](int frames) {
    for (int i = 0; i < frames; ++i) {
      const uint32_t slot = static_cast<uint32_t>(i) % wire::kRingEntries;
      client.Submit(1 + slot % 2, slot);
      EXPECT_EQ(client.WaitFor(slot), base::Code::kOk);
    }
  };
  // What the loader and the loop have left to do about the models may fall into
  // the first thousand.
  uint64_t during = 0;
  for (int thousand = 0; thousand < 4; ++thousand) {
    const uint64_t before = base::testing::Allocations();
    run(1000);
    during = base::testing::Allocations() - before;
    if (during == 0) break;
  }
  return during;
}

TEST(HotPathTest, FrameAllocatesNothingFromRingToCompletion) {
  EXPECT_EQ(AllocationsOfFrames(0), 0U);
}

TEST(HotPathTest, NorDoesOneThatIsCaughtAwake) {
  EXPECT_EQ(AllocationsOfFrames(50 * base::kMicrosecond), 0U);
}

}  // namespace
}  // namespace rknnd::transport
