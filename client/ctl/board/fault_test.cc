#include "client/ctl/board/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rknnd::client {
namespace {

using testing::HasSubstr;

wire::FaultReport SomeFault() {
  wire::FaultReport report{};
  report.id = 7;
  report.matched = 12;
  report.fired = 4;
  wire::SetText(report.fault.kind, "hang");
  wire::SetText(report.fault.model, "face.onnx");
  report.fault.has_core = true;
  report.fault.core = 1;
  report.fault.every = 3;
  report.fault.ms = 250;
  return report;
}

TEST(FaultVerbTest, NumberOrAllIsWhatCanBeCleared) {
  EXPECT_EQ(ParseFaultId("all"), 0U);
  EXPECT_EQ(ParseFaultId("12"), 12U);
  for (const char* wrong :
       {"", "0", "-1", "1x", "everything", "1 2", "99999999999999999999999"}) {
    EXPECT_EQ(ParseFaultId(wrong), std::nullopt) << wrong;
  }
}

TEST(FaultVerbTest, ListShowsWhichJobsAndHowOften) {
  wire::FaultList list;
  EXPECT_EQ(FaultListOutput(list).text, "no faults are set\n");
  list.faults = {SomeFault()};
  const Output output = FaultListOutput(list);
  EXPECT_THAT(output.text, HasSubstr("core 1, model face.onnx, every 3"));
  EXPECT_THAT(output.text, HasSubstr("250 ms"));
  ASSERT_EQ(output.json.size(), 1U);
  EXPECT_EQ(output.json[0]["id"], 7);
  EXPECT_EQ(output.json[0]["kind"], "hang");
  EXPECT_EQ(output.json[0]["core"], 1);
  EXPECT_EQ(output.json[0]["status"], nullptr);
  EXPECT_EQ(output.json[0]["matched"], 12);
  EXPECT_EQ(output.json[0]["fired"], 4);
}

TEST(FaultVerbTest, NumberIsFoundInTheAnswerToSet) {
  const Output output = FaultSetOutput(SomeFault());
  EXPECT_EQ(output.json["id"], 7);
  EXPECT_EQ(output.text,
            "fault 7 is set: hang, 250 ms, core 1, model face.onnx, every 3\n");
}

TEST(FaultVerbTest, FaultOfAllJobsIsSaidWithoutAnyOfThem) {
  wire::FaultReport report{};
  report.id = 1;
  wire::SetText(report.fault.kind, "throttle");
  report.fault.factor = 4;
  report.fault.every = 1;
  EXPECT_EQ(FaultSetOutput(report).text,
            "fault 1 is set: throttle, 4 x as long\n");
}

TEST(FaultVerbTest, OptionsThatWereNotGivenAreNotSaid) {
  FaultOptions options;
  options.kind = "hang";
  wire::Fault fault = ToFaultMessage(options);
  EXPECT_STREQ(fault.kind, "hang");
  EXPECT_FALSE(fault.has_core);
  EXPECT_FALSE(fault.has_status);
  EXPECT_EQ(fault.every, 1U);
  options.core = 0;
  fault = ToFaultMessage(options);
  EXPECT_TRUE(fault.has_core);
}

}  // namespace
}  // namespace rknnd::client
