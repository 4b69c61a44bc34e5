#include "daemon/core/scheduling/admission.h"

#include <algorithm>
#include <bit>
#include <random>
#include <string>
#include <vector>

#include "daemon/core/testing/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr CoreChoice kAnyChoice{7, false}, kGang{7, true}, kPair{3, true};
constexpr CoreChoice On(uint32_t core) { return {uint32_t{1} << core, false}; }

const Board kThreeCores{7, 0, ""};

Stream Frames(const char* model, double rate, base::Nanoseconds run,
              CoreChoice cores, Priority priority = Priority::kMedium,
              uint32_t count = 1) {
  return {model, cores, priority, static_cast<uint64_t>(rate * 1000),
          run,   count};
}

TEST(AdmissionTest, EmptyBoardGivesUpToTheCeiling) {
  // 10 ms a frame: 90 a second on one core, and no more of one context.
  const Admission one =
      PlanStream({}, Frames("a", 90, 10 * kMs, On(0)), kThreeCores);
  EXPECT_TRUE(one.fits);
  EXPECT_EQ(one.rate_mhz, 90'000U);
  EXPECT_EQ(one.load_ppm, 0U);
  EXPECT_THAT(one.reason, IsEmpty());
  EXPECT_FALSE(
      PlanStream({}, Frames("a", 91, 10 * kMs, On(0)), kThreeCores).fits);
}

TEST(AdmissionTest, OneContextRunsOneFrameAtATimeWhateverIsFree) {
  const Admission answer =
      PlanStream({}, Frames("a", 100, 10 * kMs, kAnyChoice), kThreeCores);
  EXPECT_FALSE(answer.fits);
  EXPECT_EQ(answer.rate_mhz, 90'000U);
  EXPECT_THAT(answer.reason, HasSubstr("more contexts get more"));
}

TEST(AdmissionTest, AlikeStreamsShareWhatThereIs) {
  // Three cores' 2.7 between six of them.
  const Admission six = PlanStream(
      {}, Frames("a", 45, 10 * kMs, kAnyChoice, Priority::kMedium, 6),
      kThreeCores);
  EXPECT_TRUE(six.fits);
  EXPECT_EQ(six.rate_mhz, 45'000U);
}

TEST(AdmissionTest, ReasonNamesWhatTakesTheRoom) {
  const std::vector<Stream> admitted = {
      Frames("yolox", 27, 10 * kMs, On(0)),
      Frames("yolox", 27, 10 * kMs, On(0), Priority::kMedium, 2)};
  const Admission answer =
      PlanStream(admitted, Frames("face", 30, 10 * kMs, On(0)), kThreeCores);
  EXPECT_FALSE(answer.fits);
  EXPECT_EQ(answer.rate_mhz, 9'000U);
  EXPECT_EQ(answer.load_ppm, 810'000U);
  EXPECT_EQ(answer.reason,
            "3 streams of model 'yolox' take 81 % of core 0, 90 % are given to "
            "streams in all, and this one needs 30 %");
  // The other cores have room.
  EXPECT_TRUE(PlanStream(admitted, Frames("face", 30, 10 * kMs, kAnyChoice),
                         kThreeCores)
                  .fits);
}

TEST(AdmissionTest, StreamsThatMayChooseLeaveRoomToThoseThatMayNot) {
  // Two cores' worth that may run anywhere: one core is to be had whole.
  const std::vector<Stream> admitted = {
      Frames("a", 90, 10 * kMs, kAnyChoice, Priority::kMedium, 2)};
  EXPECT_TRUE(
      PlanStream(admitted, Frames("b", 90, 10 * kMs, On(1)), kThreeCores).fits);
  const Admission more =
      PlanStream({admitted[0], Frames("b", 90, 10 * kMs, On(1))},
                 Frames("c", 1, 10 * kMs, On(2)), kThreeCores);
  EXPECT_FALSE(more.fits);
  EXPECT_EQ(more.rate_mhz, 0U);
  EXPECT_THAT(more.reason, HasSubstr("of cores 0 to 2"));
}

TEST(AdmissionTest, GangTakesOfAllItsCores) {
  const std::vector<Stream> admitted = {Frames("gang", 45, 10 * kMs, kPair)};
  const Admission beside =
      PlanStream(admitted, Frames("gang", 45, 10 * kMs, kPair), kThreeCores);
  EXPECT_TRUE(beside.fits);
  EXPECT_EQ(beside.rate_mhz, 45'000U);
  EXPECT_EQ(PlanStream(admitted, Frames("b", 1, 10 * kMs, On(2)), kThreeCores)
                .rate_mhz,
            90'000U);
}

TEST(AdmissionTest, WhatAGangWaitsForCountsToo) {
  // Each of its frames keeps the pair's cores for 10 ms, and for half of the
  // longest other run before: 45 % of them.
  const std::vector<Stream> admitted = {Frames("gang", 30, 10 * kMs, kPair)};
  const Admission single =
      PlanStream(admitted, Frames("b", 45, 10 * kMs, On(0)), kThreeCores);
  EXPECT_TRUE(single.fits);
  EXPECT_EQ(single.rate_mhz, 45'000U);
  // The other way round likewise.
  EXPECT_EQ(PlanStream({Frames("b", 45, 10 * kMs, On(0))},
                       Frames("gang", 30, 10 * kMs, kPair), kThreeCores)
                .rate_mhz,
            30'000U);
}

TEST(AdmissionTest, ShortFrameDoesNotFitWhereItsLengthBreaksAGang) {
  const std::vector<Stream> admitted = {Frames("gang", 80, 10 * kMs, kPair),
                                        Frames("b", 10, 1 * kMs, On(1))};
  const Admission answer =
      PlanStream(admitted, Frames("long", 1, 40 * kMs, On(0)), kThreeCores);
  EXPECT_FALSE(answer.fits);
  EXPECT_EQ(answer.rate_mhz, 0U);
}

TEST(AdmissionTest, HigherClassesCountAndLowerOnesGiveWay) {
  const std::vector<Stream> admitted = {
      Frames("high", 60, 10 * kMs, On(0), Priority::kHigh),
      Frames("low", 30, 10 * kMs, On(0), Priority::kLow)};
  const Stream medium = Frames("medium", 30, 10 * kMs, On(0));
  const Admission beside = PlanStream(admitted, medium, kThreeCores);
  EXPECT_TRUE(beside.fits);
  EXPECT_EQ(beside.rate_mhz, 30'000U);
  EXPECT_THAT(beside.reason,
              HasSubstr("1 stream of lower priority will be passed over"));
  Stream low = medium;
  low.priority = Priority::kLow;
  EXPECT_FALSE(PlanStream(admitted, low, kThreeCores).fits);
}

TEST(AdmissionTest, LentCoresAreNotCounted) {
  const Board lent{7, 1, "'other' (pid 12)"};
  const Stream three =
      Frames("a", 90, 10 * kMs, kAnyChoice, Priority::kMedium, 3);
  EXPECT_TRUE(PlanStream({}, three, kThreeCores).fits);
  EXPECT_EQ(PlanStream({}, three, lent).rate_mhz, 60'000U);
  for (const CoreChoice& nowhere : {On(0), kPair, kGang}) {
    const Admission none = PlanStream({}, Frames("a", 1, kMs, nowhere), lent);
    EXPECT_FALSE(none.fits);
    EXPECT_EQ(none.rate_mhz, 0U);
    EXPECT_EQ(none.reason,
              "core 0 is lent to 'other' (pid 12): this stream can run nowhere "
              "else");
  }
  // What cannot run takes nothing from anybody.
  EXPECT_EQ(PlanStream({Frames("gang", 80, 10 * kMs, kGang)},
                       Frames("a", 1, 10 * kMs, On(1)), lent)
                .rate_mhz,
            90'000U);
}

TEST(AdmissionTest, AbsurdNumbersAreAnswered) {
  Stream absurd =
      Frames("a", 0, 1, kAnyChoice, Priority::kMedium, kMostStreams);
  absurd.rate_mhz = UINT64_MAX;
  const Admission answer = PlanStream({absurd, absurd}, absurd, kThreeCores);
  EXPECT_FALSE(answer.fits);
  EXPECT_EQ(answer.rate_mhz, 0U);
}

TEST(AdmissionTest, NamesOfCoresAreWords) {
  EXPECT_EQ(NameCores(1), "core 0");
  EXPECT_EQ(NameCores(5), "cores 0 and 2");
  EXPECT_EQ(NameCores(7), "cores 0 to 2");
  EXPECT_EQ(NameCores(0b1011), "cores 0, 1, 3");
}

TEST(AdmissionTest, ManySmallStreamsAreCountedAsOne) {
  // As many as one session may declare, so that a plan must not compare each
  // with each.
  std::vector<Stream> admitted;
  for (int i = 0; i < 200'000; ++i) {
    Stream stream = Frames("a", 0, kMs, i % 2 == 0 ? kPair : On(0),
                           i % 3 == 0 ? Priority::kLow : Priority::kMedium);
    stream.rate_mhz = 1;
    admitted.push_back(stream);
  }
  const Admission answer =
      PlanStream(admitted, Frames("b", 1, kMs, kGang), kThreeCores);
  EXPECT_TRUE(answer.fits);
  EXPECT_GT(answer.load_ppm, 100'000U);
}

// ---- against trying everything
// -----------------------------------------------

// Loads in tenths of a core, of which nine are given away.
constexpr int kRoom = 9;

struct Load {
  CoreChoice cores;
  int tenths = 0;  // of one core, or of each of a gang's
};

// Whether some way to split the loads in whole tenths keeps to the room. (Where
// all is whole, a split in whole tenths exists when any does.)
bool CanSplit(const std::vector<Load>& loads, size_t next,
              std::vector<int>* room) {
  if (next == loads.size()) {
    return std::all_of(room->begin(), room->end(),
                       [](int left) { return left >= 0; });
  }
  const Load& load = loads[next];
  std::vector<size_t> cores;
  for (size_t core = 0; core < room->size(); ++core) {
    if ((load.cores.cores >> core & 1) != 0) cores.push_back(core);
  }
  if (load.cores.gang) {
    for (const size_t core : cores) (*room)[core] -= load.tenths;
    const bool can = CanSplit(loads, next + 1, room);
    for (const size_t core : cores) (*room)[core] += load.tenths;
    return can;
  }
  if (cores.size() > 1 && load.tenths > 0) {
    for (int here = 0; here <= load.tenths; ++here) {
      (*room)[cores[0]] -= here;
      std::vector<Load> rest = loads;
      rest[next] = {{load.cores.cores & (load.cores.cores - 1), false},
                    load.tenths - here};
      const bool can = (*room)[cores[0]] >= 0 && CanSplit(rest, next, room);
      (*room)[cores[0]] += here;
      if (can) return true;
    }
    return false;
  }
  (*room)[cores[0]] -= load.tenths;
  const bool can = CanSplit(loads, next + 1, room);
  (*room)[cores[0]] += load.tenths;
  return can;
}

TEST(AdmissionTest, LargestRateIsThatOfTryingEverything) {
  const CoreChoice choices[] = {
      kAnyChoice,           On(0), On(1), On(2), CoreChoice{3, false},
      CoreChoice{6, false}, kGang, kPair};
  int tried = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t bound) {
      return static_cast<int>(random() % bound);
    };
    // One kind of gang at most, or none: nothing has to wait for others.
    std::vector<CoreChoice> used;
    const bool with_gang = below(4) == 0;
    const CoreChoice gang = below(2) == 0 ? kGang : kPair;
    const auto choose = [&] {
      if (with_gang) return gang;
      return choices[below(6)];
    };
    std::vector<Load> loads;
    std::vector<Stream> admitted;
    for (int i = below(5); i > 0; --i) {
      const Load load{choose(), below(7)};
      Stream stream = Frames("a", load.tenths, 100 * kMs, load.cores);
      if (below(4) == 0) stream.priority = Priority::kLow;
      if (stream.priority == Priority::kMedium) loads.push_back(load);
      admitted.push_back(stream);
    }
    const CoreChoice asked = choose();
    // 100 ms: one a second is a tenth.
    int most = -1;
    for (int rate = 0; rate <= kRoom; ++rate) {
      std::vector<Load> with = loads;
      with.push_back({asked, rate});
      std::vector<int> room(3, kRoom);
      if (!CanSplit(with, 0, &room)) break;
      most = rate;
    }
    if (most < 0) continue;  // nobody would have admitted these
    ++tried;
    for (int rate = 0; rate <= kRoom + 1; ++rate) {
      const Admission answer = PlanStream(
          admitted, Frames("b", rate, 100 * kMs, asked), kThreeCores);
      ASSERT_EQ(answer.fits, rate <= most)
          << "seed " << seed << " rate " << rate << " most " << most << " "
          << answer.reason;
      ASSERT_EQ(answer.rate_mhz / 1000, static_cast<uint64_t>(most))
          << "seed " << seed;
    }
  }
  EXPECT_GT(tried, 1000);
}

TEST(AdmissionTest, MoreStreamsNeverMakeMoreRoom) {
  const CoreChoice choices[] = {kAnyChoice, On(0), On(1), On(2), kGang, kPair};
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const auto stream = [&] {
      return Frames("a", static_cast<double>(1 + random() % 40),
                    static_cast<base::Nanoseconds>(1 + random() % 20) * kMs,
                    choices[random() % 6], static_cast<Priority>(random() % 3));
    };
    std::vector<Stream> admitted;
    const Stream asked = stream();
    uint64_t before = PlanStream(admitted, asked, kThreeCores).rate_mhz;
    for (int i = 0; i < 6; ++i) {
      admitted.push_back(stream());
      const Admission answer = PlanStream(admitted, asked, kThreeCores);
      ASSERT_LE(answer.rate_mhz, before) << "seed " << seed << " step " << i;
      before = answer.rate_mhz;
      // The rate that is named fits, and one more does not.
      Stream again = asked;
      again.rate_mhz = answer.rate_mhz;
      ASSERT_TRUE(PlanStream(admitted, again, kThreeCores).fits);
      again.rate_mhz = answer.rate_mhz + 1;
      ASSERT_FALSE(PlanStream(admitted, again, kThreeCores).fits);
    }
  }
}

}  // namespace
}  // namespace rknnd::core
