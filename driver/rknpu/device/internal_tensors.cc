#include "driver/rknpu/device/internal_tensors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"

namespace rknnd::rknpu {

std::string ShapeText(const std::vector<uint32_t>& shape) {
  return absl::StrJoin(shape, ",");
}

const char* ReportedType(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return "INT8";
    case ElementType::kFloat16:
      return "FLOAT16";
    case ElementType::kFloat32:
      return "FLOAT32";
    case ElementType::kInt16:
      return "INT16";
    case ElementType::kInt32:
      return "INT32";
    case ElementType::kInt64:
      return "INT64";
    case ElementType::kNone:
    case ElementType::kWords:
      break;
  }
  return "";
}

namespace {

driver::TensorPlace PlaceOf(const Tensor& tensor, uint32_t node) {
  driver::TensorPlace place;
  place.name = tensor.name;
  place.data_type = ReportedType(tensor.type);
  place.shape = ShapeText(tensor.shape);
  place.native_shape = ShapeText(tensor.native_shape);
  place.offset = tensor.offset;
  place.size = tensor.bytes;
  place.first = node;
  return place;
}

}  // namespace

std::vector<driver::TensorPlace> InternalTensors(const ProgramFile& file) {
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<driver::TensorPlace> places;
  std::vector<uint32_t> found(file.tensors.size(), kNone);
  const auto add = [&](uint32_t node, uint32_t t, bool reads) {
    const Tensor& tensor = file.tensors[t];
    if (!tensor.in_internal_memory()) return;
    if (found[t] == kNone) {
      found[t] = static_cast<uint32_t>(places.size());
      places.push_back(PlaceOf(tensor, node));
      places.back().storage = found[t];
    }
    driver::TensorPlace& place = places[found[t]];
    place.last = node;
    if (!reads) {
      place.written += tensor.bytes;
      return;
    }
    if (place.read == 0) place.user = node;
    place.read += tensor.bytes;
  };
  for (uint32_t n = 0; n < file.nodes.size(); ++n) {
    for (const uint32_t t : file.nodes[n].inputs) add(n, t, true);
    for (const uint32_t t : file.nodes[n].outputs) add(n, t, false);
  }
  return places;
}

driver::SramPlan PlanSramOf(const driver::ProgramInfo& program,
                            uint64_t bytes) {
  constexpr uint64_t kPage = driver::kSramPage;
  driver::SramPlan plan;
  plan.size = bytes / kPage * kPage;
  for (uint32_t t = 0; t < program.tensors.size(); ++t) {
    const driver::TensorPlace& tensor = program.tensors[t];
    if (tensor.size == 0 || tensor.offset >= plan.size) continue;
    const uint64_t hit = std::min(tensor.size, plan.size - tensor.offset);
    const auto saved = static_cast<uint64_t>(
        static_cast<double>(tensor.traffic()) * static_cast<double>(hit) /
        static_cast<double>(tensor.size));
    plan.used = std::max(plan.used, tensor.offset + hit);
    plan.saved += saved;
    plan.entries.push_back(
        {.tensor = t, .offset = tensor.offset, .hit = hit, .saved = saved});
  }
  plan.used = (plan.used + kPage - 1) / kPage * kPage;
  return plan;
}

}  // namespace rknnd::rknpu
