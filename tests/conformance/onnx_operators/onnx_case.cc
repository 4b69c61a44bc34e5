// See onnx_case.h.

#include "tests/conformance/onnx_operators/onnx_case.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/import/tensor_import.h"

namespace rknnd::soft {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool IsNumbers(const onnx::ValueInfoProto& value) {
  return value.type().has_tensor_type() &&
         InnerType(value.type().tensor_type().elem_type()).has_value();
}

absl::StatusOr<std::vector<onnx::TensorProto>> ReadProtos(
    const std::filesystem::path& folder, const std::string& prefix) {
  std::vector<onnx::TensorProto> protos;
  for (int k = 0;; ++k) {
    const std::filesystem::path path = folder / absl::StrCat(prefix, k, ".pb");
    if (!std::filesystem::exists(path)) return protos;
    protos.emplace_back();
    if (!protos.back().ParseFromString(ReadFile(path))) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path.string(), "' holds no tensor"));
    }
  }
}

// Inputs and outputs that are double in the file are float outside.
TensorPtr AsPortsHave(TensorPtr tensor) {
  if (tensor->type != DataType::kFloat64) return tensor;
  auto narrow = std::make_shared<Constant>();
  narrow->type = DataType::kFloat32;
  narrow->shape = tensor->shape;
  const auto count = static_cast<size_t>(tensor->elements());
  narrow->data.resize(count * sizeof(float));
  auto* to = reinterpret_cast<float*>(narrow->data.data());
  for (size_t i = 0; i < count; ++i) {
    to[i] = static_cast<float>(tensor->as<double>()[i]);
  }
  return narrow;
}

absl::StatusOr<std::vector<TensorPtr>> Import(
    const std::vector<onnx::TensorProto>& protos, const std::string& what) {
  std::vector<TensorPtr> tensors;
  for (const onnx::TensorProto& proto : protos) {
    RKNND_ASSIGN_OR_RETURN(TensorPtr tensor, ImportTensor(proto, what));
    tensors.push_back(AsPortsHave(std::move(tensor)));
  }
  return tensors;
}

std::string WithConstants(onnx::ModelProto model,
                          const std::vector<onnx::TensorProto>& inputs) {
  auto& graph = *model.mutable_graph();
  for (size_t i = 1;
       i < inputs.size() && i < static_cast<size_t>(graph.input_size()); ++i) {
    *graph.add_initializer() = inputs[i];
    graph.mutable_initializer()->rbegin()->set_name(
        graph.input(static_cast<int>(i)).name());
  }
  return model.SerializeAsString();
}

}  // namespace

absl::StatusOr<OnnxCase> ReadCase(const std::filesystem::path& folder) {
  OnnxCase result;
  result.name = folder.filename().string();
  result.model = ReadFile(folder / "model.onnx");
  onnx::ModelProto proto;
  if (!proto.ParseFromString(result.model)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", folder.string(), "' holds no model"));
  }
  std::set<std::string> types;
  for (const auto& node : proto.graph().node()) {
    types.insert(IsStandardDomain(node.domain())
                     ? node.op_type()
                     : absl::StrCat(node.domain(), "::", node.op_type()));
  }
  result.types.assign(types.begin(), types.end());
  const auto& graph = proto.graph();
  result.only_numbers =
      std::all_of(graph.input().begin(), graph.input().end(), IsNumbers) &&
      std::all_of(graph.output().begin(), graph.output().end(), IsNumbers);
  if (!result.only_numbers) return result;
  for (int n = 0;; ++n) {
    const std::filesystem::path set =
        folder / absl::StrCat("test_data_set_", n);
    if (!std::filesystem::is_directory(set)) return result;
    OnnxCase::DataSet data;
    RKNND_ASSIGN_OR_RETURN(const auto inputs, ReadProtos(set, "input_"));
    RKNND_ASSIGN_OR_RETURN(const auto outputs, ReadProtos(set, "output_"));
    RKNND_ASSIGN_OR_RETURN(data.inputs, Import(inputs, "input"));
    RKNND_ASSIGN_OR_RETURN(data.outputs, Import(outputs, "output"));
    data.fixed = WithConstants(proto, inputs);
    result.sets.push_back(std::move(data));
  }
}

}  // namespace rknnd::soft
