// Called on the loop. Rows are matched as they are shown to clients: an image
// with its channels last, unless the client says that it gives them first.

#include "daemon/core/contexts/shape_rows.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rknnd::core {
namespace {

using driver::TensorLayout;

// A message is read by people; the list has a query of its own.
constexpr size_t kRowsShown = 8;
constexpr size_t kInputsShown = 4;

// The dims as `attr` would have them, nothing where the layout cannot be.
std::optional<std::vector<uint32_t>> AsShown(const InputShape& shape,
                                             const driver::TensorAttr& attr) {
  const bool same = shape.layout == attr.layout ||
                    shape.layout == TensorLayout::kUndefined ||
                    attr.layout == TensorLayout::kUndefined;
  if (same || shape.dims.size() != 4) {
    if (shape.layout == TensorLayout::kNc1hwc2) return std::nullopt;
    return shape.dims;
  }
  const std::vector<uint32_t>& d = shape.dims;
  if (shape.layout == TensorLayout::kNchw &&
      attr.layout == TensorLayout::kNhwc) {
    return std::vector<uint32_t>{d[0], d[2], d[3], d[1]};
  }
  if (shape.layout == TensorLayout::kNhwc &&
      attr.layout == TensorLayout::kNchw) {
    return std::vector<uint32_t>{d[0], d[3], d[1], d[2]};
  }
  return std::nullopt;
}

std::string DimsText(const std::vector<uint32_t>& dims) {
  // A client may send more than a tensor can have.
  const size_t shown = std::min(dims.size(), driver::kMaxDims);
  return absl::StrJoin(dims.begin(),
                       dims.begin() + static_cast<std::ptrdiff_t>(shown), "x");
}

}  // namespace

std::string RowsText(const driver::ModelInfo& model) {
  const std::vector<driver::ProgramInfo>& rows = model.programs;
  std::string text;
  for (size_t r = 0; r < std::min(rows.size(), kRowsShown); ++r) {
    absl::StrAppend(&text, r == 0 ? "" : "; ", r, ":");
    const auto& inputs = rows[r].inputs;
    for (size_t i = 0; i < std::min(inputs.size(), kInputsShown); ++i) {
      absl::StrAppend(&text, i == 0 ? " '" : ", '", inputs[i].name, "' ",
                      DimsText(inputs[i].dims));
    }
    if (inputs.size() > kInputsShown) absl::StrAppend(&text, ", ...");
  }
  if (rows.size() > kRowsShown) {
    absl::StrAppend(&text, "; and ", rows.size() - kRowsShown, " more");
  }
  return text;
}

absl::StatusOr<uint32_t> FindRow(const LoadedModel& model,
                                 std::span<const InputShape> shapes) {
  const driver::ModelInfo& info = model.info();
  const auto& inputs = model.program().inputs;
  if (shapes.size() != inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        shapes.size(), " shapes given, model '", model.name, "' has ",
        inputs.size(), " inputs: a shape is chosen for all at once"));
  }
  // Rows that fit the inputs seen so far.
  std::vector<uint32_t> fitting(info.programs.size());
  std::iota(fitting.begin(), fitting.end(), 0);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto dims = AsShown(shapes[i], inputs[i]);
    std::vector<uint32_t> left;
    bool listed = false;
    for (uint32_t r = 0; r < info.programs.size() && dims; ++r) {
      if (info.programs[r].inputs[i].dims != *dims) continue;
      listed = true;
      if (std::binary_search(fitting.begin(), fitting.end(), r)) {
        left.push_back(r);
      }
    }
    if (left.empty()) {
      const std::string given =
          absl::StrCat("input ", i, " '", inputs[i].name, "' of shape ",
                       DimsText(shapes[i].dims), " (",
                       driver::TensorLayoutName(shapes[i].layout), ")");
      if (info.programs.size() == 1) {
        return absl::InvalidArgumentError(
            absl::StrCat(given, " cannot be: model '", model.name,
                         "' has one fixed shape, ", RowsText(info)));
      }
      return absl::InvalidArgumentError(absl::StrCat(
          given,
          listed ? " is not listed together with the shapes of the inputs "
                   "before it"
                 : " is in none of the rows",
          " that model '", model.name, "' lists: ", RowsText(info)));
    }
    fitting = std::move(left);
  }
  return fitting.front();
}

}  // namespace rknnd::core
