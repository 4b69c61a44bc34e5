// Programs in the manner of others' run unmodified: through the daemon, in
// their own process, and under the sanitizers of addresses, undefined behaviour
// and leaks.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ostream>
#include <string>
#include <vector>

#include "driver/soft/testing/onnx_builder.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/models.h"
#include "tests/integration/harness/sanitized.h"

namespace rknnd::integration {
namespace {

using soft::testing::OnnxBuilder;

// How one is built, and what it works with.
struct Way {
  const char* name;
  const char* kind;
  bool is_local;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class ProgramsFixture : public IntegrationTest {
 protected:
  std::string Write(const std::string& name, const OnnxBuilder& builder) {
    const std::vector<std::byte> bytes = builder.Bytes();
    return WriteFile(
        folder() + "/" + name + ".onnx",
        std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  std::string Split() {
    OnnxBuilder builder;
    builder.Opset(1, "rknn_cst")
        .Input("x", {1, 2, 3, 4})
        .Node("cstSplit", {"x"}, {"high", "low"}, "split", "rknn_cst")
        .Float("limit", 1.5F)
        .Node("Relu", {"high"}, {"r"})
        .Node("Add", {"low", "x"}, {"s"})
        .Output("r", {1, 2, 3, 4})
        .Output("s", {1, 2, 3, 4});
    return Write("split", builder);
  }
  // With the plug-in of this build.
  std::string PluginFolder() {
    std::string plugins = folder() + "/plugins";
    EXPECT_EQ(mkdir(plugins.c_str(), 0755), 0);
    const std::string file = plugins + "/librkcst_split.so";
    WriteFile(file, ReadText(LibraryPath("plugins/librkcst_split.so")));
    EXPECT_EQ(chmod(file.c_str(), 0644), 0);
    return plugins;
  }
  std::string Picture() { return MakeConvNet(folder()).path; }
};

class ProgramsTest : public ProgramsFixture,
                     public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    if (!GetParam().is_local) StartDaemon();
  }

  int Run(const std::string& program, const std::vector<std::string>& arguments,
          const Environment& environment = {}, int expected = 0) {
    std::vector<std::string> all = {ProgramPath(
        std::string("tests/programs/") + GetParam().kind + "/" + program)};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const int code =
        RunProgram(all, GetParam().is_local ? kLocal : daemon().target(),
                   environment, expected);
    // 0, or what else it may be.
    EXPECT_TRUE(code == 0 || code == expected) << code;
    if (!GetParam().is_local) {
      EXPECT_TRUE(OnlyNeighbourIsLeft());
    }
    return code;
  }
};

TEST_P(ProgramsTest, BenchmarkLoop) { Run("benchmark", {Picture(), "5", "1"}); }

TEST_P(ProgramsTest, ZeroCopyWithAnEditedType) {
  Run("zero_copy", {Picture()});
}

TEST_P(ProgramsTest, TwoModelsOnOneInternalMemory) {
  Run("internal_memory", {Picture(), MakeConvNetOfSide(folder(), 20).path});
}

TEST_P(ProgramsTest, DynamicShapeBothWays) {
  Run("dynamic_shape", {MakeListedConvNet(folder(), {8, 16, 12}).path});
}

TEST_P(ProgramsTest, MultipleInputs) {
  OnnxBuilder builder;
  builder.Input("a", {1, 6})
      .Input("b", {1, 4})
      .Floats("one", {1}, {1})
      .Node("Add", {"a", "a"}, {"twice"})
      .Node("Add", {"b", "one"}, {"more"})
      .Output("twice", {1, 6})
      .Output("more", {1, 4});
  Run("multiple_inputs", {Write("two_inputs", builder)});
}

TEST_P(ProgramsTest, CustomOperatorOfTwoOutputs) {
  Run("custom_operator", {Split()});
}

TEST_P(ProgramsTest, CustomOperatorOfAPlugin) {
  const Environment plugins = {{"RKNND_OP_PLUGINS", PluginFolder()}};
  Run("custom_operator", {Split(), "plug-in"}, plugins);
}

// Beside one that is no library.
TEST_P(ProgramsTest, ProgramsOwnOperatorGoesBeforeAPlugins) {
  const std::string folder = PluginFolder();
  WriteFile(folder + "/librkcst_other.so", "no library");
  const Environment plugins = {{"RKNND_OP_PLUGINS", folder},
                               {"SPLIT_PLUGIN_FAILS", "1"}};
  EXPECT_EQ(Run("custom_operator", {Split(), "plug-in"}, plugins, 2), 2);
  Run("custom_operator", {Split()}, plugins);
}

TEST_P(ProgramsTest, PluginsThatOthersMayChangeAreNotLoaded) {
  const std::string folder = PluginFolder();
  const Environment plugins = {{"RKNND_OP_PLUGINS", folder}};
  const std::string file = folder + "/librkcst_split.so";
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  EXPECT_EQ(Run("custom_operator", {Split(), "plug-in"}, plugins, 2), 2);
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  EXPECT_EQ(Run("custom_operator", {Split(), "plug-in"}, plugins, 2), 2);
}

// With Debian's PoCL, where that is installed, for a GPU's driver.
TEST_P(ProgramsTest, CustomOperatorOnAGpu) {
  constexpr int kNoOpenCl = 77;
  OnnxBuilder builder;
  builder.Opset(1, "rknn_cst")
      .Input("x", {1, 8})
      .Node("cstBias", {"x"}, {"sum"}, "bias", "rknn_cst")
      .Float("bias", 2.5F)
      .Node("Relu", {"sum"}, {"y"})
      .Output("y", {1, 8});
  const std::string model = Write("bias", builder);
  const std::string source = WriteFile(
      folder() + "/bias.cl",
      "__kernel void add_bias(__global const float* x, __global float* y,\n"
      "                       const float bias) {\n"
      "  y[get_global_id(0)] = x[get_global_id(0)] + bias;\n}\n");
  // PoCL keeps what it has built there, and gives back little at its end.
  const Environment home = {{"POCL_CACHE_DIR", folder() + "/pocl"},
                            {"ASAN_OPTIONS", "detect_leaks=0"}};
  if (Run("gpu_operator", {model}, home, kNoOpenCl) == kNoOpenCl) {
    GTEST_SKIP() << "OpenCL has no device here, or there is no libOpenCL.so.1";
  }
  EXPECT_EQ(Run("gpu_operator", {model, source}, home), 0);
}

TEST_P(ProgramsTest, MatmulThatChecksItself) {
  Run("matmul_check", {});
  Run("matmul_check", {"3", "96", "160"});
}

TEST_P(ProgramsTest, PoolOfDuplicatesThatOutliveTheOriginal) {
  Run("dup_pool", {Picture(), "6"});
}

TEST_P(ProgramsTest, HeaderOfOlderReleases) {
  Run("older_header", {Picture()});
}

TEST_P(ProgramsTest, TheProcessStaysAsItWas) {
  if (GetParam().is_local) {
    GTEST_SKIP() << "a daemon of the process's own handles faults of memory";
  }
  Run("good_guest", {Picture()});
}

TEST_P(ProgramsTest, LoadedAgainAndAgain) {
  Run("load_again", {LibraryPath("librknnrt.so"), Picture()});
}

INSTANTIATE_TEST_SUITE_P(, ProgramsTest,
                         testing::Values(Way{"unix", "plain", false},
                                         Way{"local", "plain", true}
#ifdef RKNND_SANITIZED_PROGRAMS
                                         ,
                                         Way{"sanitized", "sanitized", false}
#endif
                                         ),
                         [](const auto& way) {
                           return std::string(way.param.name);
                         });

class OtherLanguagesTest : public ProgramsFixture {};

TEST_F(OtherLanguagesTest, PythonsCtypes) {
  const std::string python = FindProgram("python3");
  if (python.empty()) GTEST_SKIP() << "python3 is not installed";
  if (kSanitized) GTEST_SKIP() << "Python is not built with a sanitizer";
  StartDaemon();
  const std::string plugins = PluginFolder();
  for (const std::string& model : {Picture(), Split()}) {
    EXPECT_EQ(
        RunProgram({python, SourcePath("tests/programs/ctypes_program.py"),
                    LibraryPath("librknnrt.so"), model},
                   daemon().target(), {{"RKNND_OP_PLUGINS", plugins}}),
        0);
  }
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

}  // namespace
}  // namespace rknnd::integration
