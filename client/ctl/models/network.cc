#include "client/ctl/models/network.h"

#include <chrono>
#include <cstring>

#include "base/values/half.h"
#include "rknnd.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// The library's reason, behind what was tried.
Error Failure(const std::string& what, int code) {
  std::string reason = rknnd_last_error();
  if (reason.empty()) reason = "error " + std::to_string(code);
  return {Code::kUnknown, what + ": " + reason};
}

// Whether rknn_outputs_get shall give floats.
bool IsReal(const rknn_tensor_attr& attr) {
  switch (attr.type) {
    case RKNN_TENSOR_FLOAT32:
    case RKNN_TENSOR_FLOAT16:
    case RKNN_TENSOR_BFLOAT16:
      return true;
    case RKNN_TENSOR_INT8:
    case RKNN_TENSOR_UINT8:
    case RKNN_TENSOR_INT16:
    case RKNN_TENSOR_UINT16:
      return attr.qnt_type != RKNN_TENSOR_QNT_NONE;
    default:
      return false;
  }
}

ElementType OwnType(const rknn_tensor_attr& attr) {
  switch (attr.type) {
    case RKNN_TENSOR_INT8:
      return ElementType::kInt8;
    case RKNN_TENSOR_UINT8:
      return ElementType::kUint8;
    case RKNN_TENSOR_INT16:
      return ElementType::kInt16;
    case RKNN_TENSOR_UINT16:
      return ElementType::kUint16;
    case RKNN_TENSOR_INT32:
      return ElementType::kInt32;
    case RKNN_TENSOR_UINT32:
      return ElementType::kUint32;
    case RKNN_TENSOR_INT64:
      return ElementType::kInt64;
    case RKNN_TENSOR_BOOL:
      return ElementType::kBool;
    default:
      return ElementType::kFloat32;
  }
}

template <class T>
void Append(const std::vector<std::byte>& bytes, std::vector<double>* values) {
  values->reserve(bytes.size() / sizeof(T));
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    values->push_back(static_cast<double>(value));
  }
}

}  // namespace

std::vector<double> TensorOutput::Values() const {
  std::vector<double> values;
  switch (type) {
    case ElementType::kFloat32:
      Append<float>(bytes, &values);
      break;
    case ElementType::kFloat16:
      Append<uint16_t>(bytes, &values);
      for (double& value : values) {
        value = base::HalfToFloat(static_cast<base::Half>(value));
      }
      break;
    case ElementType::kFloat64:
      Append<double>(bytes, &values);
      break;
    case ElementType::kInt8:
      Append<int8_t>(bytes, &values);
      break;
    case ElementType::kUint8:
    case ElementType::kBool:
      Append<uint8_t>(bytes, &values);
      break;
    case ElementType::kInt16:
      Append<int16_t>(bytes, &values);
      break;
    case ElementType::kUint16:
      Append<uint16_t>(bytes, &values);
      break;
    case ElementType::kInt32:
      Append<int32_t>(bytes, &values);
      break;
    case ElementType::kUint32:
      Append<uint32_t>(bytes, &values);
      break;
    case ElementType::kInt64:
      Append<int64_t>(bytes, &values);
      break;
    case ElementType::kUint64:
      Append<uint64_t>(bytes, &values);
      break;
  }
  return values;
}

Expected<std::unique_ptr<Network>> Network::Load(const std::string& path,
                                                 uint32_t flags) {
  rknn_context context = 0;
  // The API takes the path as bytes it could write to, and does not.
  std::vector<char> name(path.c_str(), path.c_str() + path.size() + 1);
  if (const int code = rknn_init(&context, name.data(), 0, flags, nullptr);
      code != RKNN_SUCC) {
    return Failure("cannot load model '" + path + "'", code);
  }
  std::unique_ptr<Network> network(new Network(context));
  if (Expected<void> described = network->Describe(); !described) {
    return std::move(described).error();
  }
  return network;
}

Expected<std::unique_ptr<Network>> Network::Duplicate() {
  rknn_context copy = 0;
  if (const int code = rknn_dup_context(&context_, &copy); code != RKNN_SUCC) {
    return Failure("cannot duplicate the context", code);
  }
  std::unique_ptr<Network> network(new Network(copy));
  network->inputs_ = inputs_;
  network->outputs_ = outputs_;
  if (const int code = network->ChooseLargest(); code != RKNN_SUCC) {
    return Failure("cannot choose the shape", code);
  }
  return network;
}

Network::~Network() {
  if (bound_ != nullptr) rknn_destroy_mem(context_, bound_);
  rknn_destroy(context_);
}

int Network::ChooseLargest() {
  auto range = std::make_unique<rknn_input_range>();
  if (inputs_.empty() || rknn_query(context_, RKNN_QUERY_INPUT_DYNAMIC_RANGE,
                                    range.get(), sizeof(*range)) != RKNN_SUCC) {
    return RKNN_SUCC;
  }
  return rknn_set_input_shapes(context_, static_cast<uint32_t>(inputs_.size()),
                               inputs_.data());
}

Expected<void> Network::Describe() {
  rknn_input_output_num count{};
  if (const int code =
          rknn_query(context_, RKNN_QUERY_IN_OUT_NUM, &count, sizeof(count));
      code != RKNN_SUCC) {
    return Failure("cannot count the model's inputs", code);
  }
  const auto query = [this](rknn_query_cmd cmd, uint32_t n,
                            std::vector<rknn_tensor_attr>* attrs) {
    for (uint32_t i = 0; i < n; ++i) {
      rknn_tensor_attr attr{};
      attr.index = i;
      const int code = rknn_query(context_, cmd, &attr, sizeof(attr));
      if (code != RKNN_SUCC) return code;
      attrs->push_back(attr);
    }
    return RKNN_SUCC;
  };
  int code = query(RKNN_QUERY_INPUT_ATTR, count.n_input, &inputs_);
  if (code == RKNN_SUCC) code = ChooseLargest();
  if (code == RKNN_SUCC) {
    code = query(RKNN_QUERY_CURRENT_OUTPUT_ATTR, count.n_output, &outputs_);
  }
  if (code != RKNN_SUCC) {
    return Failure("cannot read the model's inputs and outputs", code);
  }
  return {};
}

Expected<void> Network::SetCoreMask(rknn_core_mask mask) {
  if (const int code = rknn_set_core_mask(context_, mask); code != RKNN_SUCC) {
    return Failure("cannot choose the cores", code);
  }
  return {};
}

Expected<void> Network::SetInputs(std::span<const TensorInput> inputs) {
  std::vector<rknn_input> list;
  for (const TensorInput& input : inputs) {
    rknn_input entry{};
    entry.index = static_cast<uint32_t>(list.size());
    // Only read, although the API's pointer is not to const.
    entry.buf = const_cast<std::byte*>(input.bytes.data());
    entry.size = static_cast<uint32_t>(input.bytes.size());
    entry.type = input.type;
    entry.fmt = input.format;
    list.push_back(entry);
  }
  if (const int code = rknn_inputs_set(
          context_, static_cast<uint32_t>(list.size()), list.data());
      code != RKNN_SUCC) {
    return Failure("cannot set the inputs", code);
  }
  return {};
}

Expected<void> Network::Run() {
  if (const int code = rknn_run(context_, nullptr); code != RKNN_SUCC) {
    return Failure("the run failed", code);
  }
  return {};
}

Expected<uint64_t> Network::TimeOutputs() {
  std::vector<rknn_output> list = WantedOutputs();
  const auto count = static_cast<uint32_t>(list.size());
  const auto begun = std::chrono::steady_clock::now();
  if (const int code = rknn_outputs_get(context_, count, list.data(), nullptr);
      code != RKNN_SUCC) {
    return Failure("cannot get the outputs", code);
  }
  const auto taken = std::chrono::steady_clock::now() - begun;
  rknn_outputs_release(context_, count, list.data());
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count());
}

Expected<rknnd_run_report> Network::LastRun() {
  rknnd_run_report report{};
  if (const int code = rknnd_last_run(context_, &report); code != RKNN_SUCC) {
    return Failure("cannot read the times of the run", code);
  }
  return report;
}

Expected<int64_t> Network::RunMicroseconds() {
  rknn_perf_run perf{};
  if (const int code =
          rknn_query(context_, RKNN_QUERY_PERF_RUN, &perf, sizeof(perf));
      code != RKNN_SUCC) {
    return Failure("cannot read the time of the run", code);
  }
  return perf.run_duration;
}

std::vector<rknn_output> Network::WantedOutputs() const {
  std::vector<rknn_output> list(outputs_.size());
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].index = static_cast<uint32_t>(i);
    list[i].want_float = IsReal(outputs_[i]) ? 1 : 0;
  }
  return list;
}

Expected<std::vector<TensorOutput>> Network::GetOutputs() {
  std::vector<rknn_output> list = WantedOutputs();
  const auto count = static_cast<uint32_t>(list.size());
  if (const int code = rknn_outputs_get(context_, count, list.data(), nullptr);
      code != RKNN_SUCC) {
    return Failure("cannot get the outputs", code);
  }
  std::vector<TensorOutput> outputs;
  for (size_t i = 0; i < list.size(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(list[i].buf);
    outputs.push_back(
        {IsReal(outputs_[i]) ? ElementType::kFloat32 : OwnType(outputs_[i]),
         {bytes, bytes + list[i].size}});
  }
  rknn_outputs_release(context_, count, list.data());
  return outputs;
}

Expected<std::string> Network::PerfText() {
  rknn_perf_detail detail{};
  if (const int code =
          rknn_query(context_, RKNN_QUERY_PERF_DETAIL, &detail, sizeof(detail));
      code != RKNN_SUCC) {
    return Failure("cannot read the layers' times", code);
  }
  return std::string(detail.perf_data, detail.data_len);
}

Expected<std::span<const rknnd_layer>> Network::Layers() {
  const rknnd_layer* layers = nullptr;
  uint32_t count = 0;
  if (const int code = rknnd_query_layers(context_, &layers, &count);
      code != RKNN_SUCC) {
    return Failure("cannot read the layers' times", code);
  }
  return std::span<const rknnd_layer>(layers, count);
}

Expected<std::span<const rknnd_kernel>> Network::Kernels() {
  const rknnd_kernel* kernels = nullptr;
  uint32_t count = 0;
  if (const int code = rknnd_query_kernels(context_, &kernels, &count);
      code != RKNN_SUCC) {
    return Failure("cannot read what computes the layers", code);
  }
  return std::span<const rknnd_kernel>(kernels, count);
}

Expected<void> Network::Dump(const std::string& directory) {
  if (const int code = rknnd_dump(context_, directory.c_str());
      code != RKNN_SUCC) {
    return Failure("the dump failed", code);
  }
  return {};
}

Expected<rknnd_admission> Network::Admit(const rknnd_stream& stream) {
  rknnd_admission admission{};
  if (const int code =
          rknnd_admit(context_, &stream, &admission, sizeof admission);
      code != RKNN_SUCC) {
    return Failure("cannot plan the stream", code);
  }
  return admission;
}

Expected<rknn_mem_size> Network::MemorySize() {
  rknn_mem_size size{};
  if (const int code =
          rknn_query(context_, RKNN_QUERY_MEM_SIZE, &size, sizeof(size));
      code != RKNN_SUCC) {
    return Failure("cannot read the model's memory", code);
  }
  return size;
}

Expected<rknn_sdk_version> Network::Versions() {
  rknn_sdk_version versions{};
  if (const int code = rknn_query(context_, RKNN_QUERY_SDK_VERSION, &versions,
                                  sizeof versions);
      code != RKNN_SUCC) {
    return Failure("cannot read the versions", code);
  }
  return versions;
}

Expected<void> Network::BindInput(int dma_buf, const TensorInput& input) {
  rknn_tensor_attr attr = inputs_.at(0);
  attr.type = input.type;
  attr.fmt = input.format;
  attr.pass_through = 0;
  const auto size = static_cast<uint32_t>(input.bytes.size());
  bound_ = rknn_create_mem_from_fd(context_, dma_buf, nullptr, size, 0);
  if (bound_ == nullptr) return Failure("cannot import the memory", 0);
  if (bound_->virt_addr == nullptr) {
    return Error{Code::kUnknown, "the memory cannot be mapped"};
  }
  std::memcpy(bound_->virt_addr, input.bytes.data(), size);
  int code = rknn_mem_sync(context_, bound_, RKNN_MEMORY_SYNC_TO_DEVICE);
  if (code == RKNN_SUCC) code = rknn_set_io_mem(context_, bound_, &attr);
  if (code != RKNN_SUCC) return Failure("cannot bind the memory", code);
  return {};
}

Expected<std::string> Network::CustomString() {
  rknn_custom_string text{};
  if (const int code =
          rknn_query(context_, RKNN_QUERY_CUSTOM_STRING, &text, sizeof(text));
      code != RKNN_SUCC) {
    return Failure("cannot read the model's custom string", code);
  }
  return std::string(text.string, strnlen(text.string, sizeof(text.string)));
}

}  // namespace rknnd::client
