// See compiled_form.h.

#include "driver/soft/compiled/compiled_form.h"

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/memory/fault_guard.h"
#include "driver/soft/compiled/byte_stream.h"
#include "driver/soft/compiled/graph_form.h"
#include "driver/soft/import/options.h"
#include "driver/soft/import/shapes.h"
#include "driver/soft/plan/weights.h"

namespace rknnd::soft {
namespace {

constexpr size_t kAlignment = ModelWeights::kAlignment;
// A network has a few for each node.
constexpr uint64_t kMaxPieces = uint64_t{1} << 20;

absl::Status Damaged(const char* what) {
  return absl::DataLossError(
      absl::StrCat("the compiled form is damaged: ", what));
}

// What a piece takes: ModelWeights counts the same.
size_t RoomFor(size_t size) {
  return size == 0 ? kAlignment
                   : (size + kAlignment - 1) / kAlignment * kAlignment;
}

// False where the bytes have gone.
bool Copy(std::span<const std::byte> from, void* to) {
  return from.empty() || driver::Guarded(from, [&] {
           std::memcpy(to, from.data(), from.size());
         });
}

// The description, which follows its size. Copied: what is checked must be what
// is used, and the file behind it may be cut or changed at any time.
absl::StatusOr<std::vector<std::byte>> CopyHead(
    std::span<const std::byte> bytes) {
  uint64_t size = 0;
  if (bytes.size() < sizeof size) return Damaged("it ends too early");
  if (!Copy(bytes.first(sizeof size), &size)) return Damaged("its file is cut");
  bytes = bytes.subspan(sizeof size);
  if (size > bytes.size()) return Damaged("it ends too early");
  bytes = bytes.first(static_cast<size_t>(size));
  std::vector<std::byte> head(bytes.size());
  if (!Copy(bytes, head.data())) return Damaged("its file is cut");
  return head;
}

}  // namespace

uint64_t CompiledForm::WeightBytes() const {
  uint64_t bytes = 0;
  for (const auto piece : pieces) bytes += RoomFor(piece.size());
  return bytes;
}

absl::Status CompiledForm::Write(
    absl::FunctionRef<absl::Status(std::span<const std::byte>)> write) const {
  ByteWriter head;
  head.Put(kFormNumber);
  head.PutText(custom_string);
  head.PutText(target_platform);
  head.Put(batch);
  head.Put(listed_rows);
  head.PutCount(pieces.size());
  for (const auto piece : pieces) head.PutCount(piece.size());
  std::vector<const Graph*> graphs;
  for (const Row& row : rows) graphs.push_back(row.graph.get());
  const ConstantTable constants(graphs);
  constants.Write(head);
  head.PutCount(rows.size());
  for (const Row& row : rows) {
    row.plan.Write(head);
    WriteGraph(*row.graph, constants, head);
  }
  ByteWriter size;
  size.PutCount(head.bytes().size());
  RKNND_RETURN_IF_ERROR(write(size.bytes()));
  RKNND_RETURN_IF_ERROR(write(head.bytes()));
  static constexpr std::array<std::byte, kAlignment> kZeros{};
  const auto pad = [&](size_t written, size_t whole) {
    return write(std::span(kZeros).first(whole - written));
  };
  const size_t so_far = size.bytes().size() + head.bytes().size();
  RKNND_RETURN_IF_ERROR(pad(so_far, RoomFor(so_far)));
  for (const auto piece : pieces) {
    RKNND_RETURN_IF_ERROR(write(piece));
    RKNND_RETURN_IF_ERROR(pad(piece.size(), RoomFor(piece.size())));
  }
  return absl::OkStatus();
}

absl::StatusOr<CompiledForm> CompiledForm::Read(
    std::span<const std::byte> bytes, const OperatorTable& operators) {
  RKNND_ASSIGN_OR_RETURN(const std::vector<std::byte> head, CopyHead(bytes));
  ByteReader reader(head);
  if (reader.Get<uint32_t>() != kFormNumber) {
    return Damaged("it begins with something else");
  }
  CompiledForm form;
  form.custom_string = reader.GetText();
  form.target_platform = reader.GetText();
  form.batch = reader.Get<uint32_t>();
  form.listed_rows = reader.Get<uint32_t>();
  // The pieces are found here, not read.
  ByteReader from(bytes);
  from.GetRaw(RoomFor(sizeof(uint64_t) + head.size()));
  if (!from.good()) return Damaged("it ends too early");
  const size_t pieces = reader.GetCount(sizeof(uint64_t), kMaxPieces);
  form.pieces.reserve(pieces);
  for (size_t p = 0; p < pieces; ++p) {
    const auto size = reader.Get<uint64_t>();
    if (size > from.left()) return Damaged("it ends too early");
    const auto room = from.GetRaw(RoomFor(static_cast<size_t>(size)));
    if (!from.good()) return Damaged("it ends too early");
    form.pieces.push_back(room.first(static_cast<size_t>(size)));
  }
  if (from.left() != 0) return Damaged("something follows its end");
  ConstantTable constants;
  constants.Read(reader);
  const size_t rows = reader.GetCount(/*least=*/32, kMaxShapeRows);
  for (size_t r = 0; r < rows; ++r) {
    SavedPlan plan = SavedPlan::Read(reader, pieces);
    RKNND_ASSIGN_OR_RETURN(Graph graph,
                           ReadGraph(reader, constants, operators));
    form.rows.push_back(
        {std::make_unique<const Graph>(std::move(graph)), std::move(plan)});
  }
  const bool counts = rows == (form.listed_rows == 0 ? 1 : form.listed_rows) &&
                      form.batch > 0 && form.batch <= kMaxBatch;
  if (!reader.good() || reader.left() != 0 || !counts) {
    return Damaged("its description cannot be read");
  }
  return form;
}

}  // namespace rknnd::soft
