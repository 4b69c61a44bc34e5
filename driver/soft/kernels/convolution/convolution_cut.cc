// See convolution_cut.h.

#include "driver/soft/kernels/convolution/convolution_cut.h"

#include <algorithm>
#include <array>

#include "base/status/status.h"

namespace rknnd::soft {
namespace {

// The nine inputs of a QLinearConv and an added tensor.
constexpr size_t kMaxInputs = 12;

int64_t Blocks(const TensorSpec& spec) {
  const int64_t block = spec.placement.block;
  return (spec.shape[1] + block - 1) / block;
}

// Rows of one image follow each other: all channels of a row lie together.
bool RowsAreRuns(const TensorSpec& spec) {
  return spec.shape[0] == 1 && Blocks(spec) == 1;
}

size_t BytesFrom(const TensorSpec& spec, size_t axis, int64_t index) {
  const auto all = static_cast<int64_t>(spec.bytes());
  return static_cast<size_t>(all / spec.shape[axis] * index);
}

// From the first channel of an image: channels of whole blocks.
size_t BytesFromChannel(const TensorSpec& spec, int64_t channel) {
  const auto all = static_cast<int64_t>(spec.bytes());
  return static_cast<size_t>(all / Blocks(spec) *
                             (channel / spec.placement.block));
}

bool TakeImages(const ConvolutionForm& form, Part part,
                ConvolutionPiece& piece) {
  const int64_t images = form.input.shape[0];
  if (images < part.count) return false;
  const Range share = ShareOf(part, images);
  piece.input.shape[0] = piece.output.shape[0] = share.size();
  piece.input_at = BytesFrom(form.input, 0, share.begin);
  piece.output_at = BytesFrom(form.output, 0, share.begin);
  return true;
}

bool TakeRows(const ConvolutionForm& form, Part part, ConvolutionPiece& piece) {
  constexpr size_t kRows = 2;  // the outermost axis of a picture
  const int64_t rows = form.output.shape[kRows];
  if (!RowsAreRuns(form.input) || !RowsAreRuns(form.output) ||
      rows < part.count) {
    return false;
  }
  const Range share = ShareOf(part, rows);
  const int64_t extent = (form.kernel[0] - 1) * form.dilations[0] + 1;
  // The rows that are read, those of the padding included.
  const int64_t first = share.begin * form.strides[0] - form.pads_begin[0];
  const int64_t last =
      (share.end - 1) * form.strides[0] - form.pads_begin[0] + extent;
  const int64_t begin = std::max<int64_t>(first, 0);
  const int64_t end = std::min(last, form.input.shape[kRows]);
  if (begin >= end) return false;  // nothing but padding
  piece.input.shape[kRows] = end - begin;
  piece.output.shape[kRows] = share.size();
  piece.pads_begin[0] = begin - first;
  piece.pads_end[0] = last - end;
  piece.input_at = BytesFrom(form.input, kRows, begin);
  piece.output_at = BytesFrom(form.output, kRows, share.begin);
  return true;
}

// With its channels in one block, or all in a row, an image's channels are
// runs; those of several images are not.
bool TakeChannels(const ConvolutionForm& form, Part part,
                  ConvolutionPiece& piece) {
  const int64_t outputs = form.output.shape[1];
  if (form.channel_unit == 0 || form.output.shape[0] != 1) return false;
  int64_t unit = form.channel_unit;
  for (const TensorSpec* spec : {&form.output, &form.input}) {
    if (spec == &form.input && form.groups == 1) continue;
    // Both are powers of two, or the unit is a group of whole blocks.
    unit = std::max<int64_t>(unit, spec->placement.block);
    if (unit % spec->placement.block != 0) return false;
  }
  if ((outputs + unit - 1) / unit < part.count) return false;
  piece.channels = ShareOf(part, outputs, unit);
  piece.output.shape[1] = piece.channels.size();
  piece.output_at = BytesFromChannel(form.output, piece.channels.begin);
  if (form.groups == 1) return true;
  const int64_t inputs_of_group = form.input.shape[1] / form.groups;
  const int64_t outputs_of_group = outputs / form.groups;
  if (piece.channels.begin % outputs_of_group != 0 ||
      piece.channels.size() % outputs_of_group != 0) {
    return false;
  }
  const int64_t first = piece.channels.begin / outputs_of_group;
  piece.groups = piece.channels.size() / outputs_of_group;
  piece.input.shape[1] = piece.groups * inputs_of_group;
  if (first * inputs_of_group % form.input.placement.block != 0) return false;
  piece.input_at = BytesFromChannel(form.input, first * inputs_of_group);
  return true;
}

// Of a pointwise convolution whose output is one run and its input is not. A
// piece sees the picture as one of `count` long rows, of which a stride of
// `count` reads only the first: its own.
bool TakePixels(const ConvolutionForm& form, Part part,
                ConvolutionPiece& piece) {
  const auto all = [](const Shape& shape, int64_t value) {
    return std::all_of(shape.begin(), shape.end(),
                       [value](int64_t v) { return v == value; });
  };
  const Shape& shape = form.output.shape;
  const int64_t count = part.count;
  if (form.groups != 1 || shape.size() != 4 || !RowsAreRuns(form.output) ||
      form.input.shape[0] != 1 || !all(form.kernel, 1) ||
      !all(form.strides, 1) || !all(form.pads_begin, 0) ||
      !all(form.pads_end, 0) || shape[2] * shape[3] % count != 0) {
    return false;
  }
  const int64_t pixels = shape[2] * shape[3] / count;
  piece.input.shape = {1, form.input.shape[1], count, pixels};
  piece.output.shape = {1, shape[1], 1, pixels};
  piece.strides = {count, 1};
  // The first block, or channel, of the input, and its only one of the output.
  const auto bytes_of = [&](const TensorSpec& spec) {
    return static_cast<size_t>(part.index * pixels * spec.placement.block) *
           SizeOf(spec.type);
  };
  piece.input_at = bytes_of(form.input);
  piece.output_at = bytes_of(form.output);
  return true;
}

Work WorkOf(const ConvolutionForm& form) {
  Work work;
  work.bytes = static_cast<int64_t>(form.input.bytes() + form.output.bytes());
  work.operations =
      form.output.elements() * (form.input.shape[1] / form.groups);
  for (const int64_t size : form.kernel) work.operations *= size;
  return work;
}

}  // namespace

std::optional<ConvolutionPiece> CutConvolution(const ConvolutionForm& form,
                                               Part part) {
  for (const auto take : {TakeImages, TakeRows, TakeChannels, TakePixels}) {
    ConvolutionPiece piece{form.input,
                           form.output,
                           form.strides,
                           form.pads_begin,
                           form.pads_end,
                           form.groups,
                           {0, form.output.shape[1]}};
    if (take(form, part, piece)) return piece;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<ConvolutionInPieces::Piece>>
ConvolutionInPieces::Cut(const ConvolutionForm& form, uint32_t count,
                         MakePiece make) {
  std::vector<Piece> pieces;
  for (uint32_t index = 0; index < count; ++index) {
    const auto cut = CutConvolution(form, {index, count});
    if (!cut.has_value()) return std::vector<Piece>();
    auto kernel = make(*cut);
    if (absl::IsResourceExhausted(kernel.status())) return kernel.status();
    if (!kernel.ok() || *kernel == nullptr) return std::vector<Piece>();
    pieces.push_back({*std::move(kernel), cut->input_at, cut->output_at});
  }
  return pieces;
}

MadeKernel ConvolutionInPieces::Make(
    std::unique_ptr<Kernel>& whole, const ConvolutionForm& form, uint32_t cores,
    size_t add_index,
    absl::FunctionRef<MadeKernel(const ConvolutionPiece&)> make) {
  const Work work = WorkOf(form);
  cores = PartsOf(work, cores, cores);
  std::vector<Piece> brief;
  std::vector<std::vector<Piece>> of_gangs;
  // Even shares for two cores and for three; fewer where there are not so many
  // rows or channels.
  constexpr int64_t kEven = 6, kMost = 600;
  const bool slow = whole->is_reference();
  // What may be in one piece all the same: each piece reads the input anew.
  const int64_t leeway = slow ? 1 : 4;
  const int64_t wanted =
      work.operations / (slow ? kMostOfPlainLoops : MostOperations());
  const bool is_long = wanted >= leeway;
  for (int64_t count = std::min(wanted / kEven * kEven + kEven, kMost);
       is_long && brief.empty(); --count) {
    if (count < 2 || count * leeway <= wanted) {
      return absl::UnimplementedError("it cannot be cut");
    }
    RKNND_ASSIGN_OR_RETURN(brief,
                           Cut(form, static_cast<uint32_t>(count), make));
  }
  for (uint32_t count = 2; !is_long && count <= cores; ++count) {
    RKNND_ASSIGN_OR_RETURN(std::vector<Piece> pieces, Cut(form, count, make));
    if (pieces.empty()) break;
    of_gangs.push_back(std::move(pieces));
  }
  if (brief.empty() && of_gangs.empty()) return std::move(whole);
  std::unique_ptr<ConvolutionInPieces> result(
      new ConvolutionInPieces(std::move(whole), add_index));
  result->brief_ = std::move(brief);
  result->of_gangs_ = std::move(of_gangs);
  return result;
}

size_t ConvolutionInPieces::scratch_size() const {
  size_t size = whole_->scratch_size();
  const auto add = [&](const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      size = std::max(size, piece.kernel->scratch_size());
    }
  };
  add(brief_);
  for (const auto& pieces : of_gangs_) add(pieces);
  return size;
}

uint32_t ConvolutionInPieces::PartsFor(uint32_t cores) const {
  const size_t most = brief_.empty() ? of_gangs_.size() + 1 : brief_.size();
  return std::min(cores, static_cast<uint32_t>(most));
}

absl::Status ConvolutionInPieces::RunPart(Part part, Inputs inputs,
                                          Outputs outputs,
                                          std::byte* scratch) const {
  if (brief_.empty() && part.count == 1) {
    return whole_->Run(inputs, outputs, scratch);
  }
  const auto& pieces = brief_.empty() ? of_gangs_[part.count - 2] : brief_;
  std::array<const std::byte*, kMaxInputs> from{};
  if (inputs.size() > from.size()) {
    return absl::InternalError("a convolution has too many inputs");
  }
  const Range share = ShareOf(part, static_cast<int64_t>(pieces.size()));
  for (int64_t i = share.begin; i < share.end; ++i) {
    StopPoint();
    const Piece& piece = pieces[static_cast<size_t>(i)];
    std::copy(inputs.begin(), inputs.end(), from.begin());
    from[0] += piece.input_at;
    if (add_index_ < inputs.size()) from[add_index_] += piece.output_at;
    std::byte* const to[] = {outputs[0] + piece.output_at};
    RKNND_RETURN_IF_ERROR(
        piece.kernel->Run(Inputs(from.data(), inputs.size()), to, scratch));
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft
