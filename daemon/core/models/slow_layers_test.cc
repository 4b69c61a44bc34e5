// What is said of layers that no kernel is made for.

#include "daemon/core/models/slow_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rknnd::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

driver::LayerInfo Slow(const std::string& type, const std::string& name) {
  driver::LayerInfo layer;
  layer.type = type;
  layer.name = name;
  layer.data_type = "FLOAT16";
  layer.input_shape = "1x8x9x9x9";
  layer.output_shape = "1x8x7x7x7";
  layer.kernel = "oneDNN ref:any";
  layer.is_slow = true;
  return layer;
}

driver::ModelInfo ModelOf(std::vector<driver::LayerInfo> layers) {
  driver::ModelInfo model;
  model.programs.resize(1);
  model.programs[0].layers = std::move(layers);
  return model;
}

TEST(SlowLayersTextTest, NamesTheLayerAndWhatToChange) {
  EXPECT_EQ(
      SlowLayersText("x", ModelOf({Slow("Conv", "conv3")})),
      "model 'x': no kernel is made on this CPU for 1 of its layers, "
      "which a reference loop computes: each may take a hundred times as "
      "long as other layers; store its weights in the model as constants "
      "(initializers) instead of computing them while it runs, or export the "
      "model quantised to int8. "
      "They are: 'conv3' (Conv, 1x8x9x9x9 -> 1x8x7x7x7) by oneDNN ref:any");
}

TEST(SlowLayersTextTest, ModelWithKernelsForAllHasNoText) {
  auto fast = Slow("Conv", "conv3");
  fast.is_slow = false;
  EXPECT_EQ(SlowLayersText("x", ModelOf({fast})), "");
  EXPECT_EQ(SlowLayersText("x", {}), "");
}

TEST(SlowLayersTextTest, FiveAreNamedAndTheRestCounted) {
  std::vector<driver::LayerInfo> layers;
  for (int i = 0; i < 7; ++i) {
    layers.push_back(Slow("Conv", "conv" + std::to_string(i)));
  }
  EXPECT_THAT(SlowLayersText("x", ModelOf(layers)),
              AllOf(HasSubstr("for 7 of its layers"), HasSubstr("'conv4'"),
                    Not(HasSubstr("'conv5'")), HasSubstr(", and 2 more")));
}

TEST(SlowLayersTextTest, LayerThatIsSlowInSeveralShapesIsOne) {
  driver::ModelInfo model = ModelOf({Slow("Conv", "conv3")});
  model.programs.push_back(model.programs[0]);
  EXPECT_THAT(SlowLayersText("x", model), HasSubstr("for 1 of its layers"));
}

TEST(SlowLayersTextTest, NamesOfAModelAreBoundedAndHarmless) {
  auto layer = Slow("Conv", std::string(100'000, 'n') + "\n");
  layer.input_shape = std::string(100'000, '1');
  const std::string text =
      SlowLayersText("a\nb" + std::string(62, '\xe9'), ModelOf({layer}));
  EXPECT_LT(text.size(), 1024U);
  EXPECT_THAT(text, AllOf(HasSubstr("'a?b"), Not(HasSubstr("\n")),
                          Not(HasSubstr("\xe9")), HasSubstr("nn...'")));
}

}  // namespace
}  // namespace rknnd::core
