// Tests of what plans the use of cores: rknnctl lease and rknnctl admit,
// without a daemon.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "client/ctl/board/admit.h"
#include "client/ctl/board/lease.h"

namespace rknnd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LeaseOptionsTest, CoresAreNumbersAndRanges) {
  EXPECT_EQ(ParseCores("0"), 1U);
  EXPECT_EQ(ParseCores("0,2"), 5U);
  EXPECT_EQ(ParseCores("1-2"), 6U);
  EXPECT_EQ(ParseCores("0-1,3,3"), 11U);
  EXPECT_EQ(ParseCores("31"), 0x80000000U);
  for (const char* wrong : {"", ",", "0,", "-", "1-", "-1", "2-1", "32", "a",
                            "0 1", "0x1", "99999999999"}) {
    EXPECT_EQ(ParseCores(wrong), std::nullopt) << wrong;
  }
}

TEST(AdmitOutputTest, SaysWhetherAndHowMuchAndWhy) {
  AdmitOptions options;
  options.rate = 30;
  options.streams = 4;
  rknnd_admission admission{};
  admission.rate = 12.5F;
  admission.run_ns = 10'000'000;
  admission.load = 0.5F;
  std::strcpy(admission.reason, "core 0 is \x1b[2J full");
  const Output no = AdmissionOutput(options, admission);
  EXPECT_THAT(no.text,
              HasSubstr("no: 4 streams of 30 frames a second each do not fit"));
  EXPECT_THAT(no.text, HasSubstr("at most  12.5 frames a second each\n"));
  EXPECT_THAT(no.text, HasSubstr("10.0 ms, by the SoC's timing model"));
  EXPECT_THAT(no.text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(no.json["fits"], false);
  EXPECT_EQ(no.json["most"], 12.5);
  EXPECT_EQ(no.json["run_us"], 10'000);
  EXPECT_EQ(no.json["measured"], false);

  options.streams = 1;
  admission = {};
  admission.fits = admission.measured = 1;
  admission.rate = 90;
  admission.run_ns = 10'000'000;
  const Output yes = AdmissionOutput(options, admission);
  EXPECT_THAT(yes.text, HasSubstr("yes: 30 frames a second fit\n"));
  EXPECT_THAT(yes.text, HasSubstr("10.0 ms, measured"));
  EXPECT_THAT(yes.text, Not(HasSubstr("why")));
}

}  // namespace
}  // namespace rknnd::client
