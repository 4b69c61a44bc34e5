#include "driver/soft/matmul/matmul_model.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/memory/fault_guard.h"
#include "driver/soft/attached_memory.h"
#include "driver/soft/timing/layer_work.h"

namespace rknnd::soft {
namespace {

using driver::TensorAttr;
using driver::TensorType;

driver::TensorAttr AttrOf(const char* name, const matmul::Form& form) {
  TensorAttr attr;
  attr.name = name;
  attr.dims = form.dims;
  attr.elements = 1;
  for (const uint32_t dim : form.dims) attr.elements *= dim;
  attr.size = attr.size_with_stride = form.bytes;
  attr.type = attr.file_type = static_cast<TensorType>(form.element);
  attr.quantization = driver::Quantization::kNone;
  return attr;
}

// As a convolution with one tap, where a row is a pixel.
LayerWork WorkOf(const matmul::Spec& spec, const matmul::Shape& shape,
                 const SocProfile& soc) {
  const matmul::Elements elements = matmul::ElementsOf(spec.type);
  ConvShape conv;
  conv.in_height = conv.out_height = 1;
  conv.in_width = conv.out_width = static_cast<uint64_t>(shape.m);
  conv.in_channels = static_cast<uint64_t>(shape.k);
  conv.out_channels = static_cast<uint64_t>(shape.n);
  conv.element_bytes = elements.a == matmul::Element::kFloat16 ? 2 : 1;
  LayerWork work = ConvWork(conv, soc);
  work.splits = true;
  return work;
}

absl::Status Gone(const char* matrix) {
  return absl::DataLossError(
      absl::StrCat("the memory bound to ", matrix,
                   " went away during the job: its file was truncated or "
                   "punched"));
}

// What a job brought for one matrix.
struct Bound {
  const char* name;
  AttachedMemory* memory;
  std::span<std::byte> bytes;
  std::atomic<bool> torn{false};
};

absl::Status Bind(const driver::TensorBinding& binding, const TensorAttr& attr,
                  bool writes, std::deque<Bound>& all) {
  auto& memory = static_cast<AttachedMemory&>(*binding.memory);
  const std::span<std::byte> bytes = memory.From(binding.offset);
  if (bytes.size() < attr.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the memory bound to '", attr.name, "' has ", bytes.size(),
                     " bytes, ", attr.size, " needed"));
  }
  if (writes && !memory.writable()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the memory bound to output '", attr.name,
                     "' was attached for reading only"));
  }
  Bound& bound = all.emplace_back();
  bound.name = attr.name.c_str();
  bound.memory = &memory;
  bound.bytes = bytes.first(static_cast<size_t>(attr.size));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<MatmulModel>> MatmulModel::Load(
    const driver::LoadRequest& request, const SocProfile& soc) {
  RKNND_ASSIGN_OR_RETURN(const matmul::Spec spec,
                         base::ToStatusOr(matmul::Read(request.bytes)));
  RKNND_RETURN_IF_ERROR(base::ToStatus(matmul::Check(spec, soc.name)));
  std::unique_ptr<MatmulModel> model(new MatmulModel);
  model->info_.name = matmul::TypeName(spec.type);
  model->info_.target_platform = soc.name;
  for (const matmul::Shape& shape : spec.shapes) {
    model->AddProgram(spec, shape, soc);
  }
  const auto largest = [&model](uint32_t a, uint32_t b) {
    const auto bytes = [&](uint32_t p) {
      const driver::ProgramInfo& program = model->info_.programs[p];
      return program.inputs[0].size + program.inputs[1].size;
    };
    return bytes(a) < bytes(b) ? b : a;
  };
  for (uint32_t p = 1; p < model->info_.programs.size(); ++p) {
    model->info_.largest = largest(model->info_.largest, p);
  }
  return model;
}

void MatmulModel::AddProgram(const matmul::Spec& spec,
                             const matmul::Shape& shape,
                             const SocProfile& soc) {
  const matmul::Blocks blocks = matmul::BlocksOf(spec.type, soc.name);
  const matmul::Forms forms = matmul::FormsOf(spec, shape, blocks);
  driver::ProgramInfo info;
  info.inputs = {AttrOf("A", forms.a), AttrOf("B", forms.b)};
  if (spec.is_scaled()) {
    const int64_t floats = matmul::kScaleHeader + 2 * spec.ScaleCount(shape);
    info.inputs.push_back(
        AttrOf("scales", {{static_cast<uint32_t>(floats)},
                          matmul::Element::kFloat32,
                          static_cast<uint64_t>(floats) * sizeof(float)}));
  }
  info.outputs = {AttrOf("C", forms.c)};
  info.native_inputs = info.inputs;
  info.native_outputs = info.outputs;
  Program program = {MatmulKernel(spec, shape, blocks), {}};
  const LayerWork work = WorkOf(spec, shape, soc);
  program.times = {SimulateLayer(work, soc)};
  const LayerEstimate estimate = EstimateLayer(work, soc);
  driver::LayerInfo layer;
  layer.name = "C";
  layer.type = "MatMul";
  layer.input_shape = absl::StrCat(shape.m, ",", shape.k);
  layer.output_shape = absl::StrCat(shape.m, ",", shape.n);
  const matmul::Element a = matmul::ElementsOf(spec.type).a;
  layer.data_type = a == matmul::Element::kFloat16 ? "FLOAT16"
                    : a == matmul::Element::kInt4  ? "INT4"
                                                   : "INT8";
  layer.kernel = program.kernel.name();
  layer.splits = true;
  layer.ddr_cycles = estimate.ddr_cycles;
  layer.npu_cycles = estimate.npu_cycles;
  layer.ddr_bytes = estimate.ddr_bytes;
  layer.ddr_read = estimate.read_bytes;
  layer.macs = estimate.macs;
  layer.modelled = SimulateProgram(program.times, soc, {});
  info.modelled = layer.modelled;
  info.expected =
      std::max(layer.modelled, static_cast<base::Nanoseconds>(
                                   Times(Times(static_cast<uint64_t>(shape.m),
                                               static_cast<uint64_t>(shape.k)),
                                         static_cast<uint64_t>(shape.n)) /
                                   static_cast<uint64_t>(OperationsPerNs())));
  info.layers.push_back(std::move(layer));
  info_.programs.push_back(std::move(info));
  programs_.push_back(std::move(program));
}

absl::StatusOr<uint64_t> MatmulModel::CheckBinding(
    uint32_t program, driver::Direction direction, uint32_t index,
    const driver::TensorFormat& format) const {
  const driver::ProgramInfo& info = info_.programs[program];
  const TensorAttr& attr = direction == driver::Direction::kInput
                               ? info.inputs[index]
                               : info.outputs[index];
  if (format.type != attr.type) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", attr.name, "' is ", driver::TensorTypeName(attr.type),
        ": a matrix is not converted, so it is bound with that type"));
  }
  return attr.size;
}

size_t MatmulModel::scratch_size() const {
  size_t most = 0;
  for (const Program& program : programs_) {
    most = std::max(most, program.kernel.scratch_size());
  }
  return most;
}

absl::Status MatmulModel::Run(const driver::JobRequest& job, Gang& gang,
                              const StopSignal& stop,
                              const base::Clock& clock) const {
  const driver::ProgramInfo& info = info_.programs[job.program];
  const MatmulKernel& kernel = programs_[job.program].kernel;
  const base::Nanoseconds begun = job.layer_times.empty() ? 0 : clock.Now();
  std::deque<Bound> bound;  // they are named by their addresses
  for (size_t i = 0; i < info.inputs.size(); ++i) {
    if (job.inputs[i].frame != nullptr) {
      return absl::InvalidArgumentError("a matrix is no camera's frame");
    }
    RKNND_RETURN_IF_ERROR(
        Bind(job.inputs[i], info.inputs[i], /*writes=*/false, bound));
  }
  RKNND_RETURN_IF_ERROR(
      Bind(job.outputs[0], info.outputs[0], /*writes=*/true, bound));
  const MatmulKernel::Matrices matrices = {
      .a = bound[0].bytes.data(),
      .b = bound[1].bytes.data(),
      .scales = bound.size() > 3 ? bound[2].bytes.data() : nullptr,
      .c = bound.back().bytes.data()};
  const auto parts = static_cast<uint32_t>(
      std::min<int64_t>(gang.size(), kernel.most_parts()));
  absl::Status status = gang.Share(parts, [&](Part part, std::byte* scratch) {
    std::array<std::optional<driver::FaultPatch>, 4> patches;
    for (size_t i = 0; i < bound.size(); ++i) {
      patches[i].emplace(bound[i].bytes, &bound[i].torn);
    }
    const absl::Status done = RunStoppable(&stop, [&] {
      kernel.Run(part, matrices, scratch);
      return absl::OkStatus();
    });
    // The last one that was made goes first.
    for (size_t i = bound.size(); i-- > 0;) patches[i].reset();
    return done;
  });
  for (Bound& one : bound) {
    if (!one.torn.load(std::memory_order_relaxed)) continue;
    one.memory->SetTorn();
    return Gone(one.name);
  }
  if (!job.layer_times.empty()) job.layer_times[0] = clock.Now() - begun;
  return status;
}

}  // namespace rknnd::soft
