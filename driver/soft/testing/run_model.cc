#include "driver/soft/testing/run_model.h"

#include <sys/mman.h>

#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <span>
#include <utility>

#include "base/posix/memfd.h"
#include "base/posix/mutex.h"
#include "base/status/status.h"

namespace rknnd::soft::testing {
namespace {
driver::Heap* internal_heap = nullptr;
}  // namespace

void TakeInternalMemoryFrom(driver::Heap* heap) { internal_heap = heap; }

TestMemory::TestMemory(driver::Device& device, uint64_t size)
    : TestMemory(device, size, nullptr) {}

TestMemory::TestMemory(driver::Device& device, uint64_t size,
                       driver::Heap* heap)
    : size_(size == 0 ? 1 : size) {
  fd_ = heap == nullptr ? *base::MakeMemfd("test", size_)
                        : std::move(heap->Allocate(size_)->fd);
  void* data =
      mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  data_ = static_cast<std::byte*>(data);
  memory_ =
      *device.Attach({fd_.get(), 0, size_}, driver::MemoryAccess::kReadWrite);
}

TestMemory::~TestMemory() { munmap(data_, size_); }

// A device may answer before Submit returns or from a thread of its own.
class BoundModel::KeepResult final : public driver::JobListener {
 public:
  void OnJobDone(driver::JobResult result) override {
    base::MutexLock lock(mutex_);
    result_ = std::move(result);
    ++calls_;
    done_.notify_all();
  }
  [[nodiscard]] driver::JobResult Take() {
    std::unique_lock lock(mutex_);
    done_.wait_for(lock, std::chrono::seconds(60), [this] { return Done(); });
    if (!Done()) {
      driver::JobResult none;
      none.status = absl::InternalError("OnJobDone was not called once");
      return none;
    }
    calls_ = 0;
    return std::move(result_);
  }

 private:
  // Under mutex_, as the wait calls it.
  bool Done() RKNND_NO_THREAD_SAFETY_ANALYSIS { return calls_ == 1; }

  base::Mutex mutex_;
  base::CondVar done_;
  driver::JobResult result_;
  int calls_ = 0;
};

BoundModel::BoundModel(driver::Device& device, const driver::Model& model,
                       uint32_t row)
    : device_(device),
      model_(model),
      row_(row),
      listener_(std::make_unique<KeepResult>()) {}

BoundModel::~BoundModel() = default;

absl::StatusOr<std::unique_ptr<BoundModel>> BoundModel::Make(
    driver::Device& device, const driver::Model& model,
    const std::vector<driver::TensorFormat>& inputs,
    const std::vector<driver::TensorFormat>& outputs, uint32_t row) {
  std::unique_ptr<BoundModel> bound(new BoundModel(device, model, row));
  auto bind = [&](driver::Direction direction,
                  const std::vector<driver::TensorFormat>& formats,
                  auto& memories, auto& bindings) -> absl::Status {
    for (uint32_t i = 0; i < formats.size(); ++i) {
      RKNND_ASSIGN_OR_RETURN(uint64_t size,
                             model.CheckBinding(row, direction, i, formats[i]));
      memories.push_back(std::make_unique<TestMemory>(device, size));
      bindings.push_back({memories.back()->memory(), 0, formats[i]});
    }
    return absl::OkStatus();
  };
  RKNND_RETURN_IF_ERROR(bind(driver::Direction::kInput, inputs, bound->inputs_,
                             bound->input_bindings_));
  RKNND_RETURN_IF_ERROR(bind(driver::Direction::kOutput, outputs,
                             bound->outputs_, bound->output_bindings_));
  bound->arena_ = std::make_unique<TestMemory>(
      device, model.info().programs[row].internal_size, internal_heap);
  return bound;
}

driver::JobResult BoundModel::Run(uint32_t core,
                                  std::vector<int64_t>* layer_times) {
  driver::JobRequest job;
  job.model = &model_;
  job.program = row_;
  job.core = core;
  job.core_mask = 1U << core;
  job.inputs = input_bindings_;
  job.outputs = output_bindings_;
  job.internal = arena_->memory();
  if (layer_times != nullptr) {
    layer_times->assign(model_.info().programs[row_].layers.size(), -1);
    job.layer_times = *layer_times;
  }
  job.stop = stop_;
  job.listener = listener_.get();
  device_.Submit(job);
  return listener_->Take();
}

driver::JobResult BoundModel::RunDumped(driver::LayerSink& sink) {
  driver::JobRequest job;
  job.model = &model_;
  job.program = row_;
  job.core_mask = 1;
  job.inputs = input_bindings_;
  job.outputs = output_bindings_;
  job.internal = arena_->memory();
  job.layer_sink = &sink;
  job.stop = stop_;
  job.listener = listener_.get();
  device_.Submit(job);
  return listener_->Take();
}

driver::JobResult BoundModel::RunGang(uint32_t core_mask, bool own_arenas,
                                      std::vector<int64_t>* layer_times) {
  driver::JobRequest job;
  job.model = &model_;
  job.program = row_;
  job.core = static_cast<uint32_t>(std::countr_zero(core_mask));
  job.core_mask = core_mask;
  job.inputs = input_bindings_;
  job.outputs = output_bindings_;
  job.internal = arena_->memory();
  std::vector<driver::Memory*> further;
  for (int i = 1; own_arenas && i < std::popcount(core_mask); ++i) {
    if (gang_arenas_.size() < static_cast<size_t>(i)) {
      gang_arenas_.push_back(std::make_unique<TestMemory>(
          device_, model_.info().programs[row_].internal_size, internal_heap));
    }
    further.push_back(gang_arenas_[static_cast<size_t>(i) - 1]->memory());
  }
  job.gang_internal = further;
  if (layer_times != nullptr) {
    layer_times->assign(model_.info().programs[row_].layers.size(), -1);
    job.layer_times = *layer_times;
  }
  job.stop = stop_;
  job.listener = listener_.get();
  device_.Submit(job);
  return listener_->Take();
}

driver::JobResult BoundModel::RunWithInput(size_t i, driver::Memory* memory,
                                           uint32_t core_mask) {
  driver::Memory* before = std::exchange(input_bindings_[i].memory, memory);
  driver::JobResult result = RunGang(core_mask);
  input_bindings_[i].memory = before;
  return result;
}

driver::JobResult BoundModel::RunWithFrame(size_t i, const driver::Frame& frame,
                                           std::vector<int64_t>* layer_times) {
  const driver::TensorBinding before = input_bindings_[i];
  input_bindings_[i] = {.memory = frame.planes[0].memory,
                        .offset = frame.planes[0].offset,
                        .format = {},
                        .frame = &frame};
  driver::JobResult result = Run(0, layer_times);
  input_bindings_[i] = before;
  return result;
}

absl::Status RunOnce(driver::Device& device, const driver::Model& model,
                     const std::vector<TestTensor>& inputs,
                     std::vector<TestTensor>& outputs) {
  auto formats = [](const std::vector<TestTensor>& tensors) {
    std::vector<driver::TensorFormat> result;
    for (const TestTensor& tensor : tensors) result.push_back(tensor.format);
    return result;
  };
  RKNND_ASSIGN_OR_RETURN(
      std::unique_ptr<BoundModel> bound,
      BoundModel::Make(device, model, formats(inputs), formats(outputs)));
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    RKNND_ASSIGN_OR_RETURN(
        uint64_t size,
        model.CheckBinding(0, driver::Direction::kInput, i, inputs[i].format));
    if (size != inputs[i].bytes.size()) {
      return absl::InvalidArgumentError("input bytes do not fit the format");
    }
    std::memcpy(bound->input(i).data(), inputs[i].bytes.data(), size);
  }
  RKNND_RETURN_IF_ERROR(bound->Run().status);
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    RKNND_ASSIGN_OR_RETURN(uint64_t size,
                           model.CheckBinding(0, driver::Direction::kOutput, i,
                                              outputs[i].format));
    outputs[i].bytes.assign(bound->output(i).data(),
                            bound->output(i).data() + size);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> RunFloats(driver::Device& device,
                                             const driver::Model& model,
                                             const std::vector<float>& input) {
  const driver::ProgramInfo& info = model.info().programs[0];
  const auto type = driver::TensorType::kFloat32;
  const auto bytes = std::as_bytes(std::span(input));
  const std::vector<TestTensor> inputs = {
      {PlainFormat(info.inputs[0], type), {bytes.begin(), bytes.end()}}};
  std::vector<TestTensor> outputs;
  for (const driver::TensorAttr& attr : info.outputs) {
    outputs.push_back({PlainFormat(attr, type), {}});
  }
  RKNND_RETURN_IF_ERROR(RunOnce(device, model, inputs, outputs));
  std::vector<float> values(outputs[0].bytes.size() / sizeof(float));
  std::memcpy(values.data(), outputs[0].bytes.data(), outputs[0].bytes.size());
  return values;
}

driver::TensorFormat PlainFormat(const driver::TensorAttr& attr,
                                 driver::TensorType type) {
  driver::TensorFormat format;
  format.type = type;
  format.layout = attr.dims.size() == 4 ? driver::TensorLayout::kNchw
                                        : driver::TensorLayout::kUndefined;
  return format;
}

std::string SharedFolder() {
  const char* given = std::getenv("RKNND_SHARED");  // NOLINT: one thread
  std::filesystem::path folder =
      given != nullptr
          ? std::filesystem::path(given)
          : std::filesystem::path(RKNND_SOURCE_ROOT) / ".." / "shared";
  std::error_code error;
  return std::filesystem::is_directory(folder, error) ? folder.string() : "";
}

std::vector<std::byte> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace rknnd::soft::testing
