// Custom operators, by a C program that knows the vendor's headers and nothing
// else, through each target, and over the daemon's death.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "driver/rknpu/testing/small_network.h"
#include "driver/soft/testing/onnx_builder.h"
#include "tests/integration/harness/client_process.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/models.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using soft::testing::OnnxBuilder;

class CustomOpsTest : public IntegrationTest {
 protected:
  // As tests/integration/programs/custom_ops.c has it. The file says nothing of
  // the shapes behind the operators.
  std::string Model() {
    OnnxBuilder builder;
    builder.Opset(1, "rknn_cst")
        .Input("x", {1, 3, 4, 5})
        .Node("Relu", {"x"}, {"a"}, "relu")
        .Node("cstDual", {"a", "x"}, {"p", "q"}, "dual", "rknn_cst")
        .Float("alpha", 0.5F)
        .Ints("axes", {1, 2, 3});
    auto* const name = builder.proto().mutable_graph()->mutable_node(1);
    auto* const attribute = name->add_attribute();
    attribute->set_name("name");
    attribute->set_type(onnx::AttributeProto::STRING);
    attribute->set_s("dual");
    builder.Node("cstNeg", {"q"}, {"r"}, "negate", "rknn_cst")
        .Node("Add", {"p", "a"}, {"s"}, "add")
        .Node("Mul", {"s", "r"}, {"y"}, "multiply")
        .Output("y", {1, 3, 4, 5})
        .Output("q", {1, 3, 4, 5});
    const std::vector<std::byte> bytes = builder.Bytes();
    return WriteFile(
        folder() + "/custom.onnx",
        std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

  int Run(const std::string& what, const std::string& target) {
    return RunProgram(
        {ProgramPath("tests/integration_custom_ops"), what, Model()}, target);
  }
};

TEST_F(CustomOpsTest, TheProgramComputesThem) {
  StartDaemon();
  EXPECT_EQ(Run("run", daemon().target()), 0);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

TEST_F(CustomOpsTest, TheProgramComputesThemInTheOwnProcess) {
  EXPECT_EQ(Run("run", kLocal), 0);
}

TEST_F(CustomOpsTest, MemoryThatIsBoundIsUsedAsItIs) {
  StartDaemon();
  EXPECT_EQ(Run("bound", daemon().target()), 0);
}

TEST_F(CustomOpsTest, WithoutThemARunNamesTheOperator) {
  StartDaemon();
  EXPECT_EQ(Run("without", daemon().target()), 0);
}

TEST_F(CustomOpsTest, AnOperatorOfTheStandardMayBeOverridden) {
  StartDaemon();
  EXPECT_EQ(Run("override", daemon().target()), 0);
}

TEST_F(CustomOpsTest, InitMayLeaveAnOperatorToTheLibrary) {
  StartDaemon();
  EXPECT_EQ(Run("decline", daemon().target()), 0);
}

TEST_F(CustomOpsTest, WhatIsWrongIsRefusedAndNothingIsLost) {
  StartDaemon();
  EXPECT_EQ(Run("wrong", daemon().target()), 0);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

TEST_F(CustomOpsTest, ACallbackThatDiesCostsItsOwnProgram) {
  StartDaemon();
  StartNeighbour();
  EXPECT_EQ(
      RunProgram({ProgramPath("tests/integration_custom_ops"), "die", Model()},
                 daemon().target(), {}, 3),
      3);
  EXPECT_TRUE(NeighbourIsWell());
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

TEST_F(CustomOpsTest, TheyOutliveTheDaemon) {
  StartDaemon();
  EXPECT_EQ(RunOverDeaths({ProgramPath("tests/integration_custom_ops"), "again",
                           Model(), "3"},
                          3),
            0);
}

// A file whose last node nobody knows, and one that has a Reshape there.
TEST_F(CustomOpsTest, CompiledModelsPauseAtTheirs) {
  StartDaemon();
  for (const char* type : {"cstFlat", "Reshape"}) {
    rknpu::testing::ProgramSpec spec = rknpu::testing::SmallNetwork();
    for (auto& node : spec.nodes) {
      if (node.type == "Reshape") node.type = type;
    }
    const std::string model =
        WriteFile(folder() + "/" + type + ".rknn", rknpu::testing::Build(spec));
    for (const std::string& target : {daemon().target(), std::string(kLocal)}) {
      EXPECT_EQ(RunProgram({ProgramPath("tests/integration_custom_ops"), "flat",
                            model, type},
                           target),
                0)
          << type;
    }
  }
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

// With the answers of the vendor's own sample.
TEST_F(CustomOpsTest, APublishedModelGivesItsAnswers) {
  const std::string shared = SharedFolder() + "/rknn/";
  const std::string vectors = shared + "vectors/dual_residual_";
  if (!std::filesystem::exists(shared + "dual_residual_rk3588.rknn")) {
    GTEST_SKIP() << "dual_residual_rk3588.rknn is not in RKNND_SHARED";
  }
  StartDaemon();
  EXPECT_EQ(
      RunProgram({ProgramPath("tests/integration_custom_ops"), "residual",
                  shared + "dual_residual_rk3588.rknn",
                  vectors + "input_0_nhwc.npy", vectors + "input_1_nhwc.npy",
                  vectors + "output_0.bin", vectors + "output_1.bin"},
                 daemon().target()),
      0);
}

#ifdef RKNND_TESTS_TCP
TEST_F(CustomOpsTest, AnotherMachineComputesTheRest) {
  StartDaemon({.more = {"--grpc", "127.0.0.1:0", "--grpc-insecure"}});
  EXPECT_EQ(Run("run", "tcp://" + daemon().grpc_address()), 0);
}
#endif

}  // namespace
}  // namespace rknnd::integration
