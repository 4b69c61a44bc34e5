// The ONNX project's operator cases on the software NPU's kernels: Debian's
// libonnx-testdata, and the cases under $RKNND_SHARED/conformance where they
// are. A case all of whose operators are in the table must pass; those with
// others are counted and named. known_exceptions.txt lists what is left out on
// purpose, each with its reason.
//
// Each case runs twice: with its inputs as constants, which folds the whole
// graph, and loaded into the device with inputs that come at run time, or where
// it refuses that, because an operator wants to know them, with constants for
// all inputs but the first.
//
// The table of operators in docs/soft-npu.md is what comes of the packaged
// cases. With RKNND_WRITE_OPERATORS=1 the test writes it, else it compares.

#include "driver/soft/graph/onnx_operators.h"

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

// As many rows as there might be, of which those behind the last are -1.
bool TakeRows(const Constant& want, Constant& have) {
  if (have.type != DataType::kInt64 || want.shape.size() != 2) return false;
  const auto rows = static_cast<size_t>(want.elements());
  const size_t all = have.data.size() / sizeof(int64_t);
  if (all < rows ||
      !std::all_of(have.as<int64_t>() + rows, have.as<int64_t>() + all,
                   [](int64_t x) { return x == -1; })) {
    return false;
  }
  have.data.resize(rows * sizeof(int64_t));
  return true;
}

// Empty when the case passes; nothing where folding leaves a node alone, as it
// does with heavy ones.
std::optional<std::string> RunFolded(const OnnxCase& test,
                                     const OnnxCase::DataSet& data) {
  absl::StatusOr<Graph> graph = Import(test);
  if (absl::IsUnimplemented(graph.status())) return std::nullopt;
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
  if (absl::IsUnimplemented(status)) return std::nullopt;
  if (!status.ok()) return std::string(status.message());
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    const Value& value = graph->value(graph->outputs[i].value);
    if (value.constant == nullptr) return std::nullopt;
    Constant have = *value.constant;
    if (have.shape != data.outputs[i]->shape &&
        TakeRows(*data.outputs[i], have)) {
      have.shape = data.outputs[i]->shape;
    }
    const std::string difference = Compare(have, *data.outputs[i]);
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
  // An empty tensor is no input and no output.
  if (absl::IsFailedPrecondition(model.status()) && !data.inputs.empty() &&
      data.inputs[0]->elements() > 0 && data.outputs[0]->elements() > 0) {
    model = device.Load({std::as_bytes(std::span(data.fixed)), "", test.name});
  }
  if (absl::IsFailedPrecondition(model.status()) ||
      absl::IsUnimplemented(model.status())) {
    return std::nullopt;
  }
  if (!model.ok()) return std::string(model.status().message());
  const driver::ProgramInfo& info = (*model)->info().programs[0];
  if (info.inputs.size() > data.inputs.size() ||
      info.outputs.size() != data.outputs.size()) {
    return std::nullopt;  // inputs left out
  }
  std::vector<testing::TestTensor> inputs, outputs;
  for (size_t i = 0; i < info.inputs.size(); ++i) {
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
    have.data = outputs[i].bytes;
    if (have.data.size() != data.outputs[i]->data.size() &&
        !TakeRows(*data.outputs[i], have)) {
      return "size of an output";
    }
    const std::string difference = Compare(have, *data.outputs[i]);
    if (!difference.empty())
      return absl::StrCat("output ", i, ": ", difference);
  }
  return "";
}

// Why the device refuses a case, without the names of its nodes.
std::string Refusal(driver::Device& device, const OnnxCase& test) {
  const auto model =
      device.Load({std::as_bytes(std::span(test.model)), "", test.name});
  std::string text(model.status().message());
  const size_t node =
      text.find("': ", text.find(test.name) + test.name.size() + 2);
  return node == std::string::npos ? text : text.substr(node + 3);
}

// "case: reason" lines; # starts a comment.
std::map<std::string, std::string> KnownExceptions() {
  std::map<std::string, std::string> known;
  std::ifstream file(RKNND_SOURCE_ROOT
                     "/tests/conformance/onnx_operators/known_exceptions.txt");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    known[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return known;
}

// A row of the table in the documents.
struct Row {
  int right = 0, refused = 0;
  std::string reason;  // of the first that is refused
};

class Rows {
 public:
  Rows() {
    for (const std::string& type : OnnxOperators()) rows_[type];
  }
  void Right(const OnnxCase& test) { ++Of(test).right; }
  void Refuse(const OnnxCase& test, const std::string& reason) {
    Row& row = Of(test);
    ++row.refused;
    if (row.reason.empty()) row.reason = reason;
  }
  [[nodiscard]] std::string Table() const {
    std::string text =
        "| operator | cases right | refused | reason |\n"
        "|---|--:|--:|---|\n";
    for (const auto& [type, row] : rows_) {
      const bool known = OperatorTable::Get().Find("", type) != nullptr;
      absl::StrAppend(&text, "| ", type, " | ", row.right, " | ", row.refused,
                      " | ",
                      row.refused > 0 ? row.reason
                      : known         ? ""
                                      : "not supported",
                      " |\n");
    }
    return text;
  }

 private:
  // Cases of several operators belong to none of them.
  Row& Of(const OnnxCase& test) {
    return test.types.size() == 1 && rows_.contains(test.types[0])
               ? rows_[test.types[0]]
               : rows_["(several)"];
  }

  std::map<std::string, Row> rows_;
};

// Between these lines of the document.
void CheckTable(const std::string& table) {
  const std::string path = RKNND_SOURCE_ROOT "/docs/soft-npu.md";
  const std::string begin = "<!-- operators -->\n",
                    end = "<!-- end of operators -->\n";
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t from = text.find(begin), to = text.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const size_t first = from + begin.size();
  const std::string wanted = "\n" + table + "\n";
  if (std::getenv("RKNND_WRITE_OPERATORS") != nullptr) {
    text.replace(first, to - first, wanted);
    std::ofstream(path) << text;
    return;
  }
  EXPECT_EQ(text.substr(first, to - first), wanted)
      << "write it anew: RKNND_WRITE_OPERATORS=1";
}

void RunSuite(const std::filesystem::path& folder, Rows* rows = nullptr) {
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
  int refused = 0;
  Rows unread;
  if (rows == nullptr) rows = &unread;
  std::map<std::string, int> lacked;
  for (const auto& path : cases) {
    const absl::StatusOr<OnnxCase> test = ReadCase(path);
    if (!test.ok()) {
      ADD_FAILURE() << path << ": " << test.status().message();
      continue;
    }
    const auto exception = known.find(test->name);
    if (exception != known.end()) {
      ++excepted;
      rows->Refuse(*test, exception->second);
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
      rows->Refuse(*test, "not supported");
      for (const std::string& type : missing) ++lacked[type];
      continue;
    }
    if (!test->only_numbers) {
      ++not_numbers;
      rows->Refuse(*test, "strings, sequences or optionals");
      continue;
    }
    bool good = true, runs = true, loads = true;
    for (const OnnxCase::DataSet& data : test->sets) {
      const auto folded = RunFolded(*test, data);
      const auto loaded = RunLoaded(**device, *test, data);
      EXPECT_EQ(folded.value_or(""), "") << test->name << " folded";
      EXPECT_EQ(loaded.value_or(""), "") << test->name << " loaded";
      good = good && folded.value_or("").empty() && loaded.value_or("").empty();
      runs = runs && (folded.has_value() || loaded.has_value());
      loads = loads && loaded.has_value();
    }
    if (!runs) {
      const std::string why = Refusal(**device, *test);
      EXPECT_NE(why, "") << test->name << " ran neither way";
      ++refused;
      rows->Refuse(*test, why);
      continue;
    }
    if (good) rows->Right(*test);
    if (good) ++passed;
    if (good && loads) ++loaded_too;
  }
  std::cout << cases.size() << " cases: " << passed << " passed (" << loaded_too
            << " also on the device), " << lacking
            << " with operators we lack, " << not_numbers
            << " with strings, sequences or optionals, " << refused
            << " refused otherwise, " << excepted
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

TEST(OnnxOperatorsTest, PackagedNodes) {
  Rows rows;
  RunSuite(kPackaged / "node", &rows);
  if (!IsSkipped()) CheckTable(rows.Table());
}
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
