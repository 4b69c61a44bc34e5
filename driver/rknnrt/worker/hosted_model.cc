#include "driver/rknnrt/worker/hosted_model.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/posix/mapping.h"

namespace rknnd::rknnrt {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// Of a version that can be hosted, and of the first that takes memory by fd.
constexpr int kOldestMajor = 1, kOldestMinor = 4;
// rknn_mem_size before it grew.
constexpr uint32_t kOlderMemSize = 8;

// The file, as memory of this process that the library may write to.
Expected<base::Mapping> ReadFile(int fd, size_t size) {
  Expected<base::Mapping> bytes = base::Mapping::Anonymous(size);
  if (!bytes.ok()) return bytes;
  for (size_t done = 0; done < size;) {
    const ssize_t count =
        pread(fd, bytes->data() + done, size - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::ErrnoError(errno, "read a model's file");
    if (count == 0) return Error{Code::kDataLoss, "the model's file is short"};
    done += static_cast<size_t>(count);
  }
  return bytes;
}

Expected<void> CheckVersion(const char* version) {
  int major = 0;
  int minor = 0;
  if (std::sscanf(version, "%d.%d", &major, &minor) != 2) return {};
  if (std::pair(major, minor) >= std::pair(kOldestMajor, kOldestMinor)) {
    return {};
  }
  return Error{Code::kFailedPrecondition, "the vendor's library is version " +
                                              std::string(version) +
                                              ": 1.4 or later is needed"};
}

}  // namespace

Expected<std::unique_ptr<HostedModel>> HostedModel::Load(const Library& library,
                                                         base::Mutex& calls,
                                                         base::UniqueFd file,
                                                         size_t size,
                                                         uint32_t cores) {
  std::unique_ptr<HostedModel> model(
      new HostedModel(library, calls, std::move(file), size, cores));
  base::MutexLock lock(calls);
  // Internal memory is the core's, so the model brings none; a version that
  // does not know the flag says so.
  uint32_t flags = RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY;
  Expected<rknn_context> first = Error{};
  if (library.set_internal_mem != nullptr) {
    flags |= RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE;
    first = model->Init(flags);
    model->about_.internal_outside = first.ok() ? 1 : 0;
    if (!first.ok() && first.error().code == Code::kInvalidArgument) {
      flags &= ~uint32_t{RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE};
      first = model->Init(flags);
    }
  } else {
    first = model->Init(flags);
  }
  if (!first.ok()) return std::move(first).error();
  model->first_ = *first;
  model->flags_ = flags;
  if (Expected<void> asked = model->Ask(); !asked.ok()) {
    return std::move(asked).error();
  }
  return model;
}

HostedModel::~HostedModel() {
  for (LaneContexts& lane : lanes_) {
    base::MutexLock running(lane.mutex);
    base::MutexLock lock(calls_);
    for (Context& context : lane.sets) {
      LetGo(context, context.memories);
      if (context.handle != 0) library_.destroy(context.handle);
    }
  }
  base::MutexLock lock(calls_);
  if (first_ != 0) library_.destroy(first_);
}

Expected<rknn_context> HostedModel::Init(uint32_t flags) {
  Expected<base::Mapping> bytes = ReadFile(file_.get(), size_);
  if (!bytes.ok()) return std::move(bytes).error();
  rknn_context context = 0;
  const int code = library_.init(&context, bytes->data(),
                                 static_cast<uint32_t>(size_), flags, nullptr);
  if (code < 0) return Library::Failure("rknn_init", code);
  return context;
}

Expected<void> HostedModel::Ask() {
  rknn_sdk_version version = {};
  int code =
      library_.query(first_, RKNN_QUERY_SDK_VERSION, &version, sizeof version);
  if (code < 0) return Library::Failure("rknn_query(SDK_VERSION)", code);
  std::memcpy(about_.api_version, version.api_version,
              sizeof version.api_version - 1);
  std::memcpy(about_.driver_version, version.drv_version,
              sizeof version.drv_version - 1);
  if (Expected<void> checked = CheckVersion(about_.api_version); !checked) {
    return checked;
  }
  rknn_mem_size sizes = {};
  code = library_.query(first_, RKNN_QUERY_MEM_SIZE, &sizes, sizeof sizes);
  if (code == RKNN_ERR_PARAM_INVALID) {
    code = library_.query(first_, RKNN_QUERY_MEM_SIZE, &sizes, kOlderMemSize);
  }
  if (code < 0) return Library::Failure("rknn_query(MEM_SIZE)", code);
  about_.weight_bytes = sizes.total_weight_size;
  about_.internal_bytes = sizes.total_internal_size;
  rknn_custom_string text = {};
  if (library_.query(first_, RKNN_QUERY_CUSTOM_STRING, &text, sizeof text) ==
      0) {
    std::memcpy(about_.custom_string, text.string, sizeof text.string - 1);
  }
  rknn_input_output_num count = {};
  code = library_.query(first_, RKNN_QUERY_IN_OUT_NUM, &count, sizeof count);
  if (code < 0) return Library::Failure("rknn_query(IN_OUT_NUM)", code);
  if (count.n_input > kMostTensors || count.n_output > kMostTensors ||
      count.n_input + count.n_output > kMostTensors) {
    return Error{Code::kUnimplemented,
                 "it has " + std::to_string(count.n_input) + " inputs and " +
                     std::to_string(count.n_output) +
                     " outputs: of both together " +
                     std::to_string(kMostTensors) + " can be hosted"};
  }
  about_.inputs = count.n_input;
  about_.outputs = count.n_output;
  return AskShapes();
}

Expected<ShapeRow> HostedModel::AskRow(bool current) {
  ShapeRow row;
  const struct {
    std::vector<rknn_tensor_attr>* attributes;
    uint32_t count;
    rknn_query_cmd command;
  } queries[] = {
      {&row.inputs, about_.inputs,
       current ? RKNN_QUERY_CURRENT_INPUT_ATTR : RKNN_QUERY_INPUT_ATTR},
      {&row.outputs, about_.outputs,
       current ? RKNN_QUERY_CURRENT_OUTPUT_ATTR : RKNN_QUERY_OUTPUT_ATTR},
      {&row.native_inputs, about_.inputs,
       current ? RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR
               : RKNN_QUERY_NATIVE_INPUT_ATTR},
      {&row.native_outputs, about_.outputs,
       current ? RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR
               : RKNN_QUERY_NATIVE_OUTPUT_ATTR},
  };
  for (const auto& query : queries) {
    for (uint32_t i = 0; i < query.count; ++i) {
      rknn_tensor_attr& attribute = query.attributes->emplace_back();
      const int code =
          QueryAttribute(library_, first_, query.command, i, attribute);
      if (code < 0) return Library::Failure("rknn_query of attributes", code);
    }
  }
  return row;
}

// A model of fixed shapes has no range, which is how it is told.
Expected<void> HostedModel::AskShapes() {
  std::vector<rknn_input_range> ranges(about_.inputs);
  bool is_dynamic = library_.set_input_shapes != nullptr && about_.inputs > 0;
  for (uint32_t i = 0; i < about_.inputs && is_dynamic; ++i) {
    ranges[i].index = i;
    is_dynamic = library_.query(first_, RKNN_QUERY_INPUT_DYNAMIC_RANGE,
                                &ranges[i], sizeof ranges[i]) == 0 &&
                 ranges[i].shape_number > 0;
  }
  Expected<ShapeRow> fixed = AskRow(/*current=*/false);
  if (!fixed.ok()) return std::move(fixed).error();
  if (!is_dynamic) {
    about_.rows = 1;
    rows_.push_back(*std::move(fixed));
    return {};
  }
  uint32_t count = kMostRows;
  for (const rknn_input_range& range : ranges) {
    count = std::min(count, range.shape_number);
  }
  for (uint32_t r = 0; r < count; ++r) {
    ShapeRow wanted = *fixed;
    for (uint32_t i = 0; i < about_.inputs; ++i) {
      rknn_tensor_attr& input = wanted.inputs[i];
      input.fmt = ranges[i].fmt;
      input.n_dims = std::min<uint32_t>(ranges[i].n_dims, RKNN_MAX_DIMS);
      std::copy_n(ranges[i].dyn_range[r], input.n_dims, input.dims);
    }
    rows_.push_back(std::move(wanted));
    if (Expected<void> set = SetShape(first_, r); !set.ok()) return set;
    Expected<ShapeRow> row = AskRow(/*current=*/true);
    if (!row.ok()) return std::move(row).error();
    rows_.back() = *std::move(row);
  }
  about_.rows = count;
  return {};
}

Expected<void> HostedModel::SetShape(rknn_context context, uint32_t row) {
  const int code = library_.set_input_shapes(context, about_.inputs,
                                             rows_[row].inputs.data());
  if (code < 0) return Library::Failure("rknn_set_input_shapes", code);
  return {};
}

Expected<void> HostedModel::MakeContext(Context& context) {
  // Not of dynamic shapes, by the vendor's guide: those are loaded once more.
  if (library_.dup_context != nullptr && about_.rows == 1) {
    const int code = library_.dup_context(&first_, &context.handle);
    if (code < 0) return Library::Failure("rknn_dup_context", code);
  } else {
    Expected<rknn_context> made = Init(flags_);
    if (!made.ok()) return std::move(made).error();
    context.handle = *made;
  }
  // No shape is set yet.
  context.program = std::numeric_limits<uint32_t>::max();
  return {};
}

Expected<rknn_tensor_mem*> HostedModel::MakeMemory(Context& context,
                                                   uint32_t id, uint64_t offset,
                                                   uint64_t bytes,
                                                   const Memories& memories) {
  std::shared_ptr<NamedMemory> memory = memories.Find(id);
  if (memory == nullptr || offset > memory->size ||
      bytes > memory->size - offset) {
    return Error{Code::kInternal,
                 "a job names memory " + std::to_string(id) +
                     ", which this worker was not given or which is smaller"};
  }
  const uint64_t from = memory->offset + offset;
  if (from > std::numeric_limits<int32_t>::max() ||
      bytes > std::numeric_limits<uint32_t>::max()) {
    return Error{Code::kUnimplemented,
                 "the vendor's library takes no memory that begins behind the "
                 "first 2 GiB of its file"};
  }
  rknn_tensor_mem* const mem = library_.create_mem_from_fd(
      context.handle, memory->fd.get(), memory->mapping.data(),
      static_cast<uint32_t>(bytes), static_cast<int32_t>(from));
  if (mem == nullptr) {
    return Error{Code::kResourceExhausted,
                 "rknn_create_mem_from_fd of the vendor's library gives NULL"};
  }
  context.memories.push_back({mem, std::move(memory)});
  return mem;
}

Expected<void> HostedModel::Bind(Context& context, const RunRecord& record,
                                 uint32_t tensor, const Memories& memories) {
  const BoundTensor& bound = record.tensors[tensor];
  const bool is_input = tensor < record.inputs;
  const ShapeRow& row = rows_[record.program];
  const uint32_t index = is_input ? tensor : tensor - record.inputs;
  rknn_tensor_attr attribute =
      is_input ? (bound.native != 0 ? row.native_inputs : row.inputs)[index]
               : (bound.native != 0 ? row.native_outputs : row.outputs)[index];
  attribute.type = static_cast<rknn_tensor_type>(bound.type);
  attribute.fmt = static_cast<rknn_tensor_format>(bound.layout);
  attribute.pass_through = static_cast<uint8_t>(bound.pass_through);
  attribute.h_stride = bound.h_stride;
  Expected<rknn_tensor_mem*> mem =
      MakeMemory(context, bound.memory, bound.offset, bound.bytes, memories);
  if (!mem.ok()) return std::move(mem).error();
  const int code = library_.set_io_mem(context.handle, *mem, &attribute);
  if (code >= 0) return {};
  Error error = Library::Failure("rknn_set_io_mem", code);
  error.message += std::string(" for ") + (is_input ? "input" : "output") +
                   " '" + attribute.name + "'";
  return error;
}

Expected<void> HostedModel::BindInternal(Context& context,
                                         const RunRecord& record,
                                         const Memories& memories) {
  if (about_.internal_outside == 0 || about_.internal_bytes == 0) return {};
  Expected<rknn_tensor_mem*> mem =
      MakeMemory(context, record.internal, record.internal_offset,
                 about_.internal_bytes, memories);
  if (!mem.ok()) return std::move(mem).error();
  const int code = library_.set_internal_mem(context.handle, *mem);
  if (code < 0) return Library::Failure("rknn_set_internal_mem", code);
  return {};
}

void HostedModel::LetGo(Context& context, std::vector<BoundMemory>& memories) {
  for (const BoundMemory& bound : memories) {
    library_.destroy_mem(context.handle, bound.mem);
  }
  memories.clear();
}

Expected<void> HostedModel::Rebind(Context& context, const RunRecord& record,
                                   const Memories& memories) {
  base::MutexLock lock(calls_);
  context.is_bound = false;
  if (context.handle == 0) {
    if (Expected<void> made = MakeContext(context); !made.ok()) return made;
  }
  if (record.core_mask != context.core_mask &&
      library_.set_core_mask != nullptr) {
    const int code = library_.set_core_mask(
        context.handle, static_cast<rknn_core_mask>(record.core_mask));
    // SoCs of one core have no mask.
    if (code < 0 && cores_ > 1) {
      return Library::Failure("rknn_set_core_mask", code);
    }
    context.core_mask = record.core_mask;
  }
  if (about_.rows > 1 && record.program != context.program) {
    if (Expected<void> set = SetShape(context.handle, record.program); !set) {
      return set;
    }
    context.program = record.program;
  }
  // The library has the new memory before the old is gone.
  std::vector<BoundMemory> old;
  old.swap(context.memories);
  Expected<void> bound = BindInternal(context, record, memories);
  for (uint32_t i = 0; i < record.inputs + record.outputs && bound.ok(); ++i) {
    bound = Bind(context, record, i, memories);
  }
  LetGo(context, old);
  if (!bound.ok()) {
    LetGo(context, context.memories);
    return bound;
  }
  context.is_bound = true;
  return {};
}

Expected<void> HostedModel::Run(uint32_t lane, uint32_t set,
                                const RunRecord* record,
                                const Memories& memories) {
  LaneContexts& contexts = lanes_[lane];
  Expected<void> ran = RunOn(contexts, set, record, memories);
  if (contexts.has_forgotten.load()) DropForgotten(contexts);
  return ran;
}

Expected<void> HostedModel::RunOn(LaneContexts& lane, uint32_t set,
                                  const RunRecord* record,
                                  const Memories& memories) {
  base::MutexLock running(lane.mutex);
  Context& context = lane.sets[set];
  if (record != nullptr) {
    if (Expected<void> bound = Rebind(context, *record, memories); !bound) {
      return bound;
    }
  }
  if (!context.is_bound) {
    return Error{Code::kInternal, "a job names a set that nothing is bound to"};
  }
  const int code = library_.run(context.handle, nullptr);
  if (code < 0) return Library::Failure("rknn_run", code);
  return {};
}

void HostedModel::DropForgotten() {
  for (LaneContexts& lane : lanes_) {
    lane.has_forgotten = true;
    DropForgotten(lane);
  }
}

void HostedModel::DropForgotten(LaneContexts& lane) {
  if (!lane.mutex.TryLock()) return;
  lane.has_forgotten = false;
  for (Context& context : lane.sets) {
    const bool has_forgotten =
        std::any_of(context.memories.begin(), context.memories.end(),
                    [](const BoundMemory& bound) {
                      return bound.memory->forgotten.load();
                    });
    if (!has_forgotten) continue;
    base::MutexLock lock(calls_);
    LetGo(context, context.memories);
    context.is_bound = false;
  }
  lane.mutex.unlock();
}

Expected<void> HostedModel::CopyWeights(const NamedMemory& memory,
                                        uint64_t offset) {
  if (library_.set_weight_mem == nullptr) {
    return Error{Code::kUnimplemented,
                 "this version of the vendor's library has no "
                 "rknn_set_weight_mem"};
  }
  if (about_.weight_bytes == 0) return {};
  if (offset > memory.size || memory.size - offset < about_.weight_bytes ||
      memory.offset + offset > std::numeric_limits<int32_t>::max()) {
    return Error{Code::kOutOfRange, "the memory has no room for the model's " +
                                        std::to_string(about_.weight_bytes) +
                                        " bytes of weights"};
  }
  base::MutexLock lock(calls_);
  // The library fills what a context is given for its weights.
  Expected<rknn_context> context =
      Init(RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY | RKNN_FLAG_MEM_ALLOC_OUTSIDE);
  if (!context.ok()) return std::move(context).error();
  rknn_tensor_mem* const mem = library_.create_mem_from_fd(
      *context, memory.fd.get(), memory.mapping.data(), about_.weight_bytes,
      static_cast<int32_t>(memory.offset + offset));
  int code = RKNN_ERR_MALLOC_FAIL;
  if (mem != nullptr) {
    code = library_.set_weight_mem(*context, mem);
    library_.destroy_mem(*context, mem);
  }
  library_.destroy(*context);
  if (code < 0) return Library::Failure("rknn_set_weight_mem", code);
  return {};
}

}  // namespace rknnd::rknnrt
