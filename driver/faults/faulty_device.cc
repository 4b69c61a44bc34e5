// Between a core of the daemon and its device. Called by workers (Submit), the
// loop and the loader (Attach, Load, the plan's changes), and on a thread of
// its own for jobs that end late.

#include "driver/faults/faulty_device.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/sha256.h"

namespace rknnd::driver {
namespace {

constexpr base::Nanoseconds kNever =
    std::numeric_limits<base::Nanoseconds>::max();

std::string Demanded(uint64_t fault) {
  return absl::StrCat(" (fault ", fault, " on demand)");
}

std::string HashOf(std::span<const std::byte> bytes,
                   const std::string& options) {
  base::Sha256 hash;
  hash.Update(bytes);
  hash.Update(std::as_bytes(std::span(options.data(), options.size())));
  return base::ToHex(hash.Finish());
}

// A model of the wrapped device and what it is called. Thread: any.
class NamedModel final : public Model {
 public:
  NamedModel(std::unique_ptr<Model> direct, ModelNames names)
      : direct_(std::move(direct)), names_(std::move(names)) {}

  [[nodiscard]] const ModelInfo& info() const override {
    return direct_->info();
  }
  [[nodiscard]] absl::StatusOr<uint64_t> CheckBinding(
      uint32_t program, Direction direction, uint32_t index,
      const TensorFormat& format) const override {
    return direct_->CheckBinding(program, direction, index, format);
  }
  [[nodiscard]] absl::StatusOr<FrameSizes> CheckFrame(
      uint32_t program, uint32_t index,
      const FrameFormat& frame) const override {
    return direct_->CheckFrame(program, index, frame);
  }
  [[nodiscard]] SramPlan PlanSram(uint32_t program,
                                  uint64_t bytes) const override {
    return direct_->PlanSram(program, bytes);
  }
  [[nodiscard]] uint64_t held_weights() const override {
    return direct_->held_weights();
  }
  absl::Status WriteCompiled(
      absl::FunctionRef<absl::Status(std::span<const std::byte>)> write)
      override {
    return direct_->WriteCompiled(write);
  }
  absl::Status Finish() override { return direct_->Finish(); }

  absl::Status CopyWeights(Memory& to, uint64_t offset) const override {
    return direct_->CopyWeights(*static_cast<IncoherentMemory&>(to).direct(),
                                offset);
  }

  [[nodiscard]] const Model* direct() const { return direct_.get(); }
  [[nodiscard]] const ModelNames& names() const { return names_; }

 private:
  const std::unique_ptr<Model> direct_;
  const ModelNames names_;
};

}  // namespace

FaultyDevice::FaultyDevice(const FaultyDeviceOptions& options)
    : device_(options.device),
      clock_(options.clock),
      give_up_(options.give_up),
      incoherent_(options.incoherent),
      plan_(options.device->info().cores, options.device->SetClock(1)) {
  for (uint32_t core = 0; core < info().cores; ++core) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->device = this;
  }
  memories_->SetIncoherent(*device_, incoherent_);
  plan_.set_changed(
      [this](const FaultReport& fault, bool set) { OnChanged(fault, set); });
}

FaultyDevice::~FaultyDevice() { Stop(); }

// ---- models and memory ------------------------------------------------------

absl::StatusOr<std::unique_ptr<Model>> FaultyDevice::Load(
    const LoadRequest& request) {
  {
    base::MutexLock lock(mutex_);
    RKNND_RETURN_IF_ERROR(CheckAlive());
  }
  RKNND_ASSIGN_OR_RETURN(std::unique_ptr<Model> model, device_->Load(request));
  // A compiled form comes without the bytes.
  ModelNames names{request.sha256.empty()
                       ? HashOf(request.bytes, request.options)
                       : request.sha256,
                   request.name, model->info().name};
  RKNND_RETURN_IF_ERROR(plan_.OnLoad(model->info().weight_size, names));
  return std::make_unique<NamedModel>(std::move(model), std::move(names));
}

absl::StatusOr<std::unique_ptr<Memory>> FaultyDevice::Attach(
    const MemoryRef& memory, MemoryAccess access) {
  {
    base::MutexLock lock(mutex_);
    RKNND_RETURN_IF_ERROR(CheckAlive());
  }
  RKNND_RETURN_IF_ERROR(plan_.OnMemory(memory.size));
  return IncoherentMemory::Attach(*device_, memories_, memory, access);
}

void FaultyDevice::TranslateMemory(Slot& slot) {
  slot.shadows.clear();
  const auto translate = [&slot](std::span<const TensorBinding> from,
                                 std::vector<TensorBinding>& to) {
    to.assign(from.begin(), from.end());
    for (TensorBinding& binding : to) {
      const auto* memory = static_cast<IncoherentMemory*>(binding.memory);
      std::shared_ptr<ShadowMemory> shadow = memory->shadow();
      binding.memory = shadow == nullptr ? memory->direct() : shadow->memory();
      slot.shadows.push_back(std::move(shadow));
    }
  };
  translate(slot.job.inputs, slot.inputs);
  translate(slot.job.outputs, slot.outputs);
  slot.job.inputs = slot.inputs;
  slot.job.outputs = slot.outputs;
  TranslateFrames(slot);
  // Tensors in between are no CPU's.
  const auto direct = [](Memory* memory) -> Memory* {
    return memory == nullptr ? nullptr
                             : static_cast<IncoherentMemory*>(memory)->direct();
  };
  slot.job.internal = direct(slot.job.internal);
  slot.gang_internal.clear();
  for (Memory* memory : slot.job.gang_internal) {
    slot.gang_internal.push_back(direct(memory));
  }
  slot.job.gang_internal = slot.gang_internal;
}

void FaultyDevice::TranslateFrames(Slot& slot) {
  slot.frames.assign(slot.inputs.size(), {});
  for (size_t i = 0; i < slot.inputs.size(); ++i) {
    TensorBinding& input = slot.inputs[i];
    if (input.frame == nullptr) continue;
    Slot::FrameInput& own = slot.frames[i];
    own.frame = *input.frame;
    input.frame = &own.frame;
    for (size_t p = 0; p < kMaxPlanes; ++p) {
      Memory*& plane = own.frame.planes[p].memory;
      if (plane == nullptr) continue;
      const auto* memory = static_cast<IncoherentMemory*>(plane);
      own.shadows[p] = memory->shadow();
      plane = own.shadows[p] == nullptr ? memory->direct()
                                        : own.shadows[p]->memory();
    }
  }
}

void FaultyDevice::SyncFrame(const Slot& slot, size_t input) {
  const Slot::FrameInput& own = slot.frames[input];
  const absl::StatusOr<FrameSizes> sizes = slot.job.model->CheckFrame(
      slot.job.program, static_cast<uint32_t>(input), own.frame.format);
  for (size_t p = 0; sizes.ok() && p < kMaxPlanes; ++p) {
    if (own.shadows[p] == nullptr) continue;
    own.shadows[p]->Clean(own.frame.planes[p].offset, (*sizes)[p]);
  }
}

void FaultyDevice::SyncCaches(const Slot& slot, Direction direction) {
  const bool input = direction == Direction::kInput;
  const std::vector<TensorBinding>& bindings =
      input ? slot.inputs : slot.outputs;
  const bool skips =
      input ? slot.job.keep_input_caches : slot.job.keep_output_caches;
  const size_t first = input ? 0 : slot.inputs.size();
  for (size_t i = 0; i < bindings.size(); ++i) {
    ShadowMemory* const shadow = slot.shadows[first + i].get();
    if (shadow == nullptr) continue;
    if (skips || bindings[i].program_syncs) {
      // The fault ended under the job: no call of the program comes any more.
      if (input || !shadow->retired()) continue;
    }
    if (input && bindings[i].frame != nullptr) {
      SyncFrame(slot, i);
      continue;
    }
    const absl::StatusOr<uint64_t> bytes = slot.job.model->CheckBinding(
        slot.job.program, direction, static_cast<uint32_t>(i),
        bindings[i].format);
    if (!bytes.ok()) continue;
    if (input) {
      shadow->Clean(bindings[i].offset, *bytes);
    } else {
      shadow->Invalidate(bindings[i].offset, *bytes);
    }
  }
}

// ---- jobs -------------------------------------------------------------------

absl::Status FaultyDevice::CheckAlive() {
  if (crashed_by_ == 0) return absl::OkStatus();
  const bool cleared = !plan_.Has(crashed_by_);
  const bool restarted = restart_ != 0 && clock_->Now() >= restart_;
  if (cleared || restarted || stopped_) {
    crashed_by_ = 0;
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("the device is gone", Demanded(crashed_by_)));
}

std::optional<absl::Status> FaultyDevice::Refuse(const JobFaults& faults,
                                                 std::vector<Ended>* ended) {
  absl::Status gone = CheckAlive();
  if (gone.ok() && faults.crash) {
    crashed_by_ = faults.crash.id;
    const auto down =
        static_cast<base::Nanoseconds>(faults.crash.ms) * base::kMillisecond;
    restart_ = down == 0 ? 0 : clock_->Now() + down;
    FailAll(absl::StatusCode::kUnavailable,
            absl::StrCat("the device went away under the job",
                         Demanded(crashed_by_)),
            ended);
    gone = CheckAlive();
  }
  if (!gone.ok()) return gone;
  if (faults.dead_core) {
    return absl::InternalError(absl::StrCat("the NPU core does not answer",
                                            Demanded(faults.dead_core.id)));
  }
  if (faults.wrong_status && faults.wrong_status.status == 0) {
    return absl::OkStatus();
  }
  return std::nullopt;
}

void FaultyDevice::Submit(const JobRequest& job) {
  const auto& model = static_cast<const NamedModel&>(*job.model);
  const JobFaults faults = plan_.OnJob(job.core_mask, model.names());
  Slot& slot = *slots_[job.core];
  std::vector<Ended> ended;
  std::optional<absl::Status> refusal;
  bool hangs = false;
  const base::Nanoseconds now = clock_->Now();
  {
    base::MutexLock lock(mutex_);
    if (!stopped_) refusal = Refuse(faults, &ended);
    if (!refusal.has_value()) {
      hangs = faults.hang && !stopped_;
      slot.state = hangs ? Slot::State::kHanging : Slot::State::kRunning;
      slot.job = job;
      slot.job.model = model.direct();
      slot.job.listener = &slot;
      slot.listener = job.listener;
      slot.faults = faults;
      slot.submitted = now;
      slot.due = faults.hang.ms == 0
                     ? 0
                     : now + static_cast<base::Nanoseconds>(faults.hang.ms) *
                                 base::kMillisecond;
      slot.doom = absl::OkStatus();
      if (hangs) Kick();
    }
  }
  Deliver(ended);
  if (refusal.has_value()) {
    job.listener->OnJobDone({*std::move(refusal), now, now});
  } else if (!hangs) {
    Run(slot);
  }
}

void FaultyDevice::Run(Slot& slot) {
  TranslateMemory(slot);
  SyncCaches(slot, Direction::kInput);
  device_->Submit(slot.job);
}

void FaultyDevice::Done(Slot* slot, JobResult result) {
  SyncCaches(*slot, Direction::kOutput);
  slot->shadows.clear();
  slot->frames.clear();
  JobListener* listener = nullptr;
  std::vector<std::function<void(absl::Status)>> reset;
  {
    base::MutexLock lock(mutex_);
    const JobFaults& faults = slot->faults;
    if (faults.hang) result.started = slot->submitted;
    if (!slot->doom.ok()) {
      result.status = std::exchange(slot->doom, absl::OkStatus());
    } else if (stopped_ || !result.status.ok()) {
      // As it is.
    } else if (faults.wrong_status) {
      result.status = absl::InternalError(
          absl::StrCat("the NPU core ended the job with status 0x",
                       absl::Hex(faults.wrong_status.status),
                       Demanded(faults.wrong_status.id)));
    } else if (faults.slow) {
      const auto run = static_cast<double>(result.ended - result.started);
      const base::Nanoseconds late =
          faults.slow.factor != 0
              ? static_cast<base::Nanoseconds>(run * (faults.slow.factor - 1))
              : static_cast<base::Nanoseconds>(faults.slow.ms) *
                    base::kMillisecond;
      slot->state = Slot::State::kLate;
      slot->due = result.ended + late;
      slot->result = std::move(result);
      Kick();
      return;
    }
    slot->state = Slot::State::kFree;
    listener = slot->listener;
    reset = TakeReset();
  }
  listener->OnJobDone(std::move(result));
  for (const auto& done : reset) done(absl::OkStatus());
}

void FaultyDevice::End(Slot& slot, absl::Status status,
                       std::vector<Ended>* ended) {
  const base::Nanoseconds now = clock_->Now();
  const base::Nanoseconds started =
      slot.state == Slot::State::kLate ? slot.result.started : slot.submitted;
  slot.state = Slot::State::kFree;
  ended->push_back({slot.listener, {std::move(status), started, now}});
}

void FaultyDevice::FailAll(absl::StatusCode code, const std::string& reason,
                           std::vector<Ended>* ended) {
  for (const std::unique_ptr<Slot>& slot : slots_) {
    switch (slot->state) {
      case Slot::State::kFree:
        break;
      case Slot::State::kRunning:
        // Each has a status of its own: no thread shares one with another.
        slot->doom = absl::Status(code, reason);
        break;
      case Slot::State::kHanging:
      case Slot::State::kLate:
        End(*slot, absl::Status(code, reason), ended);
        break;
    }
  }
}

void FaultyDevice::GiveUp(std::vector<Ended>* ended) {
  if (give_up_ == 0) return;
  const base::Nanoseconds now = clock_->Now();
  bool reset = false;
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (slot->state != Slot::State::kHanging ||
        now - slot->submitted < give_up_) {
      continue;
    }
    reset = true;
    End(*slot,
        absl::DeadlineExceededError(absl::StrCat(
            "the job did not come back within ", give_up_ / base::kMillisecond,
            " ms: the driver gave up and reset the NPU",
            Demanded(slot->faults.hang.id))),
        ended);
  }
  if (!reset) return;
  ++resets_;
  FailAll(absl::StatusCode::kAborted,
          "another job hung and the driver reset the NPU under this one: it "
          "may be run again",
          ended);
}

void FaultyDevice::Reset(std::function<void(absl::Status)> done) {
  std::vector<Ended> ended;
  std::vector<std::function<void(absl::Status)>> reset;
  {
    base::MutexLock lock(mutex_);
    ++resets_;
    FailAll(absl::StatusCode::kAborted,
            "an operator reset the NPU under the job: it may be run again",
            &ended);
    resetting_.push_back(std::move(done));
    reset = TakeReset();
  }
  // What really runs ends sooner, where the device can be reset itself.
  device_->Reset([](const absl::Status&) {});
  Deliver(ended);
  for (const auto& waiting : reset) waiting(absl::OkStatus());
}

uint64_t FaultyDevice::resets() const {
  base::MutexLock lock(mutex_);
  return resets_;
}

std::vector<std::function<void(absl::Status)>> FaultyDevice::TakeReset() {
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (slot->state == Slot::State::kRunning && !slot->doom.ok()) return {};
  }
  return std::exchange(resetting_, {});
}

void FaultyDevice::Deliver(std::vector<Ended>& ended) {
  for (Ended& job : ended) job.listener->OnJobDone(std::move(job.result));
}

// ---- time -------------------------------------------------------------------

void FaultyDevice::RunDue() {
  std::vector<Ended> ended;
  std::vector<Slot*> let_go;
  {
    base::MutexLock lock(mutex_);
    const base::Nanoseconds now = clock_->Now();
    for (const std::unique_ptr<Slot>& slot : slots_) {
      const bool due = slot->due != 0 && now >= slot->due;
      if (slot->state == Slot::State::kHanging &&
          (due || !plan_.Has(slot->faults.hang.id))) {
        slot->state = Slot::State::kRunning;
        let_go.push_back(slot.get());
      } else if (slot->state == Slot::State::kLate &&
                 (due || !plan_.Has(slot->faults.slow.id))) {
        End(*slot, std::move(slot->result.status), &ended);
      }
    }
    GiveUp(&ended);
  }
  Deliver(ended);
  for (Slot* slot : let_go) Run(*slot);
}

base::Nanoseconds FaultyDevice::NextDue() const {
  base::Nanoseconds next = kNever;
  for (const std::unique_ptr<Slot>& slot : slots_) {
    const bool hangs = slot->state == Slot::State::kHanging;
    if (!hangs && slot->state != Slot::State::kLate) continue;
    if (slot->due != 0) next = std::min(next, slot->due);
    if (hangs && give_up_ != 0) {
      next = std::min(next, slot->submitted + give_up_);
    }
  }
  return next;
}

void FaultyDevice::Kick() {
  kicked_ = true;
  changed_.notify_all();
}

absl::Status FaultyDevice::Start() {
  try {
    thread_ = std::thread([this] { RunThread(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no thread for faults on demand: ", error.what()));
  }
  return absl::OkStatus();
}

void FaultyDevice::RunThread() {
  pthread_setname_np(pthread_self(), "rknnd-faults");
  // A job that hung is run here when it is let go.
  device_->EnterWorker();
  for (;;) {
    RunDue();
    base::MutexLock lock(mutex_);
    while (!stopped_ && !kicked_) {
      const base::Nanoseconds next = NextDue();
      if (next == kNever) {
        changed_.wait(mutex_);
        continue;
      }
      const base::Nanoseconds left = next - clock_->Now();
      if (left <= 0) break;
      changed_.wait_for(mutex_, std::chrono::nanoseconds(left));
    }
    if (stopped_) return;
    kicked_ = false;
  }
}

void FaultyDevice::Stop() {
  std::vector<Ended> ended;
  {
    base::MutexLock lock(mutex_);
    stopped_ = true;
    for (const std::unique_ptr<Slot>& slot : slots_) {
      if (slot->state == Slot::State::kLate) {
        End(*slot, std::move(slot->result.status), &ended);
      } else if (slot->state == Slot::State::kHanging) {
        End(*slot,
            absl::UnavailableError(
                "the daemon stopped while the job hung on the NPU"),
            &ended);
      }
    }
    Kick();
  }
  Deliver(ended);
  if (thread_.joinable()) thread_.join();
}

void FaultyDevice::OnChanged(const FaultReport& fault, bool set) {
  // Again until it is what is in force: another change may have come between.
  if (fault.fault.kind == FaultKind::kThrottle) {
    double factor = 1;
    do {
      factor = plan_.throttle();
      device_->SetClock(1 / factor);
    } while (factor != plan_.throttle());
  }
  if (fault.fault.kind == FaultKind::kIncoherent) {
    bool incoherent = false;
    do {
      incoherent = plan_.incoherent() || incoherent_;
      memories_->SetIncoherent(*device_, incoherent);
    } while (incoherent != (plan_.incoherent() || incoherent_));
  }
  {
    base::MutexLock lock(mutex_);
    Kick();
  }
  if (told_) told_(fault, set);
}

}  // namespace rknnd::driver
