#include "driver/soft/import/onnx_import.h"

#include <onnx/onnx_pb.h>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/import/graph_import.h"
#include "driver/soft/import/parse.h"
#include "driver/soft/import/shapes.h"
#include "driver/soft/import/weight_owner.h"

namespace rknnd::soft {
namespace {

// The last that are known: what a later one means by a node is not.
constexpr int64_t kKnownOpset = 24;
constexpr int64_t kKnownIrVersion = 12;

absl::Status CheckVersions(const onnx::ModelProto& model) {
  if (model.ir_version() > kKnownIrVersion) {
    return absl::UnimplementedError(absl::StrCat(
        "is of ir_version ", model.ir_version(), ", at most ", kKnownIrVersion,
        " is known: export it with an older version of onnx"));
  }
  for (const auto& opset : model.opset_import()) {
    if (!IsStandardDomain(opset.domain()) || opset.version() <= kKnownOpset) {
      continue;
    }
    return absl::UnimplementedError(
        absl::StrCat("imports opset ", opset.version(),
                     " of the standard operators, at "
                     "most ",
                     kKnownOpset, " is known: export it with an older opset"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsStandardDomain(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx";
}

absl::StatusOr<Graph> ImportOnnx(std::span<const std::byte> bytes,
                                 const std::string& name) {
  RKNND_ASSIGN_OR_RETURN(Graph graph, ImportOpen(bytes, name));
  if (absl::Status fixed = FixInputs(nullptr, graph); !fixed.ok()) {
    return base::Annotate(fixed, absl::StrCat("model '", name, "'"));
  }
  return graph;
}

absl::StatusOr<Graph> ImportOpen(std::span<const std::byte> bytes,
                                 const std::string& name,
                                 std::span<const std::byte> weights_of) {
  onnx::ModelProto model;
  RKNND_RETURN_IF_ERROR(ParseOnnx(bytes, name, &model));
  absl::StatusOr<WeightOwner> owner = WeightOwner::Read(weights_of);
  if (!owner.ok()) {
    return base::Annotate(owner.status(), absl::StrCat("model '", name, "'"));
  }
  absl::Status versions = CheckVersions(model);
  absl::StatusOr<Graph> graph = versions.ok() ? ImportGraph(model, *owner)
                                              : absl::StatusOr<Graph>(versions);
  if (!graph.ok()) {
    return base::Annotate(graph.status(), absl::StrCat("model '", name, "'"));
  }
  // Messages about a run name the model by it.
  if (graph->name.empty()) graph->name = name;
  return graph;
}

}  // namespace rknnd::soft
