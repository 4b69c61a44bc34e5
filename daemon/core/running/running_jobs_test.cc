// Jobs that are on a core: who sees that, and since when.

#include <string>

#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::TestSession;

constexpr uint32_t kSecondCore = 2;

class RunningJobsTest : public testing::CoreTest {
 protected:
  RunningJobsTest() { device.HoldJobs(true); }
};

TEST_F(RunningJobsTest, ClientIsToldOfAJobOnceItHasACore) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16", /*flags=*/0, kSecondCore);
  ASSERT_TRUE(Submit(session, 1, /*slot=*/4, /*sequence=*/9).ok());
  ASSERT_TRUE(Submit(session, 1, /*slot=*/5, /*sequence=*/9).ok());
  EXPECT_THAT(session.sink->begun(), IsEmpty());
  RunReady();
  EXPECT_THAT(session.sink->begun(), ElementsAre(Pair(4U, 9U)));
  ASSERT_TRUE(device.Release());
  RunReady();
  EXPECT_THAT(session.sink->begun(), ElementsAre(Pair(4U, 9U), Pair(5U, 9U)));
  ASSERT_TRUE(device.Release());
}

TEST_F(RunningJobsTest, StatusSaysWhoHasACoreAndSinceWhen) {
  const TestSession session = Open(123);
  MakeReady(session, 1, "bytes=16 name=net", /*flags=*/0, kSecondCore);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  Advance(7 * base::kSecond);
  auto cores = service->Status().cores;
  ASSERT_EQ(cores.size(), 3U);
  EXPECT_EQ(cores[0].running, 0);
  EXPECT_EQ(cores[1].running, 7 * base::kSecond);
  EXPECT_THAT(cores[1].holder, HasSubstr("pid 123"));
  EXPECT_EQ(cores[1].session, session->id());

  ASSERT_TRUE(device.Release());
  cores = service->Status().cores;
  EXPECT_EQ(cores[1].running, 0);
  EXPECT_EQ(cores[1].holder, "");
}

TEST_F(RunningJobsTest, StatusNamesAGangsJobOnEachOfItsCores) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16", /*flags=*/0, kGang01);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  Advance(base::kSecond);
  const auto cores = service->Status().cores;
  EXPECT_EQ(cores[0].running, base::kSecond);
  EXPECT_EQ(cores[1].running, base::kSecond);
  EXPECT_EQ(cores[2].running, 0);
  ASSERT_TRUE(device.Release());
}

}  // namespace
}  // namespace rknnd::core
