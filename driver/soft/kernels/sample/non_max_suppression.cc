// NonMaxSuppression. How many boxes it finds depends on the data, but outputs
// have one size: as many rows as it could find, of which those behind the last
// box are -1. A node that reads them would take these for boxes, so that this
// is only for outputs of the model (graph/open_ended.cc).

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

struct Params {
  int64_t images = 0, classes = 0, boxes = 0;
  int64_t most = 0;  // of one class of one picture
  bool by_center = false, has_overlap = false, has_score = false;
};

absl::StatusOr<Params> Parse(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 5}));
  for (const size_t i : {0, 1, 3, 4})
    RKNND_RETURN_IF_ERROR(CheckFloat(node, i));
  const Shape& boxes = node.shape(0);
  const Shape& scores = node.shape(1);
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 ||
      boxes[0] != scores[0] || boxes[1] != scores[2]) {
    return node.Error(absl::StrCat("boxes ", ShapeText(boxes), ", scores ",
                                   ShapeText(scores)));
  }
  for (const size_t i : {2, 3, 4}) {
    if (node.has_input(i) &&
        ProductOf(node.shape(i), 0, node.shape(i).size()) != 1) {
      return node.Error(absl::StrCat("input ", i, " must be one number"));
    }
  }
  Params p;
  p.images = boxes[0];
  p.boxes = boxes[1];
  p.classes = scores[1];
  if (node.has_input(2)) {
    RKNND_ASSIGN_OR_RETURN(const auto most, node.ConstantInts(2));
    p.most = std::clamp<int64_t>(most[0], 0, p.boxes);
  }
  const int64_t form = node.Int("center_point_box", 0);
  if (form != 0 && form != 1) {
    return node.Error(absl::StrCat("center_point_box is ", form));
  }
  p.by_center = form == 1;
  p.has_overlap = node.has_input(3);
  p.has_score = node.has_input(4);
  return p;
}

Inference InferNonMaxSuppression(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params p, Parse(node));
  RKNND_ASSIGN_OR_RETURN(const int64_t rows,
                         ElementCount({p.images, p.classes, p.most}));
  return InferOne(node, DataType::kInt64, {rows, 3});
}

struct Box {
  float top, left, bottom, right;
  [[nodiscard]] float area() const { return (bottom - top) * (right - left); }
};

Box BoxAt(const float* at, bool by_center) {
  if (by_center) {
    return {at[1] - at[3] / 2, at[0] - at[2] / 2, at[1] + at[3] / 2,
            at[0] + at[2] / 2};
  }
  return {std::min(at[0], at[2]), std::min(at[1], at[3]),
          std::max(at[0], at[2]), std::max(at[1], at[3])};
}

bool Overlap(const Box& a, const Box& b, float most) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0.0F) || !(width > 0.0F) || !(a.area() > 0.0F) ||
      !(b.area() > 0.0F)) {
    return false;
  }
  const float common = height * width;
  return common / (a.area() + b.area() - common) > most;
}

// A box that is looked at, best score first, then the earlier one.
struct Candidate {
  float score;
  int64_t index;
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.score > b.score || (a.score == b.score && a.index < b.index);
  }
};

MadeKernel MakeNonMaxSuppression(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Params p, Parse(request.node));
  const int64_t rows = request.outputs[0].shape[0];
  const size_t scratch = static_cast<size_t>(p.boxes) * sizeof(Candidate) +
                         static_cast<size_t>(p.most) * sizeof(Box);
  return MakeKernel(
      [=](Inputs inputs, Outputs outputs, std::byte* room) {
        auto* const candidates = reinterpret_cast<Candidate*>(room);
        auto* const taken = reinterpret_cast<Box*>(candidates + p.boxes);
        auto* const out = As<int64_t>(outputs[0]);
        const float overlap = p.has_overlap ? *As<float>(inputs[3]) : 0.0F;
        int64_t row = 0;
        for (int64_t of = 0; of < p.images * p.classes; ++of) {
          StopPoint();
          const int64_t image = of / std::max<int64_t>(p.classes, 1);
          const float* const scores = As<float>(inputs[1]) + of * p.boxes;
          const float* const boxes = As<float>(inputs[0]) + image * p.boxes * 4;
          int64_t count = 0;
          for (int64_t i = 0; i < p.boxes; ++i) {
            const float score = Once(scores[i]);
            // NaN, which has no place in an order, is no score.
            if (score == score &&
                (!p.has_score || score > *As<float>(inputs[4]))) {
              candidates[count++] = {score, i};
            }
          }
          std::sort(candidates, candidates + count);
          int64_t found = 0;
          for (int64_t i = 0; i < count && found < p.most; ++i) {
            StopPoint();
            const int64_t index = candidates[i].index;
            const Box box = BoxAt(boxes + index * 4, p.by_center);
            if (std::any_of(taken, taken + found, [&](const Box& other) {
                  return Overlap(other, box, overlap);
                })) {
              continue;
            }
            taken[found++] = box;
            int64_t* const to = out + 3 * row++;
            to[0] = image;
            to[1] = of % p.classes;
            to[2] = index;
          }
        }
        std::fill(out + 3 * row, out + 3 * rows, int64_t{-1});
      },
      scratch);
}

}  // namespace

void RegisterNonMaxSuppression(OperatorTable& table) {
  table.Add({.type = "NonMaxSuppression",
             .infer = InferNonMaxSuppression,
             .make = MakeNonMaxSuppression});
}

}  // namespace rknnd::soft
