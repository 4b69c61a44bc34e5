#include "client/ctl/accuracy/accuracy_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace rknnd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LayerAccuracy Layer(const char* type, const char* name, double entire,
                    double single) {
  LayerAccuracy layer;
  layer.type = type;
  layer.name = name;
  layer.simulator.entire = Distance{entire, 4.1079};
  layer.simulator.single = Distance{single, 0.1981};
  return layer;
}

AccuracyReport Report(double entire = 0.99202) {
  AccuracyReport report;
  report.output_dir = "./snapshot";
  report.layers = {Layer("Conv", "464", entire, 0.99998)};
  return report;
}

// The lines below the legend.
std::string Body(const std::string& text) {
  return text.substr(text.find("\n\n") + 2);
}

TEST(AccuracyTableTest, LooksAsTheGuideSays) {
  EXPECT_EQ(Body(AccuracyText(Report(), false)),
            "layer_name  simulator_error\n"
            "            entire            single\n"
            "            cos       euc     cos       euc\n"
            "[Conv] 464  0.99202 | 4.1079  0.99998 | 0.1981\n"
            "\n"
            "tensors and this table are in ./snapshot\n");
}

TEST(AccuracyTableTest, ARuntimeHasColumnsOfItsOwn) {
  AccuracyReport report = Report();
  report.has_runtime = true;
  report.layers[0].runtime.entire = Distance{0.5, 12};

  EXPECT_EQ(Body(AccuracyText(report, false)),
            "layer_name  simulator_error                     runtime_error\n"
            "            entire            single            entire         "
            "single_sim\n"
            "            cos       euc     cos       euc     cos       euc  "
            "cos       euc\n"
            "[Conv] 464  0.99202 | 4.1079  0.99998 | 0.1981  0.50000 | 12   "
            "-       | -\n"
            "\n"
            "tensors and this table are in ./snapshot\n");
}

TEST(AccuracyTableTest, LowCosinesAreYellowAndLowerOnesRed) {
  EXPECT_THAT(AccuracyText(Report(0.99), true), Not(HasSubstr("\x1b")));
  EXPECT_THAT(AccuracyText(Report(0.9899), true),
              HasSubstr("\x1b[33m0.98990 | 4.1079\x1b[0m  0.99998"));
  EXPECT_THAT(AccuracyText(Report(0.9), true), HasSubstr("\x1b[33m"));
  EXPECT_THAT(AccuracyText(Report(0.8999), true),
              HasSubstr("\x1b[31m0.89990 | 4.1079\x1b[0m"));
  EXPECT_THAT(
      AccuracyText(Report(std::numeric_limits<double>::quiet_NaN()), true),
      HasSubstr("\x1b[31mnan     | 4.1079\x1b[0m"));
  EXPECT_THAT(AccuracyText(Report(0.1), false), Not(HasSubstr("\x1b")));
}

TEST(AccuracyTableTest, TheFirstLayerWithInfIsNamed) {
  AccuracyReport report = Report();
  report.layers.push_back(Layer("ConvRelu", "465", 0, 0));
  report.first_inf = 1;
  report.inf_in = "simulator";

  EXPECT_THAT(AccuracyText(report, false),
              HasSubstr("the first layer with inf or nan is [ConvRelu] 465, in "
                        "the simulator\n"));
  EXPECT_EQ(AccuracyJson(report)["first_inf"],
            Json({{"name", "465"}, {"type", "ConvRelu"}, {"in", "simulator"}}));
}

TEST(AccuracyTableTest, JsonHasNullWhereThereIsNothing) {
  AccuracyReport report = Report(std::numeric_limits<double>::quiet_NaN());
  Json json = AccuracyJson(report);
  EXPECT_EQ(json["layers"][0]["name"], "464");
  EXPECT_EQ(json["layers"][0]["type"], "Conv");
  EXPECT_TRUE(json["layers"][0]["simulator"]["entire"]["cos"].is_null());
  EXPECT_EQ(json["layers"][0]["simulator"]["single"]["euc"], 0.1981);
  EXPECT_TRUE(json["layers"][0]["runtime"].is_null());
  EXPECT_TRUE(json["first_inf"].is_null());
  EXPECT_EQ(json["output_dir"], "./snapshot");

  report.has_runtime = true;
  report.layers[0].runtime.entire = Distance{1, 0};
  json = AccuracyJson(report);
  EXPECT_EQ(json["layers"][0]["runtime"]["entire"]["cos"], 1);
  EXPECT_TRUE(json["layers"][0]["runtime"]["single_sim"].is_null());
}

TEST(AccuracyTableTest, NamesCannotActOnTheTerminal) {
  AccuracyReport report = Report();
  report.layers[0].name = "a\x1b[2Jb";
  EXPECT_THAT(AccuracyText(report, false), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace rknnd::client
