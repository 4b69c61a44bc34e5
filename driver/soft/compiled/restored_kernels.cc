// See restored_kernels.h.

#include "driver/soft/compiled/restored_kernels.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status/status.h"
#include "driver/memory/fault_guard.h"
#include "driver/soft/kernels/threads.h"

namespace rknnd::soft {
namespace {

absl::Status Misfit(const Node& node, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(
      "the compiled form of node '", node.name, "' (", node.type, ") ", what));
}

}  // namespace

// Stands in the plan for the kernel it will be.
class RestoredKernel final : public Kernel {
 public:
  RestoredKernel(RestoredKernels* owner, const Graph* graph, SavedKernel saved,
                 const Operator& op, const KernelRequest& request)
      : owner_(owner),
        graph_(graph),
        saved_(std::move(saved)),
        op_(&op),
        node_(&request.node.node()),
        inputs_(request.inputs.begin(), request.inputs.end()),
        outputs_(request.outputs.begin(), request.outputs.end()),
        cores_(request.cores),
        scratch_(static_cast<size_t>(saved_.scratch)) {}

  [[nodiscard]] size_t scratch_size() const override { return scratch_; }
  [[nodiscard]] std::string implementation() const override {
    return saved_.implementation;
  }
  [[nodiscard]] bool is_reference() const override {
    return saved_.is_reference;
  }
  // Asked while the plan is made.
  [[nodiscard]] bool reads_constant(size_t i) const override {
    return i >= saved_.reads_constant.size() || saved_.reads_constant[i] != 0;
  }
  // A gang does not wait for the pieces: until they are there its first core
  // does the layer, with the same answer.
  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    if (const Kernel* kernel = shared_.load(std::memory_order_acquire)) {
      return kernel->PartsFor(cores);
    }
    if (owner_->serving_) return 1;
    return cores < 2 || cores - 2 >= saved_.parts.size()
               ? 1
               : saved_.parts[cores - 2];
  }
  absl::Status Run(std::span<const std::byte* const> inputs,
                   std::span<std::byte* const> outputs,
                   std::byte* scratch) const override {
    const Kernel* kernel = whole_.load(std::memory_order_acquire);
    if (kernel == nullptr) {
      RKNND_ASSIGN_OR_RETURN(kernel, Whole());
    }
    return kernel->Run(inputs, outputs, scratch);
  }
  absl::Status RunPart(Part part, std::span<const std::byte* const> inputs,
                       std::span<std::byte* const> outputs,
                       std::byte* scratch) const override {
    const Kernel* kernel = shared_.load(std::memory_order_acquire);
    if (kernel != nullptr) {
      return kernel->RunPart(part, inputs, outputs, scratch);
    }
    return part.index == 0 ? Run(inputs, outputs, scratch) : absl::OkStatus();
  }

  // Made by now or from now on; an error that it ended with once is for good,
  // but for lack of memory.
  absl::StatusOr<const Kernel*> Whole() const {
    base::MutexLock lock(owner_->making_);
    RKNND_RETURN_IF_ERROR(MakeLocked(1, whole_kernel_, whole_));
    return whole_kernel_.get();
  }
  absl::Status MakeShared() const {
    base::MutexLock lock(owner_->making_);
    const bool shares = std::any_of(saved_.parts.begin(), saved_.parts.end(),
                                    [](uint32_t parts) { return parts > 1; });
    if (!shares) return absl::OkStatus();
    return MakeLocked(cores_, shared_kernel_, shared_);
  }
  // Nothing is made from now on: what that needs goes.
  void Settle() {
    graph_ = nullptr;
    node_ = nullptr;
  }

 private:
  // Gives the kernel what it stored when the model was compiled.
  class Replay final : public WeightStore {
   public:
    explicit Replay(const RestoredKernel& kernel) : kernel_(kernel) {}

    absl::StatusOr<const std::byte*> Store(
        size_t size, absl::FunctionRef<void(std::byte*)> /*fill*/) override {
      const std::vector<uint32_t>& stores = kernel_.saved_.stores;
      if (next_ >= stores.size()) {
        return Misfit(*kernel_.node_, "lacks some of its weights");
      }
      const uint32_t number = stores[next_++];
      const RestoredKernels& owner = *kernel_.owner_;
      if (owner.pieces_[number].size() != size) {
        return Misfit(*kernel_.node_, "has weights of another size");
      }
      return owner.places_[number];
    }

   private:
    const RestoredKernel& kernel_;
    size_t next_ = 0;
  };

  absl::Status MakeLocked(uint32_t cores, std::unique_ptr<Kernel>& made,
                          std::atomic<const Kernel*>& known) const {
    if (made != nullptr) return absl::OkStatus();
    RKNND_RETURN_IF_ERROR(failed_);
    Replay replay(*this);
    auto kernel = op_->make(KernelRequest{NodeView(*graph_, *node_), inputs_,
                                          outputs_, replay, cores});
    if (kernel.ok() && (*kernel)->scratch_size() > scratch_) {
      kernel = Misfit(*node_, "asks for too little memory");
    }
    // The plan has left out what was said not to be read.
    for (size_t i = 0; kernel.ok() && i < inputs_.size(); ++i) {
      if ((*kernel)->reads_constant(i) != reads_constant(i)) {
        kernel = Misfit(*node_, "reads another input than it says");
      }
    }
    // Memory may be there the next time.
    if (absl::IsResourceExhausted(kernel.status())) return kernel.status();
    if (!kernel.ok()) return failed_ = kernel.status();
    made = *std::move(kernel);
    known.store(made.get(), std::memory_order_release);
    return absl::OkStatus();
  }

  RestoredKernels* const owner_;
  const Graph* graph_;
  const SavedKernel saved_;
  const Operator* const op_;
  const Node* node_;
  const std::vector<TensorSpec> inputs_, outputs_;
  const uint32_t cores_;
  const size_t scratch_;
  // Written under the owner's lock.
  mutable std::unique_ptr<Kernel> whole_kernel_, shared_kernel_;
  mutable absl::Status failed_;
  mutable std::atomic<const Kernel*> whole_{nullptr}, shared_{nullptr};
};

class RestoredKernels::Parts final : public PlanParts {
 public:
  Parts(RestoredKernels* owner, Row* row) : owner_(owner), row_(row) {}

  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(
      const Operator& op, const KernelRequest& request) override {
    const size_t next = row_->kernels.size();
    if (next >= row_->plan.kernels.size()) {
      return absl::DataLossError("the compiled form has too few kernels");
    }
    auto kernel = std::make_unique<RestoredKernel>(
        owner_, row_->graph.get(), std::move(row_->plan.kernels[next]), op,
        request);
    row_->kernels.push_back(kernel.get());
    return kernel;
  }
  absl::StatusOr<const std::byte*> Keep(const Constant& constant,
                                        Placement placement) override {
    const TensorSpec spec{constant.type, constant.shape, placement};
    if (kept_ >= row_->plan.keeps.size()) {
      return absl::DataLossError("the compiled form lacks a constant");
    }
    const std::span<const std::byte> piece =
        owner_->pieces_[row_->plan.keeps[kept_++]];
    if (piece.size() != spec.bytes()) {
      return absl::DataLossError(
          "a constant of the compiled form has another size");
    }
    return piece.data();
  }
  absl::StatusOr<driver::SramPlan> ChooseSram(
      std::span<const driver::TensorPlace> tensors, uint64_t bytes,
      uint32_t /*programs*/) override {
    driver::SramPlan& sram = row_->plan.sram;
    uint64_t least = 0;
    for (const driver::SramPlan::Entry& entry : sram.entries) {
      // By tensor, each once and no further than it reaches.
      if (entry.tensor < least || entry.tensor >= tensors.size() ||
          entry.hit > tensors[entry.tensor].size) {
        return absl::DataLossError(
            "the compiled form's SRAM is not the plan's");
      }
      least = uint64_t{entry.tensor} + 1;
    }
    if (sram.size > bytes) {
      return absl::DataLossError("the compiled form's SRAM is too large");
    }
    return std::move(sram);
  }

 private:
  RestoredKernels* const owner_;
  Row* const row_;
  size_t kept_ = 0;
};

RestoredKernels::RestoredKernels(std::vector<std::span<const std::byte>> pieces,
                                 std::shared_ptr<const void> keeper,
                                 ModelWeights* weights)
    : pieces_(std::move(pieces)),
      keeper_(std::move(keeper)),
      weights_(weights) {}

RestoredKernels::~RestoredKernels() = default;

std::unique_ptr<PlanParts> RestoredKernels::PartsOf(
    std::unique_ptr<const Graph> graph, SavedPlan plan) {
  rows_.push_back({std::move(graph), std::move(plan), {}});
  return std::make_unique<Parts>(this, &rows_.back());
}

void RestoredKernels::Serve(std::span<Program> programs) {
  serving_ = true;
  for (Program& program : programs) {
    for (Operand& operand : program.operands) {
      if (operand.kind == Operand::Kind::kConstant) kept_.push_back(&operand);
    }
  }
}

absl::Status RestoredKernels::TakeWeights() {
  base::MutexLock lock(making_);
  if (ready_.load(std::memory_order_relaxed)) return absl::OkStatus();
  RKNND_RETURN_IF_ERROR(lost_);
  // Goes on where it failed last time, for lack of memory perhaps.
  while (places_.size() < pieces_.size()) {
    const std::span<const std::byte> piece = pieces_[places_.size()];
    bool read = true;
    RKNND_ASSIGN_OR_RETURN(
        const std::byte* const at,
        weights_->Store(piece.size(), [&](std::byte* room) {
          read = piece.empty() || driver::Guarded(piece, [&] {
                   std::memcpy(room, piece.data(), piece.size());
                 });
        }));
    if (!read) {
      // For good: half a piece is among the weights by now.
      return lost_ = absl::DataLossError(
                 "the compiled form of the model went away while it was read: "
                 "its file was truncated, or the disk fails");
    }
    places_.push_back(at);
  }
  RKNND_RETURN_IF_ERROR(weights_->Seal());
  for (Operand* operand : kept_) operand->constant = Moved(operand->constant);
  kept_ = {};
  ready_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

const std::byte* RestoredKernels::Moved(const std::byte* kept) const {
  const auto piece = std::lower_bound(
      pieces_.begin(), pieces_.end(), kept,
      [](std::span<const std::byte> at, const std::byte* wanted) {
        return at.data() < wanted;
      });
  return places_[static_cast<size_t>(piece - pieces_.begin())];
}

absl::Status RestoredKernels::MakeAll() {
  SingleThreaded alone;
  absl::Status status = Ready();
  if (!status.ok()) return status;
  try {
    // First what any job needs.
    for (const Row& row : rows_) {
      for (RestoredKernel* kernel : row.kernels) {
        status.Update(kernel->Whole().status());
      }
    }
    for (const Row& row : rows_) {
      for (RestoredKernel* kernel : row.kernels) {
        status.Update(kernel->MakeShared());
      }
    }
  } catch (const std::exception& error) {
    status.Update(absl::InternalError(
        absl::StrCat("making the kernels failed: ", error.what())));
  }
  // A failure stays with the kernel it is of.
  if (!status.ok()) return status;
  base::MutexLock lock(making_);
  for (Row& row : rows_) {
    for (RestoredKernel* kernel : row.kernels) kernel->Settle();
  }
  rows_.clear();
  pieces_ = {};
  places_ = {};
  keeper_ = nullptr;
  return absl::OkStatus();
}

}  // namespace rknnd::soft
