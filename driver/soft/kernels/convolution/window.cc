// See window.h.

#include "driver/soft/kernels/convolution/window.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::soft {
namespace {

// Larger than any picture; keeps products of two of them far from overflow.
constexpr int64_t kMaxExtent = 1 << 20;

absl::StatusOr<Shape> Read(const NodeView& node, const char* name, size_t count,
                           int64_t otherwise, int64_t least) {
  if (!node.Has(name)) return Shape(count, otherwise);
  const std::vector<int64_t> values = node.Ints(name);
  if (values.size() != count) {
    return node.Error(absl::StrCat(name, " has ", values.size(),
                                   " entries, needed are ", count));
  }
  for (const int64_t value : values) {
    if (value < least || value > kMaxExtent) {
      return node.Error(absl::StrCat(name, " cannot be ", value));
    }
  }
  return Shape(values.begin(), values.end());
}

}  // namespace

absl::StatusOr<Window> ParseWindow(const NodeView& node, const Shape& input,
                                   std::span<const int64_t> kernel) {
  if (input.size() < 3 || input.size() > 5) {
    return node.Error(absl::StrCat("its input ", ShapeText(input),
                                   " must have 1 to 3 spatial axes"));
  }
  const size_t rank = input.size() - 2;
  Window window;
  if (kernel.empty() && !node.Has("kernel_shape")) {
    return node.Error("kernel_shape is missing");
  }
  RKNND_ASSIGN_OR_RETURN(window.kernel, Read(node, "kernel_shape", rank, 1, 1));
  if (!kernel.empty()) {
    const Shape given(kernel.begin(), kernel.end());
    if (node.Has("kernel_shape") && window.kernel != given) {
      return node.Error(absl::StrCat("kernel_shape is ",
                                     ShapeText(window.kernel),
                                     ", its weights have ", ShapeText(given)));
    }
    window.kernel = given;
    for (const int64_t size : given) {
      if (size < 1 || size > kMaxExtent) {
        return node.Error(absl::StrCat("its kernel is ", ShapeText(given)));
      }
    }
  }
  RKNND_ASSIGN_OR_RETURN(window.strides, Read(node, "strides", rank, 1, 1));
  RKNND_ASSIGN_OR_RETURN(window.dilations, Read(node, "dilations", rank, 1, 1));
  RKNND_ASSIGN_OR_RETURN(const Shape pads, Read(node, "pads", 2 * rank, 0, 0));
  window.ceil_mode = node.Int("ceil_mode", 0) != 0;
  const std::string auto_pad = node.String("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID") {
    return node.Error(absl::StrCat("auto_pad is '", auto_pad, "'"));
  }
  for (size_t d = 0; d < rank; ++d) {
    const int64_t size = input[2 + d];
    const int64_t stride = window.strides[d];
    const int64_t extent = window.Extent(d);
    int64_t begin = 0, end = 0, output = 0;
    if (same) {
      output = (size + stride - 1) / stride;
      const int64_t total =
          std::max<int64_t>((output - 1) * stride + extent - size, 0);
      begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    } else {
      if (auto_pad == "NOTSET") {
        begin = pads[d];
        end = pads[rank + d];
      }
      const int64_t room = size + begin + end - extent;
      if (room < 0) {
        return node.Error(absl::StrCat("its kernel covers ", extent,
                                       " of axis ", 2 + d,
                                       ", the padded input ", ShapeText(input),
                                       " has ", size + begin + end));
      }
      output = room / stride + 1;
      if (window.ceil_mode && room % stride != 0 &&
          output * stride < size + begin) {
        // A further position, unless it would start behind the input.
        ++output;
      }
    }
    window.pads_begin.push_back(begin);
    window.pads_end.push_back(end);
    window.output.push_back(output);
  }
  return window;
}

}  // namespace rknnd::soft
