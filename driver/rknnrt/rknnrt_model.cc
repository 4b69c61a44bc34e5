#include "driver/rknnrt/rknnrt_model.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"
#include "driver/rknn_file/rknn_file.h"
#include "driver/rknnrt/hosted_memory.h"
#include "driver/rknnrt/versions.h"
#include "driver/soft/attached_memory.h"

namespace rknnd::rknnrt {
namespace {

// A job that another core's job took along runs again so often at most.
constexpr int kMostTurns = 8;
// How often a job may have been alone in a worker that ended.
constexpr int kMostOwnDeaths = 2;

HostedMemory& HostedOf(driver::Memory* memory) {
  return *static_cast<HostedMemory*>(
      static_cast<soft::AttachedMemory*>(memory)->elsewhere());
}

// As much of them as is used.
bool IsSame(const RunRecord& a, const RunRecord& b) {
  return a.program == b.program && a.core_mask == b.core_mask &&
         a.inputs == b.inputs && a.outputs == b.outputs &&
         a.internal == b.internal && a.internal_offset == b.internal_offset &&
         std::equal(a.tensors, a.tensors + a.inputs + a.outputs, b.tensors);
}

// Whether what programs have bound by the one fits the other.
bool HasSamePorts(const driver::ModelInfo& a, const driver::ModelInfo& b) {
  const auto same = [](const driver::TensorAttr& x,
                       const driver::TensorAttr& y) {
    return x.dims == y.dims && x.type == y.type && x.layout == y.layout &&
           x.w_stride == y.w_stride && x.size_with_stride == y.size_with_stride;
  };
  const auto all_same = [&](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  };
  return std::equal(
      a.programs.begin(), a.programs.end(), b.programs.begin(),
      b.programs.end(),
      [&](const driver::ProgramInfo& x, const driver::ProgramInfo& y) {
        return all_same(x.inputs, y.inputs) && all_same(x.outputs, y.outputs) &&
               all_same(x.native_inputs, y.native_inputs) &&
               all_same(x.native_outputs, y.native_outputs) &&
               x.internal_size == y.internal_size;
      });
}

// Empty: the file does not say.
std::string ToolkitOf(std::span<const std::byte> bytes) {
  const auto file = rknn_file::Read(bytes);
  return file.ok() ? file->toolkit_version : "";
}

}  // namespace

RknnrtModel::RknnrtModel(const driver::LoadRequest& request,
                         WorkerPool& workers, std::shared_ptr<Conduct> conduct)
    : workers_(workers),
      conduct_(std::move(conduct)),
      name_(request.name),
      sha256_(request.sha256),
      size_(request.bytes.size()) {}

absl::StatusOr<std::unique_ptr<RknnrtModel>> RknnrtModel::Load(
    const driver::LoadRequest& request, const std::string& because,
    WorkerPool& workers, Quarantine& quarantine) {
  std::unique_ptr<RknnrtModel> model(new RknnrtModel(
      request, workers, quarantine.Of(request.sha256, request.name)));
  RKNND_ASSIGN_OR_RETURN(model->file_,
                         base::ToStatusOr(base::MakeImmutableMemfd(
                             "rknnd-hosted-model", request.bytes)));
  const std::string toolkit = ToolkitOf(request.bytes);
  absl::StatusOr<std::shared_ptr<Hosted>> hosted = model->Host();
  if (!hosted.ok()) {
    // The most frequent reason, where it is one.
    const std::string why =
        WhyFileMayNotFit(toolkit, workers.library_version());
    return why.empty() ? hosted.status()
                       : absl::Status(hosted.status().code(),
                                      absl::StrCat(hosted.status().message(),
                                                   ". ", why));
  }
  model->description_ = (*hosted)->description;
  workers.NoteVersions(model->description_.library_version,
                       model->description_.driver_version);
  if (const std::string why =
          WhyFileMayNotFit(toolkit, model->description_.library_version);
      !why.empty()) {
    workers.Say(absl::StrCat("model '", request.name, "': ", why));
  }
  driver::ModelInfo& info = model->description_.info;
  info.run_by = "rknnrt";
  info.run_by_because = because;
  return model;
}

RknnrtModel::~RknnrtModel() {
  base::MutexLock lock(mutex_);
  // A worker of its own ends with its last user.
  if (hosted_ != nullptr && workers_.options().one_for_all) {
    hosted_->worker->Unload(hosted_->number);
  }
}

absl::Status RknnrtModel::LoadIn(Hosted& hosted) const {
  RKNND_ASSIGN_OR_RETURN(
      const std::vector<std::byte> payload,
      hosted.worker->Load(hosted.number, file_.get(), size_, name_));
  RKNND_ASSIGN_OR_RETURN(hosted.description, rknnrt::Describe(payload, name_));
  if (description_.info.programs.empty() ||
      HasSamePorts(description_.info, hosted.description.info)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "its tensors are others with the vendor's library as it is now: load it "
      "again");
}

absl::StatusOr<std::shared_ptr<RknnrtModel::Hosted>> RknnrtModel::Host() const {
  base::MutexLock lock(mutex_);
  if (hosted_ != nullptr && !hosted_->worker->dead()) return hosted_;
  for (;;) {
    RKNND_RETURN_IF_ERROR(conduct_->Check(sha256_));
    auto hosted = std::make_shared<Hosted>();
    RKNND_ASSIGN_OR_RETURN(hosted->worker, workers_.Get());
    hosted->number = workers_.NextModel();
    const absl::Status loaded = LoadIn(*hosted);
    if (loaded.ok()) return hosted_ = std::move(hosted);
    if (!absl::IsUnavailable(loaded)) {
      return base::Annotate(loaded, absl::StrCat("model '", name_, "'"));
    }
    // The worker died of it.
    CountDeath(*hosted);
  }
}

void RknnrtModel::CountDeath(Hosted& hosted) const {
  if (hosted.blamed.exchange(true) || hosted.worker->killed_for_reset()) {
    return;
  }
  workers_.CountDeath();
  conduct_->CountDeath(workers_.options().most_deaths,
                       hosted.worker->WhyDead());
  workers_.Say(absl::StrCat("the worker of model '", name_, "' (pid ",
                            hosted.worker->pid(),
                            ") ended: ", hosted.worker->WhyDead(),
                            "; the model is loaded again in another one"));
}

absl::StatusOr<uint64_t> RknnrtModel::CheckBinding(
    uint32_t program, driver::Direction direction, uint32_t index,
    const driver::TensorFormat& format) const {
  return BytesOf(AttributesOf(info().programs[program], direction, index),
                 format);
}

absl::Status RknnrtModel::CopyWeights(driver::Memory& to,
                                      uint64_t offset) const {
  if (offset > to.size() || to.size() - offset < info().weight_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", name_, "' has ", info().weight_size,
                     " bytes of weights, which is more than there is room"));
  }
  if (info().weight_size == 0) return absl::OkStatus();
  RKNND_ASSIGN_OR_RETURN(const std::shared_ptr<Hosted> hosted, Host());
  return hosted->worker->CopyWeights(hosted->number, HostedOf(&to), offset);
}

absl::Status RknnrtModel::Describe(const driver::JobRequest& job,
                                   RunRecord& record) const {
  const driver::ProgramInfo& program = info().programs[job.program];
  record.program = job.program;
  record.core_mask = job.core_mask;
  record.inputs = static_cast<uint32_t>(job.inputs.size());
  record.outputs = static_cast<uint32_t>(job.outputs.size());
  record.internal = 0;
  record.internal_offset = 0;
  if (description_.internal_outside && program.internal_size > 0) {
    record.internal = HostedOf(job.internal).id();
    record.internal_offset = job.internal_offset;
  }
  for (uint32_t i = 0; i < record.inputs + record.outputs; ++i) {
    const bool is_input = i < record.inputs;
    const uint32_t index = is_input ? i : i - record.inputs;
    const driver::TensorBinding& binding =
        is_input ? job.inputs[index] : job.outputs[index];
    const PortAttributes port = AttributesOf(
        program,
        is_input ? driver::Direction::kInput : driver::Direction::kOutput,
        index);
    RKNND_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(port, binding.format));
    if (bytes > UINT32_MAX) {
      return absl::InvalidArgumentError(
          "the vendor's library has no tensors above 4 GiB");
    }
    record.tensors[i] = {.memory = HostedOf(binding.memory).id(),
                         .bytes = static_cast<uint32_t>(bytes),
                         .offset = binding.offset,
                         .type = static_cast<uint32_t>(binding.format.type),
                         .layout = static_cast<uint32_t>(binding.format.layout),
                         .w_stride = binding.format.w_stride,
                         .h_stride = binding.format.h_stride,
                         .pass_through = binding.format.pass_through ? 1U : 0U,
                         .native = IsNative(port, binding.format) ? 1U : 0U};
  }
  return absl::OkStatus();
}

absl::Status RknnrtModel::TellOfMemory(const Hosted& hosted,
                                       const driver::JobRequest& job) const {
  for (const auto& bindings : {job.inputs, job.outputs}) {
    for (const driver::TensorBinding& binding : bindings) {
      RKNND_RETURN_IF_ERROR(hosted.worker->Know(HostedOf(binding.memory)));
    }
  }
  if (!description_.internal_outside || job.internal == nullptr) {
    return absl::OkStatus();
  }
  return hosted.worker->Know(HostedOf(job.internal));
}

absl::Status RknnrtModel::RunIn(Hosted& hosted, const driver::JobRequest& job,
                                const std::atomic<bool>& reset) const {
  std::unique_ptr<LaneSets>& slot = hosted.lanes[job.core];
  if (slot == nullptr) slot = std::make_unique<LaneSets>();
  LaneSets& lane = *slot;
  RKNND_RETURN_IF_ERROR(Describe(job, lane.wanted));
  Set* set = nullptr;
  Set* oldest = lane.sets.data();
  for (Set& one : lane.sets) {
    if (one.is_bound && IsSame(one.record, lane.wanted)) set = &one;
    if (one.used < oldest->used) oldest = &one;
  }
  const bool rebinds = set == nullptr;
  if (rebinds) {
    set = oldest;
    set->is_bound = false;
    RKNND_RETURN_IF_ERROR(TellOfMemory(hosted, job));
    set->record = lane.wanted;
  }
  set->used = ++lane.runs;
  absl::Status status =
      hosted.worker->Run({.lane = job.core,
                          .model = hosted.number,
                          .set = static_cast<uint32_t>(set - lane.sets.data()),
                          .record = rebinds ? &set->record : nullptr,
                          .limit = workers_.options().job_limit,
                          .reset = &reset});
  // After an error nobody knows what the library has.
  set->is_bound = status.ok();
  return status;
}

absl::Status RknnrtModel::Run(const driver::JobRequest& job,
                              const std::atomic<bool>& reset) const {
  if (job.layer_sink != nullptr) {
    return absl::UnimplementedError(
        "the vendor's library gives no outputs of layers: only the model's");
  }
  if (job.core >= kMostLanes) {
    return absl::UnimplementedError(
        absl::StrCat("the vendor's library has no core ", job.core));
  }
  int own_deaths = 0;
  for (int turn = 0;; ++turn) {
    RKNND_ASSIGN_OR_RETURN(const std::shared_ptr<Hosted> hosted, Host());
    absl::Status status = RunIn(*hosted, job, reset);
    if (status.ok()) {
      conduct_->CountGood();
      return status;
    }
    if (!hosted->worker->dead()) return status;
    if (reset.load()) return absl::AbortedError("an operator reset the NPU");
    CountDeath(*hosted);
    const bool is_own = !hosted->worker->killed_for_reset() &&
                        (absl::IsDeadlineExceeded(status) ||
                         hosted->worker->jobs_at_end() <= 1);
    own_deaths += is_own ? 1 : 0;
    if (own_deaths >= kMostOwnDeaths || turn + 1 >= kMostTurns) {
      return absl::IsDeadlineExceeded(status)
                 ? status
                 : absl::InternalError(
                       absl::StrCat(status.message(), "; it was run ", turn + 1,
                                    " times, each in another worker"));
    }
  }
}

}  // namespace rknnd::rknnrt
