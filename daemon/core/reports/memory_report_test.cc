// The SRAM table as people and scripts read it.

#include "daemon/core/reports/memory_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rknnd::core {
namespace {

using ::testing::HasSubstr;

driver::ModelInfo ReportedModel() {
  driver::ModelInfo model;
  model.name = "net";
  model.weight_size = 4000;
  driver::ProgramInfo program;
  program.internal_size = 0x3000;
  driver::LayerInfo layer;
  layer.type = "ConvRelu";
  program.layers.push_back(layer);
  driver::TensorPlace a;
  a.name = "a";
  a.data_type = "INT8";
  a.shape = "1,3,8,8";
  a.native_shape = "1,1,8,8,16";
  a.offset = 0x1000;
  a.size = 0x400;
  a.written = 100;
  a.read = 50;
  driver::TensorPlace b = a;
  b.name = "b";
  b.size = 0x1800;
  program.tensors = {a, b};
  driver::TensorAttr input;
  input.name = "in";
  input.dims = {1, 8, 8, 3};
  input.type = driver::TensorType::kInt8;
  input.size_with_stride = 0x180;
  program.inputs = program.native_inputs = {input};
  driver::TensorAttr output;
  output.name = "out";
  output.dims = {1, 10};
  output.size_with_stride = 40;
  program.outputs = {output};
  program.sram.used = 0x1000;
  program.sram.saved = 77;
  program.sram.entries = {{1, 0x200, 0xe00, 77}};
  model.programs.push_back(program);
  return model;
}

TEST(MemoryReportTest, SramTableIsAsTheGuideShowsIt) {
  const driver::ModelInfo model = ReportedModel();
  const driver::ProgramInfo& program = model.programs[0];

  EXPECT_EQ(SramTable(model, program, program.sram, 0xff001000),
            // clang-format off
"Total allocated Internal SRAM Size: 4096, Addr: [0xff001000, 0xff002000)\n"
"-------------------------------------------------------------------------------------------------------------------\n"
"ID  User            Tensor  DataType  OrigShape  NativeShape   |  [Start      End)        Size        |  SramHit\n"
"-------------------------------------------------------------------------------------------------------------------\n"
"1   InputOperator   in      INT8      (1,8,8,3)  (1,8,8,3)     |  \\           \\           0x00000180  |  \\\n"
"2   ConvRelu        a       INT8      (1,3,8,8)  (1,1,8,8,16)  |  0xff004000  0xff004400  0x00000400  |  0x00000000\n"
"3   ConvRelu        b       INT8      (1,3,8,8)  (1,1,8,8,16)  |  0xff001200  0xff002a00  0x00001800  |  0x00000e00\n"
"4   OutputOperator  out     FLOAT     (1,10)     (1,10)        |  \\           \\           0x00000028  |  \\\n"
"-------------------------------------------------------------------------------------------------------------------\n"
"Total Weight Memory Size: 4000\n"
"Total Internal Memory Size: 12288\n"
"Predict Internal Memory RW Amount: 300\n"
"Predict Weight Memory RW Amount: 4000\n"
"Predict SRAM Hit RW Amount: 77\n");
  // clang-format on
}

TEST(MemoryReportTest, TextStartsWithTheModel) {
  const driver::ModelInfo model = ReportedModel();
  driver::DeviceInfo device;
  device.kind = "soft";
  device.soc = "rk3588";
  EXPECT_THAT(ModelText(model, model.programs[0], nullptr, 0, device),
              HasSubstr("RKNN Model Information, name: net, target: soft, "
                        "target platform: rk3588, framework name: ONNX"));
}

TEST(MemoryReportTest, ContextsOwnSramIsShownWhereItHasAny) {
  const driver::ModelInfo model = ReportedModel();
  driver::SramPlan own;
  own.used = 8192;
  driver::DeviceInfo device;
  device.sram_base = 0xff001000;
  device.sram_total = 1 << 20;
  const std::string text =
      ModelText(model, model.programs[0], &own, 4096, device);
  EXPECT_THAT(text, HasSubstr("Internal SRAM Size: 8192, Addr: [0xff002000, "
                              "0xff004000)"));
  EXPECT_THAT(ModelText(model, model.programs[0], nullptr, 0, device),
              HasSubstr("No SRAM is used without RKNN_FLAG_ENABLE_SRAM"));
  EXPECT_THAT(ModelText(model, model.programs[0], nullptr, 0, {}),
              HasSubstr("has no SRAM"));
}

}  // namespace
}  // namespace rknnd::core
