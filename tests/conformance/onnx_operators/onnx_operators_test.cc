// The ONNX project's operator cases on the software NPU's kernels: Debian's
// libonnx-testdata, and the cases under $RKNND_SHARED/conformance where they
// are. A case all of whose operators are in the table must pass; those with
// others are counted and named. known_exceptions.txt lists what is left out on
// purpose, each with its reason.
//
// Each case runs twice: with its inputs as constants, which folds the whole
// graph, and loaded into the device with inputs that come at run time. The
// device refuses cases in which a shape is such an input, or a tensor of a type
// the C API lacks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/plan/io_port.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/run_model.h"
#include "tests/conformance/onnx_operators/onnx_case.h"

namespace rknnd::soft {
namespace {

// As the ONNX project compares.
constexpr double kRelative = 1e-3;
constexpr double kAbsolute = 1e-7;

std::string Compare(const Constant& have, const Constant& want) {
  if (have.type != want.type) {
    return absl::StrCat("type ", DataTypeName(have.type), ", expected ",
                        DataTypeName(want.type));
  }
  if (have.shape != want.shape) {
    return absl::StrCat("shape ", ShapeText(have.shape), ", expected ",
                        ShapeText(want.shape));
  }
  return VisitType(
      want.type, [&]<class T>(std::type_identity<T>) -> std::string {
        for (int64_t i = 0; i < want.elements(); ++i) {
          const T x = have.as<T>()[i], y = want.as<T>()[i];
          bool same = x == y;
          if constexpr (std::is_floating_point_v<T>) {
            same = same || (std::isnan(x) && std::isnan(y)) ||
                   std::fabs(double{x} - y) <=
                       kAbsolute + kRelative * std::fabs(double{y});
          }
          if (!same) {
            return absl::StrCat("element ", i, " is ", x, ", expected ", y);
          }
        }
        return "";
      });
}

absl::StatusOr<Graph> Import(const OnnxCase& test) {
  return ImportOnnx(std::as_bytes(std::span(test.model)), test.name);
}

// Empty when the case passes; nothing where folding leaves a node alone, as it
// does with heavy ones.
std::optional<std::string> RunFolded(const OnnxCase& test,
                                     const OnnxCase::DataSet& data) {
  absl::StatusOr<Graph> graph = Import(test);
  if (!graph.ok()) return std::string(graph.status().message());
  if (data.inputs.size() > graph->inputs.size()) return "too many inputs";
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    Value& value = graph->value(graph->inputs[i].value);
    value.type = data.inputs[i]->type;
    value.shape = data.inputs[i]->shape;
    value.constant = data.inputs[i];
  }
  Folder folder;
  const absl::Status status =
      InferAndFold(*graph, OperatorTable::Get(), folder);
  if (!status.ok()) return std::string(status.message());
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    const Value& value = graph->value(graph->outputs[i].value);
    if (value.constant == nullptr) return std::nullopt;
    const std::string difference = Compare(*value.constant, *data.outputs[i]);
    if (!difference.empty())
      return absl::StrCat("output ", i, ": ", difference);
  }
  return "";
}

// Empty when the case passes; nothing when the device rightly refuses it.
std::optional<std::string> RunLoaded(driver::Device& device,
                                     const OnnxCase& test,
                                     const OnnxCase::DataSet& data) {
  auto model =
      device.Load({std::as_bytes(std::span(test.model)), "", test.name});
  if (absl::IsFailedPrecondition(model.status()) ||
      absl::IsUnimplemented(model.status())) {
    return std::nullopt;
  }
  if (!model.ok()) return std::string(model.status().message());
  const driver::ProgramInfo& info = (*model)->info().programs[0];
  if (info.inputs.size() != data.inputs.size() ||
      info.outputs.size() != data.outputs.size()) {
    return std::nullopt;  // inputs left out
  }
  std::vector<testing::TestTensor> inputs, outputs;
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    const auto type = PlainType(data.inputs[i]->type);
    if (!type.has_value()) return std::nullopt;
    inputs.push_back(
        {testing::PlainFormat(info.inputs[i], *type), data.inputs[i]->data});
  }
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    const auto type = PlainType(data.outputs[i]->type);
    if (!type.has_value()) return std::nullopt;
    outputs.push_back({testing::PlainFormat(info.outputs[i], *type), {}});
  }
  const absl::Status ran = testing::RunOnce(device, **model, inputs, outputs);
  if (!ran.ok()) return std::string(ran.message());
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    Constant have = *data.outputs[i];
    if (have.data.size() != outputs[i].bytes.size()) return "size of an output";
    have.data = outputs[i].bytes;
    const std::string difference = Compare(have, *data.outputs[i]);
    if (!difference.empty())
      return absl::StrCat("output ", i, ": ", difference);
  }
  return "";
}

// "case: reason" lines; # starts a comment.
std::map<std::string, std::string> KnownExceptions() {
  std::map<std::string, std::string> known;
  std::ifstream file(RKNND_SOURCE_ROOT
                     "/tests/conformance/onnx_operators/known_exceptions.txt");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    known[line.substr(0, colon)] = line.substr(colon + 1);
  }
  return known;
}

void RunSuite(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "no cases in '" << folder.string() << "'";
  }
  const std::map<std::string, std::string> known = KnownExceptions();
  std::vector<std::filesystem::path> cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (std::filesystem::exists(entry.path() / "model.onnx")) {
      cases.push_back(entry.path());
    }
  }
  std::sort(cases.begin(), cases.end());
  auto device = OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
  ASSERT_TRUE(device.ok()) << device.status();
  (*device)->EnterWorker();
  int passed = 0, loaded_too = 0, excepted = 0, not_numbers = 0, lacking = 0;
  std::map<std::string, int> lacked;
  for (const auto& path : cases) {
    if (known.contains(path.filename().string())) {
      ++excepted;
      continue;
    }
    const absl::StatusOr<OnnxCase> test = ReadCase(path);
    if (!test.ok()) {
      ADD_FAILURE() << path << ": " << test.status().message();
      continue;
    }
    std::vector<std::string> missing;
    for (const std::string& type : test->types) {
      if (OperatorTable::Get().Find("", type) == nullptr) {
        missing.push_back(type);
      }
    }
    if (!missing.empty()) {
      ++lacking;
      for (const std::string& type : missing) ++lacked[type];
      continue;
    }
    if (!test->only_numbers) {
      ++not_numbers;
      continue;
    }
    bool good = true, loads = true;
    for (const OnnxCase::DataSet& data : test->sets) {
      const auto folded = RunFolded(*test, data);
      const auto loaded = RunLoaded(**device, *test, data);
      EXPECT_EQ(folded.value_or(""), "") << test->name << " folded";
      EXPECT_EQ(loaded.value_or(""), "") << test->name << " loaded";
      EXPECT_TRUE(folded.has_value() || loaded.has_value())
          << test->name << " ran neither way";
      good = good && folded.value_or("").empty() &&
             loaded.value_or("").empty() &&
             (folded.has_value() || loaded.has_value());
      loads = loads && loaded.has_value();
    }
    if (good) ++passed;
    if (good && loads) ++loaded_too;
  }
  std::cout << cases.size() << " cases: " << passed << " passed (" << loaded_too
            << " also on the device), " << lacking
            << " with operators we lack, " << not_numbers
            << " with strings, sequences or optionals, " << excepted
            << " known exceptions\nlacking:";
  for (const auto& [type, count] : lacked) {
    std::cout << " " << type << " " << count;
  }
  std::cout << "\n";
}

std::filesystem::path Shared() {
  const char* shared = std::getenv("RKNND_SHARED");
  return std::filesystem::path(
             shared != nullptr ? shared : RKNND_SOURCE_ROOT "/../shared") /
         "conformance";
}

const std::filesystem::path kPackaged = RKNND_ONNX_TESTDATA;

TEST(OnnxOperatorsTest, PackagedNodes) { RunSuite(kPackaged / "node"); }
TEST(OnnxOperatorsTest, PackagedSimpleGraphs) {
  RunSuite(kPackaged / "simple");
}
TEST(OnnxOperatorsTest, PackagedPytorchLayers) {
  RunSuite(kPackaged / "pytorch-converted");
}
TEST(OnnxOperatorsTest, PackagedPytorchExpressions) {
  RunSuite(kPackaged / "pytorch-operator");
}
TEST(OnnxOperatorsTest, SharedNodes) { RunSuite(Shared() / "onnx_node"); }
TEST(OnnxOperatorsTest, SharedPytorchLayers) {
  RunSuite(Shared() / "onnx_pytorch_converted");
}
TEST(OnnxOperatorsTest, SharedPytorchExpressions) {
  RunSuite(Shared() / "onnx_pytorch_operator");
}

}  // namespace
}  // namespace rknnd::soft
