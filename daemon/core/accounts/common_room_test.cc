// What one user may take of what all have together: whoever comes first leaves
// a tenth of each kind to those who have next to nothing.

#include "daemon/core/accounts/common_room.h"

#include <string>
#include <vector>

#include "base/posix/map_count.h"
#include "base/posix/memfd.h"
#include "base/posix/testing/no_mappings.h"
#include "daemon/core/testing/core_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::HasSubstr;
using testing::TestSession;

TEST(CommonRoomTest, LastTenthIsForThoseWhoHaveLittle) {
  const CommonRoom room{1000, 10};
  EXPECT_TRUE(room.Allows(0, 0, 900));
  EXPECT_FALSE(room.Allows(0, 0, 901));
  EXPECT_FALSE(room.Allows(900, 900, 1));
  EXPECT_FALSE(room.Allows(900, 21, 1));
  EXPECT_TRUE(room.Allows(900, 0, 20));
  EXPECT_TRUE(room.Allows(900, 19, 1));
  EXPECT_FALSE(room.Allows(900, 20, 1));
}

TEST(CommonRoomTest, NobodyGetsMoreThanThereIs) {
  const CommonRoom room{1000, 10};
  EXPECT_TRUE(room.Allows(999, 0, 1));
  EXPECT_FALSE(room.Allows(1000, 0, 1));
  EXPECT_FALSE(room.Allows(2000, 0, 1)) << "it was more once";
  EXPECT_FALSE(room.Allows(1, 0, UINT64_MAX));
}

TEST(CommonRoomTest, AllIsForAnybodyWhereNothingIsKept) {
  EXPECT_TRUE((CommonRoom{1000, 0}.Allows(0, 0, 1000)));
  EXPECT_TRUE((CommonRoom{3, 10}.Allows(2, 2, 1))) << "too few to share out";
  EXPECT_EQ((CommonRoom{UINT64_MAX, 10}.kept() / (UINT64_MAX / 10)), 1U);
}

class KeptFreeTest : public testing::CoreTest {
 protected:
  static constexpr uint32_t kGreedy = 1000;
  static constexpr uint32_t kNewcomer = 1001;

  KeptFreeTest() { options.kept_free = 10; }
  void Restart() { StartService(); }

  absl::Status TryOpen(uint32_t uid, int32_t pid = 100) {
    auto opened =
        service->OpenSession({pid, uid, {}, "cam", false},
                             std::make_shared<testing::RecordingSink>(),
                             std::make_shared<testing::RecordingLog>());
    return opened.status();
  }
  // So many go well, then none; the reason.
  template <class Try>
  static std::string TakeAll(uint64_t most, Try attempt) {
    for (uint64_t i = 0; i <= most; ++i) {
      const absl::Status taken = attempt(static_cast<uint32_t>(i));
      if (taken.ok()) continue;
      EXPECT_EQ(i, most) << taken;
      EXPECT_TRUE(absl::IsResourceExhausted(taken)) << taken;
      return std::string(taken.message());
    }
    ADD_FAILURE() << "all was given";
    return "";
  }
};

TEST_F(KeptFreeTest, SessionsAreLeftToNewcomers) {
  options.sessions = 200;
  Restart();
  EXPECT_THAT(TakeAll(180, [&](uint32_t) { return TryOpen(kGreedy); }),
              HasSubstr("user 1000 has 180 of the 200 sessions that there are "
                        "for all users: the last 20 are kept for those who "
                        "have at most 4 (limit 'kept_free', 10 %)"));
  for (uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(TryOpen(kNewcomer).ok());
  EXPECT_FALSE(TryOpen(kNewcomer).ok());
  EXPECT_TRUE(TryOpen(kNewcomer + 1).ok());
}

TEST_F(KeptFreeTest, ContextsAreLeftToNewcomers) {
  options.limits.contexts = 10;  // 160 for all
  Restart();
  std::vector<TestSession> sessions;
  for (int32_t pid = 1; pid <= 16; ++pid) {
    sessions.push_back(Open(pid, kGreedy));
  }
  ASSERT_EQ(Upload(sessions[0], "name=m"), absl::OkStatus());
  EXPECT_THAT(TakeAll(144,
                      [&](uint32_t i) {
                        return *Create(sessions[i / 10], i + 1, "name=m");
                      }),
              HasSubstr("contexts"));
  EXPECT_EQ(Create(Open(50, kNewcomer), 1, "name=m"), absl::OkStatus());
}

TEST_F(KeptFreeTest, DescriptorsAreLeftToNewcomers) {
  options.descriptors = 1000;  // three quarters of them for sessions
  Restart();
  const TestSession greedy = Open(1, kGreedy);
  // Its session has eight, a buffer two.
  EXPECT_THAT(TakeAll((676 - 8) / 2,
                      [&](uint32_t i) {
                        return AllocateNow(greedy, i + 1, 4096, 0).status();
                      }),
              HasSubstr("user 1000 has 676 of the 750 open files"));
  EXPECT_FALSE(TryOpen(kGreedy).ok());
  const TestSession newcomer = Open(2, kNewcomer);
  EXPECT_TRUE(AllocateNow(newcomer, 1, 4096, 0).ok());
  EXPECT_EQ(Upload(newcomer, "name=m"), absl::OkStatus());
}

TEST_F(KeptFreeTest, MappingsAreLeftToNewcomers) {
  options.mappings = 1000;  // three quarters of them for sessions
  Restart();
  const TestSession greedy = Open(1, kGreedy);
  // Its session has four.
  EXPECT_THAT(TakeAll(675 - 4,
                      [&](uint32_t i) {
                        return AllocateNow(greedy, i + 1, 4096, 0).status();
                      }),
              HasSubstr("user 1000 has 675 of the 750 mappings"));
  EXPECT_FALSE(TryOpen(kGreedy).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(*Upload(greedy, "name=g")));
  const TestSession newcomer = Open(2, kNewcomer);
  EXPECT_TRUE(AllocateNow(newcomer, 1, 4096, 0).ok());
  EXPECT_EQ(Upload(newcomer, "name=m"), absl::OkStatus());
  EXPECT_EQ(Create(newcomer, 1, "name=m"), absl::OkStatus());
}

TEST_F(KeptFreeTest, MappingsOfModelsCountForWhoseTurnLoadedThem) {
  options.mappings = 1000;
  Restart();
  const TestSession greedy = Open(1, kGreedy);
  // Of four each, beside its session's.
  EXPECT_THAT(TakeAll((675 - 4) / 4,
                      [&](uint32_t i) -> absl::Status {
                        const std::string name = "name=" + std::to_string(i);
                        const auto uploaded = Upload(greedy, name);
                        if (!uploaded->ok()) return *uploaded;
                        return *Create(greedy, i + 1, name);
                      }),
              HasSubstr("of the 750 mappings"));
  const TestSession newcomer = Open(2, kNewcomer);
  EXPECT_EQ(Upload(newcomer, "name=m"), absl::OkStatus());
}

TEST_F(KeptFreeTest, BuffersCountForAllThatTheirFaultsMayMap) {
  options.mappings = 1000;
  options.incoherent = true;
  Restart();
  const TestSession greedy = Open(1, kGreedy);
  EXPECT_THAT(TakeAll((675 - 4) / 5,
                      [&](uint32_t i) {
                        return AllocateNow(greedy, i + 1, 4096, 0).status();
                      }),
              HasSubstr("mappings"));
}

TEST_F(KeptFreeTest, ModelsAreLoadedWhereTheirCompilersHaveMappingsOnly) {
  Restart();
  const TestSession one = Open(1, kGreedy);
  {
    const base::testing::NoMappings none(base::MostMappings() / 8 - 100);
    const auto refused = Upload(one, "name=m");
    ASSERT_TRUE(absl::IsResourceExhausted(*refused)) << *refused;
    EXPECT_THAT(std::string(refused->message()),
                HasSubstr("mappings that the kernel allows it"));
  }
  EXPECT_EQ(Upload(one, "name=m"), absl::OkStatus());
}

TEST_F(KeptFreeTest, AddressSpaceIsLeftToNewcomers) {
  options.address_space = 1000 * 4096;
  Restart();
  const TestSession greedy = Open(1, kGreedy);
  EXPECT_THAT(TakeAll(900,
                      [&](uint32_t i) {
                        return AllocateNow(greedy, i + 1, 4096, 0).status();
                      }),
              HasSubstr("user 1000 has 3686400 of the 4096000 bytes of "
                        "'address_space'"));
  const TestSession newcomer = Open(2, kNewcomer);
  EXPECT_TRUE(AllocateNow(newcomer, 1, 20 * 4096, 0).ok());
  EXPECT_FALSE(AllocateNow(newcomer, 2, 4096, 0).ok());
  EXPECT_TRUE(AllocateNow(Open(3, kNewcomer + 1), 1, 4096, 0).ok());
}

TEST_F(KeptFreeTest, WeightsCountForWhoseTurnLoadedThem) {
  options.address_space = 1'000'000;
  Restart();
  const TestSession greedy = Open(1, kGreedy);
  EXPECT_EQ(Upload(greedy, "weight=800000 name=a"), absl::OkStatus());
  ASSERT_EQ(Create(greedy, 1, "weight=800000 name=a"), absl::OkStatus());
  const auto refused = Upload(greedy, "weight=150000 name=b");
  EXPECT_THAT(std::string(refused->message()),
              HasSubstr("user 1000 has 800000 of the 1000000 bytes"));
  EXPECT_EQ(Upload(greedy, "weight=100000 name=c"), absl::OkStatus());
  ASSERT_EQ(Create(greedy, 2, "weight=100000 name=c"), absl::OkStatus());
  const TestSession newcomer = Open(2, kNewcomer);
  EXPECT_EQ(Upload(newcomer, "weight=20000 name=d"), absl::OkStatus());
}

TEST_F(KeptFreeTest, InternalMemoryLeavesRoomToo) {
  options.address_space = uint64_t{1000} * 4096;
  Restart();
  const TestSession greedy = Open(1, kGreedy);
  const std::string large = "internal=3750000 name=large";
  ASSERT_EQ(Upload(greedy, large), absl::OkStatus());
  const auto refused = Create(greedy, 1, large, 0, /*core_mask=*/1);
  EXPECT_THAT(std::string(refused->message()),
              HasSubstr("internal memory of 3750000 bytes"));
  EXPECT_THAT(std::string(refused->message()), HasSubstr("'kept_free'"));
}

TEST_F(KeptFreeTest, ModelsThatNobodyUsesGoBeforeAnybodyIsRefused) {
  options.address_space = 1'000'000;
  Restart();
  const TestSession greedy = Open(1, kGreedy);
  ASSERT_EQ(Upload(greedy, "weight=800000 name=a"), absl::OkStatus());
  ASSERT_EQ(Create(greedy, 1, "weight=800000 name=a"), absl::OkStatus());
  ASSERT_TRUE(greedy->DestroyContext(1).ok());
  EXPECT_TRUE(AllocateNow(greedy, 1, 500'000, 0).ok());
}

TEST_F(KeptFreeTest, EachSessionHasItsPlacesForJobs) {
  // There is no common room for jobs that somebody could fill.
  const TestSession greedy = Open(1, kGreedy);
  MakeReady(greedy, 1, "name=m");
  device.HoldJobs(true);
  for (uint32_t slot = 0; slot < kJobSlots; ++slot) {
    ASSERT_TRUE(Submit(greedy, 1, slot).ok());
  }
  const TestSession newcomer = Open(2, kNewcomer);
  MakeReady(newcomer, 1, "name=m");
  EXPECT_TRUE(Submit(newcomer, 1, 0).ok());
  EXPECT_EQ(newcomer.sink->count(), 0U) << "it waits for its turn";
  device.HoldJobs(false);
  while (device.Release()) {
  }
  RunReady();
  EXPECT_EQ(newcomer.sink->last().status, absl::OkStatus());
}

TEST_F(KeptFreeTest, IsChangedByAReload) {
  options.sessions = 100;
  Restart();
  TakeAll(90, [&](uint32_t) { return TryOpen(kGreedy); });
  options.kept_free = 5;
  ASSERT_TRUE(service->Reconfigure(options).ok());
  TakeAll(5, [&](uint32_t) { return TryOpen(kGreedy); });
}

}  // namespace
}  // namespace rknnd::core
