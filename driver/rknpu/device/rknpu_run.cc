// Running a model: RknpuModel::Run and what belongs to it.

#include <algorithm>
#include <bit>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/half.h"
#include "driver/memory/fault_guard.h"
#include "driver/rknpu/device/rknpu_model.h"
#include "driver/soft/attached_memory.h"

namespace rknnd::rknpu {

struct RknpuModel::Running {
  // A port that the NPU works with where the program has it.
  struct Bound {
    const Port* port = nullptr;
    Port::Direct place;
    std::unique_ptr<PlacedMemory> memory;
    soft::AttachedMemory* client = nullptr;
    std::atomic<bool> torn{false};
    std::optional<driver::FaultPatch> patch;
  };

  const driver::JobRequest& job;
  const base::Clock& clock;
  const std::atomic<bool>* stop_too;
  Core& core;
  std::byte* scratch = nullptr;
  std::unique_ptr<PlacedMemory> internal = nullptr;
  std::span<std::byte> arena = {};
  std::deque<Bound> bound = {};
  std::vector<ReachableMemory> memory = {};
  uint32_t slice = 0;
  // The NPU's numbers of the cores that the job has, ascending.
  std::array<uint32_t, kMostCores> cores = {};
  // One job of the NPU for each node: somebody wants to know of each.
  bool node_by_node = false;
  base::Nanoseconds since = 0;

  // Patches end in the order in which they were made, the last one first.
  ~Running() {
    while (!bound.empty()) bound.pop_back();
  }
  [[nodiscard]] bool stopped() const {
    return (job.stop != nullptr && job.stop->load()) ||
           (stop_too != nullptr && stop_too->load());
  }
  [[nodiscard]] const Bound* FindBound(uint32_t tensor) const {
    for (const Bound& one : bound) {
      if (one.port->tensor() == tensor) return &one;
    }
    return nullptr;
  }
};

namespace {

// The arena of the job, as large as the file says.
absl::StatusOr<std::span<std::byte>> InternalOf(const driver::JobRequest& job,
                                                uint64_t needed) {
  if (job.internal == nullptr) {
    return absl::InvalidArgumentError("the job has no internal memory");
  }
  const std::span<std::byte> bytes =
      static_cast<const soft::AttachedMemory&>(*job.internal)
          .From(job.internal_offset);
  if (bytes.size() < needed) {
    return absl::InvalidArgumentError(absl::StrCat(
        "internal memory has ", bytes.size(), " bytes, ", needed, " needed"));
  }
  return bytes.first(static_cast<size_t>(needed));
}

bool Overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

absl::Status RknpuModel::Run(const driver::JobRequest& job,
                             const Around& around) const {
  if (!stop_.ok()) return stop_;
  Core& core = *cores_[job.core];
  Running run{job, *around.clock, around.stop_too, core, around.scratch};
  RKNND_ASSIGN_OR_RETURN(run.arena, InternalOf(job, file_.internal_bytes));
  auto& internal = static_cast<soft::AttachedMemory&>(*job.internal);
  RKNND_ASSIGN_OR_RETURN(run.internal, Place(internal, run.arena));
  if (internal.TakeCleared()) {
    RKNND_RETURN_IF_ERROR(
        backend_->Sync(*run.internal, 0, run.arena.size(), SyncSide::kToNpu));
  }
  run.memory = {{constants_.get(), false},
                {core.commands.get(), false},
                {core.private_memory.get(), true},
                {run.internal.get(), true}};
  std::fill(job.layer_times.begin(), job.layer_times.end(), 0);
  run.node_by_node = !job.layer_times.empty() || job.layer_sink != nullptr;
  uint32_t count = 0;
  const uint32_t mask = job.core_mask | 1U << job.core;
  for (uint32_t c = 0; c < cores_.size() && count < kMostCores; ++c) {
    if ((mask >> c & 1) != 0) run.cores[count++] = c;
  }
  // A file without lists for so many cores is run by the first of them, and
  // so is any where the NPU has no job for just these.
  if (schedules_[count - 1].empty() || !backend_->CanGang(mask)) count = 1;
  // A program may map the arena and take pages away.
  std::atomic<bool> torn{false};
  const driver::FaultPatch patch(run.arena, &torn);
  BindPorts(run);
  absl::Status status;
  for (run.slice = 0; run.slice < file_.batch && status.ok(); ++run.slice) {
    MoveTensors(run);
    run.since = run.node_by_node ? run.clock.Now() : 0;
    status = SyncCommands(run);
    if (status.ok()) status = RunPorts(run, driver::Direction::kInput);
    for (const Step& step : schedules_[count - 1]) {
      if (status.ok()) status = RunStep(run, step);
    }
    if (status.ok()) status = RunPorts(run, driver::Direction::kOutput);
  }
  if (torn.load(std::memory_order_relaxed)) {
    return absl::DataLossError(
        "the internal memory went away during the job: its file was "
        "truncated or punched");
  }
  for (Running::Bound& bound : run.bound) {
    if (!bound.torn.load(std::memory_order_relaxed)) continue;
    bound.client->SetTorn();
    return absl::DataLossError(absl::StrCat(
        "the memory bound to '", bound.port->attr().name,
        "' went away during the job: its file was truncated or punched"));
  }
  return status;
}

// What shares bytes with anything else that the job works in is converted: the
// NPU would read, or overwrite, what it must not.
void RknpuModel::BindPorts(Running& run) const {
  const auto is_shared = [&](std::span<const std::byte> own,
                             const driver::TensorBinding* binding) {
    if (Overlap(own, run.arena)) return true;
    for (size_t i = 0; i < inputs_.size() + outputs_.size(); ++i) {
      const bool reads = i < inputs_.size();
      const size_t at = reads ? i : i - inputs_.size();
      const driver::TensorBinding& other =
          reads ? run.job.inputs[at] : run.job.outputs[at];
      const Port& port = reads ? inputs_[at] : outputs_[at];
      if (&other != binding && Overlap(own, port.RangeOf(other))) return true;
    }
    return false;
  };
  for (const auto direction :
       {driver::Direction::kInput, driver::Direction::kOutput}) {
    const bool reads = direction == driver::Direction::kInput;
    const auto bindings = reads ? run.job.inputs : run.job.outputs;
    for (size_t i = 0; i < bindings.size(); ++i) {
      const Port& port = reads ? inputs_[i] : outputs_[i];
      const Port::Direct place = port.DirectOf(bindings[i]);
      if (place.bytes.empty() || is_shared(place.bytes, &bindings[i])) continue;
      absl::StatusOr<std::unique_ptr<PlacedMemory>> memory = Place(
          static_cast<soft::AttachedMemory&>(*bindings[i].memory), place.bytes);
      if (!memory.ok()) continue;
      Running::Bound& bound = run.bound.emplace_back();
      bound.port = &port;
      bound.place = place;
      bound.memory = *std::move(memory);
      bound.client = static_cast<soft::AttachedMemory*>(bindings[i].memory);
      bound.patch.emplace(place.bytes, &bound.torn);
      run.memory.push_back({bound.memory.get(), !reads});
    }
  }
}

void RknpuModel::MoveTensors(Running& run) const {
  if (run.slice == 0) {
    const uint64_t internal = run.internal->address();
    for (uint32_t t = 0; t < placement_.homes.size(); ++t) {
      const TensorHome& home = placement_.homes[t];
      if (home.home != Home::kInternal || run.FindBound(t) != nullptr) continue;
      run.core.relocated->Move(t, internal + home.offset);
    }
  }
  for (const Running::Bound& bound : run.bound) {
    run.core.relocated->Move(
        bound.port->tensor(),
        bound.memory->address() + run.slice * bound.place.step);
  }
}

std::byte* RknpuModel::Locate(const Running& run, uint32_t tensor) const {
  if (const Running::Bound* bound = run.FindBound(tensor)) {
    return bound->place.bytes.data() + run.slice * bound->place.step;
  }
  const TensorHome& home = placement_.homes[tensor];
  const PlacedMemory* memory = run.internal.get();
  if (home.home == Home::kConstants) memory = constants_.get();
  if (home.home == Home::kPrivate) memory = run.core.private_memory.get();
  return memory->bytes().data() + home.offset;
}

absl::StatusOr<std::unique_ptr<PlacedMemory>> RknpuModel::Place(
    const soft::AttachedMemory& memory, std::span<std::byte> bytes) const {
  const auto inside =
      static_cast<uint64_t>(bytes.data() - memory.From(0).data());
  return backend_->PlaceDmaBuf(memory.shareable(), memory.offset() + inside,
                               bytes);
}

absl::Status RknpuModel::Sync(const Running& run, uint32_t tensor,
                              SyncSide side) const {
  const uint64_t bytes = file_.tensors[tensor].bytes;
  if (const Running::Bound* bound = run.FindBound(tensor)) {
    // As much of it as the program has there.
    const uint64_t begin = run.slice * bound->place.step;
    return backend_->Sync(
        *bound->memory, begin,
        std::min<uint64_t>(bytes, bound->place.bytes.size() - begin), side);
  }
  const TensorHome& home = placement_.homes[tensor];
  if (home.home != Home::kInternal) return absl::OkStatus();
  return backend_->Sync(*run.internal, home.offset, bytes, side);
}

absl::Status RknpuModel::SyncCommands(Running& run) const {
  const RelocatedCommands::Changed words = run.core.relocated->TakeChanged();
  if (words.begin >= words.end) return absl::OkStatus();
  return backend_->Sync(*run.core.commands, words.begin * sizeof(uint64_t),
                        (words.end - words.begin) * sizeof(uint64_t),
                        SyncSide::kToNpu);
}

absl::Status RknpuModel::RunPorts(Running& run,
                                  driver::Direction direction) const {
  const bool reads = direction == driver::Direction::kInput;
  const std::vector<Port>& ports = reads ? inputs_ : outputs_;
  const auto bindings = reads ? run.job.inputs : run.job.outputs;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Port& port = ports[i];
    std::byte* const native = Locate(run, port.tensor());
    const bool converted = run.FindBound(port.tensor()) == nullptr;
    if (!reads) {
      RKNND_RETURN_IF_ERROR(Sync(run, port.tensor(), SyncSide::kFromNpu));
    }
    if (const std::optional<size_t> from = PassedFrom(i); !reads && from) {
      RKNND_RETURN_IF_ERROR(inputs_[*from].ReadDense(run.job.inputs[*from],
                                                     run.slice, run.scratch));
      RKNND_RETURN_IF_ERROR(
          port.WriteDense(bindings[i], run.slice, run.scratch));
    } else if (converted) {
      RKNND_RETURN_IF_ERROR(
          reads ? port.Read(bindings[i], run.slice, native, run.scratch)
                : port.Write(native, bindings[i], run.slice, run.scratch));
    }
    if (reads) {
      RKNND_RETURN_IF_ERROR(Sync(run, port.tensor(), SyncSide::kToNpu));
    }
    if (!run.node_by_node) continue;
    for (uint32_t n = 0; n < file_.nodes.size(); ++n) {
      const Node& node = file_.nodes[n];
      const std::vector<uint32_t>& own = reads ? node.outputs : node.inputs;
      if (IsPortNode(node) && !own.empty() && own[0] == port.tensor()) {
        RKNND_RETURN_IF_ERROR(EndNode(run, n));
      }
    }
  }
  return absl::OkStatus();
}

// What a custom operator made reaches the model's output as it is: the NPU's
// form of it has fewer bits.
std::optional<size_t> RknpuModel::PassedFrom(size_t output) const {
  if (!part_ || output >= outputs_.size()) return std::nullopt;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].tensor() == outputs_[output].tensor()) return i;
  }
  return std::nullopt;
}

absl::Status RknpuModel::RunStep(Running& run, const Step& step) const {
  if (run.stopped()) return absl::CancelledError("the job was stopped");
  if (step.on_cpu) {
    RKNND_RETURN_IF_ERROR(RunCpuNode(run, step.node));
    return run.node_by_node ? EndNode(run, step.node) : absl::OkStatus();
  }
  return RunPiece(run, step.piece);
}

absl::Status RknpuModel::RunCpuNode(Running& run, uint32_t node) const {
  for (const uint32_t tensor : file_.nodes[node].inputs) {
    RKNND_RETURN_IF_ERROR(Sync(run, tensor, SyncSide::kFromNpu));
  }
  cpu_nodes_[node]->Run([&](uint32_t tensor) { return Locate(run, tensor); });
  for (const uint32_t tensor : file_.nodes[node].outputs) {
    RKNND_RETURN_IF_ERROR(Sync(run, tensor, SyncSide::kToNpu));
  }
  return absl::OkStatus();
}

// Where nodes are looked at, a piece is as many jobs: a job may begin at any
// node, as tasks take nothing from those of another one.
absl::Status RknpuModel::RunPiece(Running& run, const Piece& piece) const {
  if (!run.node_by_node) return RunTasks(run, piece);
  uint32_t done = 0;
  while (done < piece.ranges[0].count) {
    const uint32_t first = piece.ranges[0].first + done;
    const uint32_t node = file_.tasks[first].node;
    Piece part = piece;
    uint32_t count = 1;
    while (done + count < piece.ranges[0].count &&
           file_.tasks[first + count].node == node) {
      ++count;
    }
    for (uint32_t c = 0; c < piece.cores; ++c) {
      part.ranges[c] = {piece.ranges[c].first + done, count};
    }
    RKNND_RETURN_IF_ERROR(RunTasks(run, part));
    RKNND_RETURN_IF_ERROR(EndNode(run, node));
    done += count;
  }
  return absl::OkStatus();
}

absl::Status RknpuModel::RunTasks(Running& run, const Piece& piece) const {
  std::array<CoreTasks, kMostCores> cores;
  for (uint32_t c = 0; c < piece.cores; ++c) {
    cores[c] = {run.cores[c], piece.ranges[c]};
  }
  const absl::Status status =
      backend_->Run({.table = run.core.table.get(),
                     .cores = std::span(cores).first(piece.cores),
                     .memory = run.memory,
                     .stop = run.job.stop,
                     .stop_too = run.stop_too});
  if (status.ok() || absl::IsCancelled(status)) return status;
  return base::Annotate(
      status, absl::StrCat("layers '", file_.nodes[piece.first_node].name,
                           "' to '", file_.nodes[piece.last_node].name, "'"));
}

absl::Status RknpuModel::EndNode(Running& run, uint32_t node) const {
  const base::Nanoseconds now = run.clock.Now();
  if (node < run.job.layer_times.size()) {
    run.job.layer_times[node] += now - run.since;
  }
  absl::Status status =
      run.job.layer_sink == nullptr ? absl::OkStatus() : Show(run, node);
  run.since = run.clock.Now();
  return status;
}

// Runs that are dumped are slow and may allocate.
absl::Status RknpuModel::Show(Running& run, uint32_t n) const {
  for (const uint32_t t : file_.nodes[n].outputs) {
    const Tensor& tensor = file_.tensors[t];
    const absl::StatusOr<NativeTensor> native = NativeTensor::Make(tensor);
    const bool is_real =
        tensor.type == ElementType::kFloat16 ||
        (tensor.type == ElementType::kInt8 && tensor.scales.size() == 1);
    // Scratch of a node is no output.
    if (!native.ok() || !is_real || !tensor.in_internal_memory()) continue;
    RKNND_RETURN_IF_ERROR(Sync(run, t, SyncSide::kFromNpu));
    std::vector<std::byte> dense(native->dense_bytes());
    native->Unpack(Locate(run, t), dense.data());
    std::vector<float> numbers(native->elements());
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (tensor.type == ElementType::kInt8) {
        numbers[i] = static_cast<float>(static_cast<int8_t>(dense[i]) -
                                        tensor.zero_points[0]) *
                     tensor.scales[0];
      } else {
        base::Half half = 0;
        std::copy_n(dense.data() + i * sizeof half, sizeof half,
                    reinterpret_cast<std::byte*>(&half));
        numbers[i] = base::HalfToFloat(half);
      }
    }
    const std::vector<int64_t> shape(tensor.shape.begin(), tensor.shape.end());
    RKNND_RETURN_IF_ERROR(run.job.layer_sink->OnLayer(
        {.layer = n,
         .name = tensor.name,
         .type = driver::TensorType::kFloat32,
         .shape = shape,
         .bytes = std::as_bytes(std::span(numbers))}));
  }
  return absl::OkStatus();
}

}  // namespace rknnd::rknpu
