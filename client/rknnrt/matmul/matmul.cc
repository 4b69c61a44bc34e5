#include "client/rknnrt/matmul/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "client/rknnrt/context/make_context.h"
#include "client/rknnrt/runtime.h"
#include "client/rknnrt/tensor.h"
#include "client/target/model_source.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr uint32_t kScalesInput = 2;
constexpr char kScalesName[] = "scales";

Failure Wrong(std::string message) {
  return {{Code::kInvalidArgument, std::move(message)}, Subject::kNone};
}

// "B: 3 dims 4, ..." of one matrix.
void Fill(const char* name, const matmul::Form& form,
          rknn_matmul_tensor_attr* attr) {
  *attr = {};
  std::strncpy(attr->name, name, sizeof attr->name - 1);
  attr->n_dims = static_cast<uint32_t>(form.dims.size());
  std::copy(form.dims.begin(), form.dims.end(), attr->dims);
  attr->size = static_cast<uint32_t>(form.bytes);
  attr->type =
      static_cast<rknn_tensor_type>(static_cast<uint32_t>(form.element));
}

// Of one matrix whose numbers are integers.
struct Range {
  int32_t least, most;
};
Range RangeOfZeros(matmul::Element element) {
  return element == matmul::Element::kInt4 ? Range{-8, 7} : Range{-128, 127};
}

}  // namespace

Expected<matmul::Spec> SpecOf(const rknn_matmul_info& info,
                              std::span<const rknn_matmul_shape> shapes) {
  matmul::Spec spec;
  spec.type = static_cast<int32_t>(RawNumber(info.type));
  spec.b_layout = static_cast<matmul::Layout>(info.B_layout);
  if (info.AC_layout != RKNN_MM_LAYOUT_NORM &&
      info.AC_layout != RKNN_MM_LAYOUT_NATIVE) {
    return Error{Code::kInvalidArgument,
                 "AC_layout " + std::to_string(info.AC_layout) +
                     " is neither RKNN_MM_LAYOUT_NORM nor _NATIVE"};
  }
  spec.native_ac = info.AC_layout == RKNN_MM_LAYOUT_NATIVE;
  spec.b_quantization = info.B_quant_type;
  spec.ac_quantization = info.AC_quant_type;
  // Programs of release 1.6.0 and before end before it.
  if (spec.b_scales() == matmul::Scales::kPerGroup) {
    spec.group = info.group_size;
  }
  // Read() would call more of them damaged.
  if (shapes.size() > matmul::kMostShapes) {
    return Error{Code::kInvalidArgument,
                 "shape_num is " + std::to_string(shapes.size()) +
                     ": there are " + std::to_string(matmul::kMostShapes) +
                     " shapes at most"};
  }
  for (const rknn_matmul_shape& shape : shapes) {
    spec.shapes.push_back({shape.M, shape.K, shape.N});
  }
  // Whoever reads it checks the rest.
  return matmul::Read(matmul::Write(spec));
}

Outcome CreateMatmul(const rknn_matmul_info& info,
                     std::span<const rknn_matmul_shape> shapes,
                     rknn_matmul_ctx* context,
                     std::span<rknn_matmul_io_attr> attrs) {
  Expected<matmul::Spec> spec = SpecOf(info, shapes);
  if (!spec.ok()) return Failure{std::move(spec).error(), Subject::kNone};
  Expected<std::shared_ptr<Target>> target = Runtime::Get().target();
  if (!target.ok()) return Failure{std::move(target).error(), Subject::kNone};
  const std::string soc = (*target)->info().soc;
  if (Expected<void> checked = matmul::Check(*spec, soc); !checked.ok()) {
    return Failure{std::move(checked).error(), Subject::kNone};
  }
  const std::vector<std::byte> bytes = matmul::Write(*spec);
  Expected<std::shared_ptr<ModelSource>> source =
      ModelSource::OfBytes(bytes, std::nullopt);
  if (!source.ok()) return Failure{std::move(source).error(), Subject::kNone};
  // The bytes go with this call; a daemon that begins anew asks for them.
  if (Expected<void> kept = (*source)->KeepBytes(); !kept.ok()) {
    return Failure{std::move(kept).error(), Subject::kNone};
  }
  uint32_t handle = 0;
  if (Outcome made = MakeContext({}, *source, {}, *target, &handle);
      !made.ok()) {
    return made;
  }
  const matmul::Blocks blocks = matmul::BlocksOf(spec->type, soc);
  for (size_t i = 0; i < attrs.size(); ++i) {
    const matmul::Forms forms = matmul::FormsOf(*spec, spec->shapes[i], blocks);
    Fill("A", forms.a, &attrs[i].A);
    Fill("B", forms.b, &attrs[i].B);
    Fill("C", forms.c, &attrs[i].C);
  }
  Expected<std::shared_ptr<Context>> found = Runtime::Get().FindContext(handle);
  if (!found.ok()) return Failure{std::move(found).error(), Subject::kContext};
  auto matmul = std::make_shared<Matmul>(*std::move(spec), blocks);
  if (Outcome begun = matmul->Begin(**found); !begun.ok()) {
    if (auto removed = Runtime::Get().RemoveContext(handle); removed.ok()) {
      // What it failed with says more.
      static_cast<void>((*removed)->Destroy().ok());
    }
    return begun;
  }
  (*found)->set_matmul(std::move(matmul));
  *context = handle;
  return {};
}

Outcome Matmul::Begin(Context& context) {
  const base::MutexLock lock(mutex_);
  if (spec_.is_scaled()) {
    int64_t most = 0;
    for (const matmul::Shape& shape : spec_.shapes) {
      most = std::max(most, spec_.ScaleCount(shape));
    }
    const auto floats = static_cast<uint64_t>(matmul::kScaleHeader + 2 * most);
    Expected<std::unique_ptr<Buffer>> buffer =
        Buffer::Allocate(context.shared_target(), floats * sizeof(float), 0);
    if (!buffer.ok()) return Failure{std::move(buffer).error(), Subject::kNone};
    scales_ = *std::move(buffer);
  }
  return Choose(context, shape_);
}

Outcome Matmul::Choose(Context& context, const matmul::Shape& shape) {
  shape_ = shape;
  scales_changed_ = true;
  if (spec_.shapes.size() > 1) {
    std::vector<rknn_tensor_attr> attrs = {AttrOf("A"), AttrOf("B")};
    if (scales_ != nullptr) attrs.push_back(AttrOf(kScalesName));
    if (Outcome set = context.SetShapes(attrs); !set.ok()) return set;
  }
  if (scales_ == nullptr) return {};
  return context.BindMemory(*scales_, AttrOf(kScalesName));
}

Outcome Matmul::SetShape(Context& context, const matmul::Shape& shape) {
  const base::MutexLock lock(mutex_);
  if (std::find(spec_.shapes.begin(), spec_.shapes.end(), shape) ==
      spec_.shapes.end()) {
    return Wrong(matmul::ShapeText(shape) +
                 ": no such shape was given to "
                 "rknn_matmul_create_dynamic_shape, which had " +
                 std::to_string(spec_.shapes.size()));
  }
  return shape == shape_ ? Outcome() : Choose(context, shape);
}

rknn_tensor_attr Matmul::AttrOf(std::string_view name) const {
  rknn_tensor_attr attr = {};
  const matmul::Forms forms = matmul::FormsOf(spec_, shape_, blocks_);
  matmul::Form form = {{static_cast<uint32_t>(matmul::kScaleHeader +
                                              2 * spec_.ScaleCount(shape_))},
                       matmul::Element::kFloat32,
                       0};
  attr.index = kScalesInput;
  if (name == "A" || name == "C") {
    attr.index = 0;
    form = name == "A" ? forms.a : forms.c;
  } else if (name == "B") {
    attr.index = 1;
    form = forms.b;
  }
  std::copy(name.begin(), name.end(), attr.name);
  attr.n_dims = static_cast<uint32_t>(form.dims.size());
  std::copy(form.dims.begin(), form.dims.end(), attr.dims);
  attr.fmt = RKNN_TENSOR_UNDEFINED;
  attr.type =
      static_cast<rknn_tensor_type>(static_cast<uint32_t>(form.element));
  attr.pass_through = 1;
  return attr;
}

Matmul::Matrix* Matmul::Find(std::string_view name) {
  for (Matrix& matrix : matrices_) {
    if (name == matrix.name) return &matrix;
  }
  return nullptr;
}

Outcome Matmul::Bind(Context& context, const Buffer& memory,
                     std::string_view name) {
  const base::MutexLock lock(mutex_);
  Matrix* const matrix = Find(name);
  if (matrix == nullptr) {
    return Wrong("attr->name is '" + std::string(name) +
                 "': it is A, B or C, as rknn_matmul_create has filled it");
  }
  if (Outcome bound = context.BindMemory(memory, AttrOf(name)); !bound.ok()) {
    return bound;
  }
  matrix->bound = true;
  return {};
}

int64_t Matmul::ScalesOf(const Matrix& matrix) const {
  return *matrix.name == 'B' ? spec_.ScaleCount(shape_) : 1;
}

Outcome Matmul::SetQuantParams(const rknn_quant_params& params) {
  const base::MutexLock lock(mutex_);
  const std::string_view name(params.name,
                              strnlen(params.name, sizeof params.name));
  Matrix* const matrix = Find(name);
  if (matrix == nullptr) {
    return Wrong("name is '" + std::string(name) + "': it is A, B or C");
  }
  const int64_t count = ScalesOf(*matrix);
  const std::string prefix = "matrix " + std::string(name) + ": ";
  if (params.scale == nullptr || params.scale_len != count) {
    return Wrong(
        prefix + "scale has " +
        std::to_string(params.scale == nullptr ? 0 : params.scale_len) +
        " entries, its quantisation has " + std::to_string(count));
  }
  const bool has_zeros = params.zp != nullptr && params.zp_len != 0;
  if ((params.zp == nullptr) != (params.zp_len == 0) ||
      (has_zeros && params.zp_len != count)) {
    return Wrong(prefix + "zp has " +
                 std::to_string(params.zp == nullptr ? 0 : params.zp_len) +
                 " entries and zp_len is " + std::to_string(params.zp_len) +
                 ": it has " + std::to_string(count) + ", or zp is NULL");
  }
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(params.scale[i]) && params.scale[i] > 0) continue;
    return Wrong(prefix + "scale " + std::to_string(i) + " is " +
                 std::to_string(params.scale[i]) + ": it is a number above 0");
  }
  const matmul::Elements elements = matmul::ElementsOf(spec_.type);
  const auto [least, most] = RangeOfZeros(*matrix->name == 'A'   ? elements.a
                                          : *matrix->name == 'B' ? elements.b
                                                                 : elements.c);
  for (int64_t i = 0; has_zeros && i < count; ++i) {
    const int32_t zero = params.zp[i];
    if (zero < least || zero > most) {
      return Wrong(prefix + "zp " + std::to_string(i) + " is " +
                   std::to_string(zero) + ": it is from " +
                   std::to_string(least) + " to " + std::to_string(most));
    }
    if (*matrix->name == 'B' && zero != 0 && spec_.b_quantization % 2 == 0) {
      return Wrong(prefix + "zp " + std::to_string(i) + " is " +
                   std::to_string(zero) +
                   ", and B_quant_type is one without zero points: create the "
                   "context with the one that ends in _ASYM");
    }
  }
  matrix->scales.assign(params.scale, params.scale + count);
  matrix->zeros.clear();
  if (has_zeros) matrix->zeros.assign(params.zp, params.zp + count);
  scales_changed_ = true;
  return {};
}

// The largest is taken out of them.
Outcome Matmul::GetQuantParams(rknn_quant_params* params, float* factor) {
  const base::MutexLock lock(mutex_);
  const matmul::Elements elements = matmul::ElementsOf(spec_.type);
  if (elements.a != matmul::Element::kInt8 ||
      elements.b != matmul::Element::kInt8 ||
      elements.c != matmul::Element::kInt32 ||
      spec_.b_scales() != matmul::Scales::kPerChannel) {
    return Wrong(
        "only RKNN_INT8_MM_INT8_TO_INT32 with a scale for each channel of B "
        "has parameters to be read");
  }
  const Matrix& b = matrices_[1];
  const auto count = static_cast<size_t>(shape_.n);
  if (params->scale != nullptr &&
      params->scale_len < static_cast<int32_t>(count)) {
    return Wrong("scale has room for " + std::to_string(params->scale_len) +
                 " entries, B has " + std::to_string(count) +
                 ": give room for all, or NULL");
  }
  given_scales_ = b.scales;
  given_scales_.resize(count, 1.0F);
  *factor = *std::max_element(given_scales_.begin(), given_scales_.end());
  for (float& scale : given_scales_) scale /= *factor;
  std::memset(params->name, 0, sizeof params->name);
  params->name[0] = 'B';
  if (params->scale == nullptr) {
    params->scale = given_scales_.data();
  } else {
    std::copy(given_scales_.begin(), given_scales_.end(), params->scale);
  }
  params->scale_len = static_cast<int32_t>(count);
  if (params->zp != nullptr && params->zp_len >= params->scale_len) {
    std::fill_n(params->zp, count, 0);
    std::copy(b.zeros.begin(), b.zeros.end(), params->zp);
    params->zp_len = params->scale_len;
  } else {
    params->zp_len = 0;
  }
  return {};
}

Outcome Matmul::WriteScales() {
  if (scales_ == nullptr || !scales_changed_) return {};
  const auto first = [](const auto& list, float none) {
    return list.empty() ? none : static_cast<float>(list[0]);
  };
  const auto count = static_cast<size_t>(spec_.ScaleCount(shape_));
  std::vector<float> numbers = {
      first(matrices_[0].scales, 1), first(matrices_[0].zeros, 0),
      first(matrices_[2].scales, 1), first(matrices_[2].zeros, 0)};
  const Matrix& b = matrices_[1];
  if (!b.scales.empty() && b.scales.size() != count) {
    return Failure{
        {Code::kFailedPrecondition,
         "matrix B has " + std::to_string(b.scales.size()) +
             " scales of another shape, the current one has " +
             std::to_string(count) + ": call rknn_matmul_set_quant_params"},
        Subject::kContext};
  }
  numbers.resize(matmul::kScaleHeader + 2 * count, 1.0F);
  const auto scales = numbers.begin() + matmul::kScaleHeader;
  std::copy(b.scales.begin(), b.scales.end(), scales);
  const auto zeros = scales + static_cast<std::ptrdiff_t>(count);
  std::fill(zeros, numbers.end(), 0.0F);
  std::copy(b.zeros.begin(), b.zeros.end(), zeros);
  scales_->BeginCpuAccess(CpuAccess::kWrite);
  std::memcpy(scales_->bytes().data(), numbers.data(),
              numbers.size() * sizeof(float));
  scales_->EndCpuAccess(CpuAccess::kWrite);
  scales_changed_ = false;
  return {};
}

Outcome Matmul::Run(Context& context) {
  {
    const base::MutexLock lock(mutex_);
    for (const Matrix& matrix : matrices_) {
      if (matrix.bound) continue;
      return Failure{{Code::kFailedPrecondition,
                      std::string("matrix ") + matrix.name +
                          " has no memory: call rknn_matmul_set_io_mem before "
                          "rknn_matmul_run"},
                     Subject::kContext};
    }
    if (Outcome written = WriteScales(); !written.ok()) return written;
  }
  return context.Run(nullptr);
}

}  // namespace rknnd::client
