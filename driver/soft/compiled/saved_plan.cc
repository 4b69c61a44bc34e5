// See saved_plan.h.

#include "driver/soft/compiled/saved_plan.h"

#include <map>
#include <span>
#include <utility>

#include "base/status/status.h"
#include "driver/soft/gang.h"
#include "driver/soft/import/onnx_import.h"

namespace rknnd::soft {
namespace {

// Of one kernel: packed weights, bias, scales, a table or two.
constexpr uint64_t kMaxStores = 64;

// One kernel's: notes where its pieces lie.
class NotedStore final : public WeightStore {
 public:
  NotedStore(WeightStore& weights, std::vector<const std::byte*>& stores)
      : weights_(weights), stores_(stores) {}

  absl::StatusOr<const std::byte*> Store(
      size_t size, absl::FunctionRef<void(std::byte*)> fill) override {
    RKNND_ASSIGN_OR_RETURN(const std::byte* const at,
                           weights_.Store(size, fill));
    stores_.push_back(at);
    return at;
  }

 private:
  WeightStore& weights_;
  std::vector<const std::byte*>& stores_;
};

void FailUnlessBelow(const std::vector<uint32_t>& numbers, size_t limit,
                     ByteReader& from) {
  for (const uint32_t number : numbers) {
    if (number >= limit) from.Fail();
  }
}

// All of it is written and read here.
static_assert(sizeof(driver::SramPlan) == 3 * 8 + sizeof(std::vector<int>) &&
              sizeof(driver::SramPlan::Entry) == 4 * 8);

void WriteSram(const driver::SramPlan& sram, ByteWriter& to) {
  to.Put(sram.size);
  to.Put(sram.used);
  to.Put(sram.saved);
  to.PutCount(sram.entries.size());
  for (const driver::SramPlan::Entry& entry : sram.entries) {
    to.Put(entry.tensor);
    to.Put(entry.offset);
    to.Put(entry.hit);
    to.Put(entry.saved);
  }
}

driver::SramPlan ReadSram(ByteReader& from) {
  driver::SramPlan sram;
  sram.size = from.Get<uint64_t>();
  sram.used = from.Get<uint64_t>();
  sram.saved = from.Get<uint64_t>();
  if (sram.used > sram.size) from.Fail();
  sram.entries.resize(from.GetCount(/*least=*/28));
  for (driver::SramPlan::Entry& entry : sram.entries) {
    entry.tensor = from.Get<uint32_t>();
    entry.offset = from.Get<uint64_t>();
    entry.hit = from.Get<uint64_t>();
    entry.saved = from.Get<uint64_t>();
    if (entry.offset > sram.size || entry.hit > sram.size - entry.offset) {
      from.Fail();
    }
  }
  return sram;
}

}  // namespace

void SavedPlan::Write(ByteWriter& to) const {
  to.PutCount(kernels.size());
  for (const SavedKernel& kernel : kernels) {
    to.Put(kernel.scratch);
    to.PutList(std::span<const uint32_t>(kernel.parts));
    to.PutList(std::span<const uint8_t>(kernel.reads_constant));
    to.PutList(std::span<const uint32_t>(kernel.stores));
    to.PutText(kernel.implementation);
    to.Put(static_cast<uint8_t>(kernel.is_reference));
  }
  to.PutList(std::span<const uint32_t>(keeps));
  WriteSram(sram, to);
}

SavedPlan SavedPlan::Read(ByteReader& from, size_t pieces) {
  SavedPlan plan;
  const size_t count = from.GetCount(/*least=*/41, kMaxNodes);
  for (size_t k = 0; k < count && from.good(); ++k) {
    SavedKernel& kernel = plan.kernels.emplace_back();
    kernel.scratch = from.Get<uint64_t>();
    kernel.parts = from.GetList<uint32_t>(Gang::kMaxCores);
    kernel.reads_constant = from.GetList<uint8_t>(kMaxArity + 1);
    kernel.stores = from.GetList<uint32_t>(kMaxStores);
    kernel.implementation = from.GetText();
    kernel.is_reference = from.GetFlag();
    for (size_t i = 0; i < kernel.parts.size(); ++i) {
      if (kernel.parts[i] < 1 || kernel.parts[i] > i + 2) from.Fail();
    }
    FailUnlessBelow(kernel.stores, pieces, from);
  }
  plan.keeps = from.GetList<uint32_t>();
  FailUnlessBelow(plan.keeps, pieces, from);
  plan.sram = ReadSram(from);
  return plan;
}

absl::StatusOr<std::unique_ptr<Kernel>> PlanRecorder::MakeKernel(
    const Operator& op, const KernelRequest& request) {
  Made& made = made_.emplace_back();
  NotedStore noted(*weights_, made.stores);
  RKNND_ASSIGN_OR_RETURN(
      std::unique_ptr<Kernel> kernel,
      op.make(KernelRequest{request.node, request.inputs, request.outputs,
                            noted, request.cores}));
  made.kernel.scratch = kernel->scratch_size();
  made.kernel.implementation = kernel->implementation();
  made.kernel.is_reference = kernel->is_reference();
  for (uint32_t cores = 2; cores <= request.cores; ++cores) {
    made.kernel.parts.push_back(kernel->PartsFor(cores));
  }
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    made.kernel.reads_constant.push_back(kernel->reads_constant(i) ? 1 : 0);
  }
  return kernel;
}

absl::StatusOr<const std::byte*> PlanRecorder::Keep(const Constant& constant,
                                                    Placement placement) {
  RKNND_ASSIGN_OR_RETURN(const std::byte* const at,
                         weights_->Keep(constant, placement));
  keeps_.push_back(at);
  return at;
}

absl::StatusOr<driver::SramPlan> PlanRecorder::ChooseSram(
    std::span<const driver::TensorPlace> tensors, uint64_t bytes,
    uint32_t programs) {
  sram_ = PlanSram(tensors, bytes, programs);
  return sram_;
}

SavedPlan PlanRecorder::Take() const {
  std::map<const std::byte*, uint32_t> numbers;
  for (const std::string_view piece : weights_->pieces()) {
    numbers.emplace(reinterpret_cast<const std::byte*>(piece.data()),
                    static_cast<uint32_t>(numbers.size()));
  }
  SavedPlan plan;
  for (const Made& made : made_) {
    SavedKernel& kernel = plan.kernels.emplace_back(made.kernel);
    for (const std::byte* at : made.stores) {
      kernel.stores.push_back(numbers.at(at));
    }
  }
  plan.sram = sram_;
  for (const std::byte* at : keeps_) plan.keeps.push_back(numbers.at(at));
  return plan;
}

}  // namespace rknnd::soft
