// The fake device's models, memory and jobs. Called by daemon/core's tests on
// any thread.

#include "daemon/core/testing/fake_device.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/posix/mapping.h"
#include "base/status/status.h"

namespace rknnd::core::testing {

// Outlives the device: memories and models may do so in a test that fails.
struct FakeDeviceState {
  std::atomic<uint32_t> memories{0}, models{0}, finished{0};
  base::Mutex mutex;
  absl::Status finish RKNND_GUARDED_BY(mutex);
  std::atomic<uint64_t> cleared{0};
  std::vector<FakeDevice::Cleared> clears RKNND_GUARDED_BY(mutex);
  std::function<void()> on_clear RKNND_GUARDED_BY(mutex);
};

namespace {

// Enough for every test: recording allocates nothing.
constexpr size_t kRuns = 1 << 16;

class FakeMemory final : public driver::Memory {
 public:
  FakeMemory(std::shared_ptr<FakeDeviceState> state, base::Mapping mapping)
      : state_(std::move(state)), mapping_(std::move(mapping)) {
    ++state_->memories;
  }
  ~FakeMemory() override { --state_->memories; }

  [[nodiscard]] uint64_t size() const override { return mapping_.size(); }
  void Clear(uint64_t offset, uint64_t bytes) override {
    std::memset(mapping_.data() + offset, 0, bytes);
    state_->cleared += bytes;
    std::function<void()> hook;
    {
      base::MutexLock lock(state_->mutex);
      if (state_->clears.size() < kRuns) {
        state_->clears.push_back({offset, bytes});
      }
      hook = state_->on_clear;
    }
    if (hook != nullptr) hook();
  }
  absl::Status CopyFrom(const driver::Memory& from, uint64_t from_offset,
                        uint64_t offset, uint64_t bytes) override {
    std::memcpy(data() + offset,
                static_cast<const FakeMemory&>(from).data() + from_offset,
                bytes);
    return absl::OkStatus();
  }
  [[nodiscard]] std::byte* data() const { return mapping_.data(); }

 private:
  const std::shared_ptr<FakeDeviceState> state_;
  const base::Mapping mapping_;
};

class FakeModel final : public driver::Model {
 public:
  // `form`: empty: none.
  FakeModel(std::shared_ptr<FakeDeviceState> state, driver::ModelInfo info,
            uint64_t mark, std::string form, bool restored)
      : state_(std::move(state)),
        info_(std::move(info)),
        mark_(static_cast<std::byte>(mark)),
        form_(std::move(form)),
        restored_(restored) {
    ++state_->models;
  }
  ~FakeModel() override { --state_->models; }

  [[nodiscard]] const driver::ModelInfo& info() const override { return info_; }
  [[nodiscard]] std::byte mark() const { return mark_; }
  [[nodiscard]] absl::StatusOr<uint64_t> CheckBinding(
      uint32_t program, driver::Direction direction, uint32_t index,
      const driver::TensorFormat& format) const override {
    const driver::ProgramInfo& row = info_.programs[program];
    const auto& tensor = direction == driver::Direction::kInput
                             ? row.inputs[index]
                             : row.outputs[index];
    if (format.layout == driver::TensorLayout::kNc1hwc2) {
      return absl::InvalidArgumentError("this tensor cannot be NC1HWC2");
    }
    const uint64_t pixels = std::max<uint64_t>(format.w_stride, tensor.size);
    return format.type == driver::TensorType::kFloat32 ? pixels * 4 : pixels;
  }
  [[nodiscard]] absl::StatusOr<driver::FrameSizes> CheckFrame(
      uint32_t program, uint32_t index,
      const driver::FrameFormat& frame) const override {
    const uint64_t room = info_.programs[program].inputs[index].size;
    if (frame.width > room) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a frame of ", frame.width, " pixels is wider than ", room));
    }
    const uint64_t luma = uint64_t{frame.width} * frame.height;
    return driver::FrameSizes{
        luma, frame.pixels == driver::PixelFormat::kNv12 ? luma / 2 : 0};
  }

  // Two bytes of traffic for each in SRAM.
  [[nodiscard]] driver::SramPlan PlanSram(uint32_t program,
                                          uint64_t bytes) const override {
    driver::SramPlan plan;
    plan.size = bytes;
    plan.used = std::min(bytes, info_.programs[program].sram.used);
    plan.saved = 2 * plan.used;
    return plan;
  }

  absl::Status CopyWeights(driver::Memory& to, uint64_t offset) const override {
    std::memset(static_cast<FakeMemory&>(to).data() + offset, 0x57,
                info_.weight_size);
    return absl::OkStatus();
  }

  absl::Status WriteCompiled(
      absl::FunctionRef<absl::Status(std::span<const std::byte>)> write)
      override {
    if (form_.empty()) return Model::WriteCompiled(write);
    return write(std::as_bytes(std::span(form_.data(), form_.size())));
  }
  absl::Status Finish() override {
    ++state_->finished;
    if (!restored_) return absl::OkStatus();
    base::MutexLock lock(state_->mutex);
    return state_->finish;
  }

 private:
  const std::shared_ptr<FakeDeviceState> state_;
  const driver::ModelInfo info_;
  const std::byte mark_;
  const std::string form_;
  const bool restored_;
};

driver::TensorAttr MakeTensor(const std::string& name, uint64_t bytes) {
  driver::TensorAttr tensor;
  tensor.name = name;
  tensor.dims = {1, 1, static_cast<uint32_t>(bytes), 1};
  tensor.elements = tensor.size = tensor.size_with_stride = bytes;
  tensor.layout = driver::TensorLayout::kNhwc;
  tensor.type = driver::TensorType::kUint8;
  tensor.w_stride = static_cast<uint32_t>(bytes);
  return tensor;
}

const std::byte* DataOf(const driver::TensorBinding& binding) {
  return static_cast<const FakeMemory*>(binding.memory)->data() +
         binding.offset;
}

std::byte* DataOf(driver::Memory* memory) {
  return static_cast<FakeMemory*>(memory)->data();
}

std::byte MarkOf(const driver::JobRequest& job) {
  return static_cast<const FakeModel*>(job.model)->mark();
}

}  // namespace

FakeDevice::FakeDevice(uint32_t cores, const base::Clock* clock)
    : clock_(clock), state_(std::make_shared<FakeDeviceState>()) {
  info_.kind = "fake";
  info_.soc = "rk3588";
  info_.cores = cores;
  info_.sram_total = 1 << 20;
  runs_.reserve(kRuns);
  base::MutexLock lock(state_->mutex);
  state_->clears.reserve(kRuns);
}

FakeDevice::~FakeDevice() = default;

absl::StatusOr<std::unique_ptr<driver::Model>> FakeDevice::Load(
    const driver::LoadRequest& request) {
  const std::string& name = request.name;
  ++loads_;
  {
    base::MutexLock lock(mutex_);
    last_load_ = {
        std::string(reinterpret_cast<const char*>(request.weights_of.data()),
                    request.weights_of.size()),
        request.options, request.share_weights};
  }
  const std::string prefix = info_.compiler + ":";
  std::span<const std::byte> bytes = request.bytes;
  const bool restored = !request.compiled.empty();
  if (restored) {
    ++restores_;
    if (request.compiled.size() < prefix.size() ||
        std::memcmp(request.compiled.data(), prefix.data(), prefix.size()) !=
            0) {
      return absl::DataLossError("this is no compiled form");
    }
    bytes = request.compiled.subspan(prefix.size());
  }
  uint64_t inputs = 1;
  uint64_t outputs = 1;
  uint64_t size = 16;
  uint64_t layers = 2;
  uint64_t slow = 0;  // of them
  uint64_t mark = 0x5a;
  std::vector<uint64_t> rows;
  driver::ModelInfo info;
  driver::ProgramInfo program;
  std::istringstream words(
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value =
        equals == std::string::npos ? "" : word.substr(equals + 1);
    uint64_t number = 0;
    (void)absl::SimpleAtoi(value, &number);
    if (key == "refuse") {
      return absl::InvalidArgumentError(absl::StrCat(
          "operator '", value, "' of model '", name, "' is unknown"));
    }
    if (key == "described") {
      info.runnable = absl::InvalidArgumentError(
          absl::StrCat("'", name, "' is compiled for ", value));
    }
    if (key == "lacks" && request.weights_of.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "weight '", value, "' of model '", name, "' is missing"));
    }
    if (key == "inputs") inputs = number;
    if (key == "outputs") outputs = number;
    if (key == "bytes") size = number;
    if (key == "row") rows.push_back(number);
    if (key == "layers") layers = number;
    if (key == "slow") slow = number;
    if (key == "weight") info.weight_size = number;
    if (key == "internal") program.internal_size = number;
    if (key == "mark") mark = number;
    if (key == "sram") program.sram.used = number;
    if (key == "modelled") {
      program.modelled =
          static_cast<base::Nanoseconds>(number) * base::kMillisecond;
    }
    if (key == "batch") program.batch = static_cast<uint32_t>(number);
    if (key == "name") info.name = value;
  }
  for (uint64_t i = 0; i < layers; ++i) {
    driver::LayerInfo& layer = program.layers.emplace_back();
    layer.name = absl::StrCat("node", i);
    layer.type = "Conv";
    layer.input_shape = "(1,3,8,8)";
    layer.output_shape = "(1,4,8,8)";
    if (i < slow) {
      layer.kernel = "reference";
      layer.is_slow = true;
    }
  }
  rows.insert(rows.begin(), size);
  for (const uint64_t pixels : rows) {
    driver::ProgramInfo& row = info.programs.emplace_back(program);
    row.internal_size = program.internal_size * pixels / size;
    for (uint64_t i = 0; i < inputs; ++i) {
      row.inputs.push_back(MakeTensor(absl::StrCat("in", i), pixels));
    }
    for (uint64_t i = 0; i < outputs; ++i) {
      row.outputs.push_back(MakeTensor(absl::StrCat("out", i), pixels));
    }
    if (pixels > rows[info.largest]) {
      info.largest = static_cast<uint32_t>(info.programs.size() - 1);
    }
  }
  const std::string form =
      info_.compiler.empty()
          ? ""
          : prefix + std::string(reinterpret_cast<const char*>(bytes.data()),
                                 bytes.size());
  return std::make_unique<FakeModel>(state_, std::move(info), mark, form,
                                     restored);
}

void FakeDevice::FailFinish(absl::Status status) {
  base::MutexLock lock(state_->mutex);
  state_->finish = std::move(status);
}

uint32_t FakeDevice::finished() const { return state_->finished; }

absl::StatusOr<std::unique_ptr<driver::Memory>> FakeDevice::Attach(
    const driver::MemoryRef& memory, driver::MemoryAccess access) {
  if (memory.size > attach_limit_) {
    return absl::ResourceExhaustedError("the fake device has no more memory");
  }
  const auto mapped = access == driver::MemoryAccess::kRead
                          ? base::Mapping::Access::kRead
                          : base::Mapping::Access::kReadWrite;
  RKNND_ASSIGN_OR_RETURN(base::Mapping mapping,
                         base::ToStatusOr(base::Mapping::OfFd(
                             memory.fd, memory.offset, memory.size, mapped)));
  return std::make_unique<FakeMemory>(state_, std::move(mapping));
}

void FakeDevice::Submit(const driver::JobRequest& job) {
  Run run;
  run.core = job.core;
  run.core_mask = job.core_mask;
  run.model = job.model;
  run.internal_size = job.internal == nullptr ? 0 : job.internal->size();
  run.gang_internal = job.gang_internal.size();
  run.submitted = job.submitted;
  BeginInInternal(job, &run);
  {
    base::MutexLock lock(mutex_);
    if ((busy_ & job.core_mask) != 0 || (job.core_mask >> job.core & 1) == 0) {
      ++violations_;
    }
    busy_ |= job.core_mask;
    if (runs_.size() < kRuns) {
      runs_.push_back(run);
    }
    if (hold_) {
      held_.push_back(job);
      return;
    }
  }
  Execute(job);
}

void FakeDevice::ForInternal(const driver::JobRequest& job,
                             absl::FunctionRef<void(std::span<std::byte>)> f) {
  const uint64_t size = job.model->info().programs[job.program].internal_size;
  if (size == 0) return;
  if (job.internal == nullptr || job.internal->size() < job.internal_offset ||
      job.internal->size() - job.internal_offset < size) {
    ++violations_;
    return;
  }
  f(std::span(DataOf(job.internal) + job.internal_offset, size));
  for (driver::Memory* memory : job.gang_internal) {
    f(std::span(DataOf(memory), size));
  }
}

void FakeDevice::BeginInInternal(const driver::JobRequest& job, Run* run) {
  const std::byte mark = MarkOf(job);
  ForInternal(job, [&](std::span<std::byte> bytes) {
    for (std::byte& byte : bytes) {
      if (byte != std::byte{0}) {
        ++run->found;
        if (byte != mark) run->found_others = true;
      }
      byte = mark;
    }
  });
}

void FakeDevice::EndInInternal(const driver::JobRequest& job) {
  const std::byte mark = MarkOf(job);
  ForInternal(job, [&](std::span<std::byte> bytes) {
    for (const std::byte byte : bytes) {
      if (byte == mark) continue;
      ++violations_;
      return;
    }
  });
}

void FakeDevice::Execute(const driver::JobRequest& job) {
  const driver::ProgramInfo& program = job.model->info().programs[job.program];
  driver::JobResult result;
  EndInInternal(job);
  result.started = clock_->Now();
  result.ended = result.started + run_time_;
  for (size_t i = 0; i < job.outputs.size() && !job.inputs.empty(); ++i) {
    const std::byte* from = DataOf(job.inputs[0]);
    std::byte* to = DataOf(job.outputs[i].memory) + job.outputs[i].offset;
    for (uint64_t b = 0; b < program.outputs[i].size; ++b) {
      to[b] = static_cast<std::byte>(std::to_integer<int>(from[b]) + 1);
    }
  }
  for (size_t i = 0; i < job.layer_times.size(); ++i) {
    job.layer_times[i] = static_cast<int64_t>(i + 1) * base::kMicrosecond;
  }
  {
    base::MutexLock lock(mutex_);
    busy_ &= ~job.core_mask;
    result.status = status_;
  }
  for (uint32_t i = 0; job.layer_sink != nullptr && i < program.layers.size();
       ++i) {
    const float value = static_cast<float>(i);
    const int64_t shape[] = {1};
    driver::LayerTensor tensor;
    tensor.layer = i;
    tensor.name = program.layers[i].name;
    tensor.shape = shape;
    tensor.bytes = std::as_bytes(std::span(&value, 1));
    result.status.Update(job.layer_sink->OnLayer(tensor));
  }
  job.listener->OnJobDone(result);
}

void FakeDevice::HoldJobs(bool hold) {
  base::MutexLock lock(mutex_);
  hold_ = hold;
}

bool FakeDevice::Release() {
  driver::JobRequest job;
  {
    base::MutexLock lock(mutex_);
    if (held_.empty()) return false;
    job = held_.front();
    held_.pop_front();
  }
  Execute(job);
  return true;
}

size_t FakeDevice::held() const {
  base::MutexLock lock(mutex_);
  return held_.size();
}

size_t FakeDevice::unwanted() const {
  base::MutexLock lock(mutex_);
  return static_cast<size_t>(
      std::count_if(held_.begin(), held_.end(),
                    [](const auto& job) { return job.stop->load(); }));
}

void FakeDevice::FailJobs(absl::Status status) {
  base::MutexLock lock(mutex_);
  status_ = std::move(status);
}

FakeDevice::LastLoad FakeDevice::last_load() const {
  base::MutexLock lock(mutex_);
  return last_load_;
}

std::vector<FakeDevice::Run> FakeDevice::runs() const {
  base::MutexLock lock(mutex_);
  return runs_;
}

uint32_t FakeDevice::memories() const { return state_->memories; }
uint32_t FakeDevice::models() const { return state_->models; }
uint64_t FakeDevice::cleared() const { return state_->cleared; }

std::vector<FakeDevice::Cleared> FakeDevice::clears() const {
  base::MutexLock lock(state_->mutex);
  return state_->clears;
}

void FakeDevice::OnClear(std::function<void()> hook) {
  base::MutexLock lock(state_->mutex);
  state_->on_clear = std::move(hook);
}

}  // namespace rknnd::core::testing
