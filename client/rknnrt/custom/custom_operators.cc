#include "client/rknnrt/custom/custom_operators.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "base/posix/clock.h"
#include "client/rknnrt/custom/opencl.h"
#include "client/rknnrt/runtime.h"
#include "client/rknnrt/tensor.h"
#include "client/target/model_source.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr size_t kImageAxes = 4;

// Operators that are alive, by the number in their op context: a program may
// hold one for longer.
struct LiveOperators {
  base::Mutex mutex;
  std::map<uint64_t, const custom::Operator*> by_number RKNND_GUARDED_BY(mutex);
  uint64_t newest RKNND_GUARDED_BY(mutex) = 0;
};
LiveOperators& Live() {
  static auto* const live = new LiveOperators;
  return *live;
}

uint64_t ElementsOf(const custom::Tensor& tensor) {
  uint64_t elements = 1;
  for (const uint32_t dim : tensor.dims) elements *= dim;
  return elements;
}

}  // namespace

std::string_view TypeOf(const rknn_custom_op& op) {
  return {op.op_type, strnlen(op.op_type, sizeof op.op_type)};
}

const rknn_custom_op* FindOperator(const std::vector<rknn_custom_op>& ops,
                                   std::string_view type) {
  for (const rknn_custom_op& op : ops) {
    if (TypeOf(op) == type) return &op;
  }
  return nullptr;
}

struct CustomOperators::Node {
  const custom::Operator* note = nullptr;
  const rknn_custom_op* op = nullptr;  // null: nobody has registered it
  rknn_custom_op_context context = {};
  std::vector<rknn_custom_op_tensor> inputs, outputs;
  std::unique_ptr<GpuKernel> gpu;  // of an operator for a GPU
  bool begun = false;
  base::Nanoseconds took = 0;  // in the last run
};

struct CustomOperators::Part {
  uint32_t context = 0;  // of the target; 0: it has nothing to do
  // What its ports are bound to, those in between left out.
  std::vector<Binding> inputs, outputs;
};

CustomOperators::CustomOperators(std::shared_ptr<Target> target,
                                 custom::Model model,
                                 std::shared_ptr<ModelSource> source,
                                 std::vector<rknn_custom_op> ops)
    : target_(std::move(target)),
      model_(std::move(model)),
      source_(std::move(source)),
      ops_(std::move(ops)) {}

CustomOperators::~CustomOperators() { End(); }

Expected<std::shared_ptr<CustomOperators>> CustomOperators::Make(
    const std::shared_ptr<Target>& target, uint32_t flags,
    const std::shared_ptr<ModelSource>& source, custom::Model model,
    std::vector<rknn_custom_op> ops) {
  std::shared_ptr<CustomOperators> made(
      new CustomOperators(target, std::move(model), source, std::move(ops)));
  if (Expected<void> tensors = made->MakeTensors(); !tensors.ok()) {
    return std::move(tensors).error();
  }
  if (Expected<void> parts = made->MakeParts(flags); !parts.ok()) {
    return std::move(parts).error();
  }
  made->MakeNodes();
  return made;
}

Expected<void> CustomOperators::MakeTensors() {
  for (const custom::Tensor& tensor : model_.tensors) {
    const uint64_t bytes = ElementsOf(tensor) * ElementSize(tensor.type);
    if (tensor.dims.size() > RKNN_MAX_DIMS || bytes > UINT32_MAX) {
      return Error{Code::kUnimplemented,
                   "the tensor '" + tensor.name +
                       "' beside a custom operator is larger than the API has "
                       "numbers for"};
    }
    Expected<std::unique_ptr<Buffer>> buffer =
        Buffer::Allocate(target_, std::max<uint64_t>(bytes, 1), 0);
    if (!buffer.ok()) return std::move(buffer).error();
    tensors_.push_back(*std::move(buffer));
  }
  return {};
}

Expected<void> CustomOperators::MakeParts(uint32_t flags) {
  const base::MutexLock lock(mutex_);
  base::CustomOperatorsOption option;
  for (const rknn_custom_op& op : ops_) option.types.emplace_back(TypeOf(op));
  for (uint32_t p = 0; p < model_.parts.size(); ++p) {
    Part& part = parts_.emplace_back();
    if (model_.parts[p].outputs.empty()) continue;
    option.part = p;
    Expected<std::shared_ptr<ModelSource>> own =
        ModelSource::ForCustomOperators(source_, option);
    if (!own.ok()) return std::move(own).error();
    std::shared_ptr<const ModelDescription> description;
    // A handle of its own, which no program gets: numbers are the target's.
    Expected<uint32_t> handle = Runtime::Get().AddContext(
        [&](uint32_t number) -> Expected<std::shared_ptr<Context>> {
          ContextRequest request;
          request.number = number;
          request.flags = flags;
          auto described = target_->CreateContext(request, *own);
          if (!described.ok()) return std::move(described).error();
          description = *described;
          return std::make_shared<Context>(number, flags, target_,
                                           *std::move(described));
        });
    if (!handle.ok()) return std::move(handle).error();
    part.context = *handle;
    for (const Direction direction : {Direction::kInput, Direction::kOutput}) {
      const bool reads = direction == Direction::kInput;
      const std::vector<custom::Port>& ports =
          reads ? model_.parts[p].inputs : model_.parts[p].outputs;
      (reads ? part.inputs : part.outputs).resize(ports.size());
      for (uint32_t i = 0; i < ports.size(); ++i) {
        if (!ports[i].between) continue;
        const Buffer& buffer = *tensors_[ports[i].index];
        Binding binding;
        binding.buffer = buffer.number();
        binding.size = buffer.size();
        binding.type = model_.tensors[ports[i].index].type;
        const std::vector<TensorAttr>& attrs =
            reads ? description->inputs : description->outputs;
        if (i >= attrs.size()) {
          return Error{Code::kDataLoss,
                       "a part of the model has other ports than it has"};
        }
        binding.layout = attrs[i].dims_count == kImageAxes
                             ? RKNN_TENSOR_NCHW
                             : RKNN_TENSOR_UNDEFINED;
        if (Expected<void> bound =
                target_->Bind(part.context, direction, i, binding);
            !bound.ok()) {
          return bound;
        }
      }
    }
  }
  return {};
}

void CustomOperators::MakeNodes() {
  const base::MutexLock lock(mutex_);
  for (const custom::Operator& note : model_.operators) {
    auto node = std::make_unique<Node>();
    node->note = &note;
    node->op = FindOperator(ops_, note.type);
    node->context.target = RKNN_TARGET_TYPE_CPU;
    for (uint32_t i = 0; i < note.inputs.size(); ++i) {
      node->inputs.push_back(TensorOf(note.inputs[i], i));
    }
    for (uint32_t i = 0; i < note.outputs.size(); ++i) {
      node->outputs.push_back(TensorOf(note.outputs[i], i));
    }
    LiveOperators& live = Live();
    const base::MutexLock live_lock(live.mutex);
    node->context.internal_ctx =
        static_cast<rknn_custom_op_interal_context>(++live.newest);
    live.by_number.emplace(live.newest, &note);
    nodes_.push_back(std::move(node));
  }
}

rknn_custom_op_tensor CustomOperators::TensorOf(uint32_t number,
                                                uint32_t index) const {
  const custom::Tensor& note = model_.tensors[number];
  const Buffer& buffer = *tensors_[number];
  rknn_custom_op_tensor tensor = {};
  rknn_tensor_attr& attr = tensor.attr;
  attr.index = index;
  attr.n_dims = static_cast<uint32_t>(note.dims.size());
  std::copy(note.dims.begin(), note.dims.end(), attr.dims);
  const size_t name = std::min(note.name.size(), sizeof attr.name - 1);
  std::memcpy(attr.name, note.name.data(), name);
  attr.n_elems = static_cast<uint32_t>(ElementsOf(note));
  attr.size = attr.size_with_stride =
      attr.n_elems * static_cast<uint32_t>(ElementSize(note.type));
  attr.fmt =
      note.dims.size() == kImageAxes ? RKNN_TENSOR_NCHW : RKNN_TENSOR_UNDEFINED;
  attr.type = static_cast<rknn_tensor_type>(note.type);
  attr.qnt_type = RKNN_TENSOR_QNT_NONE;
  attr.scale = 1;
  tensor.mem.virt_addr = buffer.bytes().data();
  tensor.mem.fd = buffer.fd();
  tensor.mem.size = static_cast<uint32_t>(buffer.size());
  return tensor;
}

int CustomOperators::Call(Node& node, Callback callback) {
  const auto function = callback == Callback::kInit      ? node.op->init
                        : callback == Callback::kPrepare ? node.op->prepare
                                                         : node.op->compute;
  if (function == nullptr) return 0;
  const std::thread::id before = calling_.exchange(std::this_thread::get_id());
  struct Back {
    std::atomic<std::thread::id>& calling;
    std::thread::id before;
    ~Back() { calling = before; }
  } const back{calling_, before};
  return function(&node.context, node.inputs.data(),
                  static_cast<uint32_t>(node.inputs.size()),
                  node.outputs.data(),
                  static_cast<uint32_t>(node.outputs.size()));
}

Expected<void> CustomOperators::BuildKernel(Node& node) {
  if (node.op->target != RKNN_TARGET_TYPE_GPU) return {};
  Expected<std::unique_ptr<GpuKernel>> built = GpuKernel::Build(*node.op);
  if (!built.ok()) {
    return Error{built.error().code, "operator '" + node.note->type +
                                         "' of node '" + node.note->name +
                                         "': " + built.error().message};
  }
  node.gpu = *std::move(built);
  node.context.target = RKNN_TARGET_TYPE_GPU;
  node.context.gpu_ctx = node.gpu->handles();
  return {};
}

Expected<void> CustomOperators::Begin() {
  const base::MutexLock lock(mutex_);
  for (const std::unique_ptr<Node>& node : nodes_) {
    if (node->op == nullptr) continue;
    if (Expected<void> built = BuildKernel(*node); !built.ok()) return built;
    const int code = Call(*node, Callback::kInit);
    node->begun = code == 0;
    if (code == 0) continue;
    if (code == RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE && node->note->is_known) {
      declined_.emplace_back(node->note->type);
      continue;
    }
    return Error{Code::kUnknown,
                 "operator '" + node->note->type + "' of node '" +
                     node->note->name + "': its init callback returned " +
                     std::to_string(code) +
                     (code == RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE
                          ? ", and rknnd has no such operator itself"
                          : "")};
  }
  return {};
}

Expected<void> CustomOperators::Compute(Node& node) {
  const std::string name =
      "operator '" + node.note->type + "' of node '" + node.note->name + "'";
  if (node.op == nullptr) {
    return Error{Code::kUnimplemented,
                 name +
                     " has nobody who computes it: register it with "
                     "rknn_register_custom_ops, or install its plug-in"};
  }
  for (const uint32_t number : node.note->inputs) {
    tensors_[number]->BeginCpuAccess(CpuAccess::kRead);
  }
  for (const uint32_t number : node.note->outputs) {
    tensors_[number]->BeginCpuAccess(CpuAccess::kWrite);
  }
  const char* step = "prepare";
  int code = Call(node, Callback::kPrepare);
  if (code == 0) {
    step = "compute";
    code = Call(node, Callback::kCompute);
  }
  for (const uint32_t number : node.note->outputs) {
    tensors_[number]->EndCpuAccess(CpuAccess::kWrite);
  }
  for (const uint32_t number : node.note->inputs) {
    tensors_[number]->EndCpuAccess(CpuAccess::kRead);
  }
  if (code == 0) return {};
  return Error{Code::kUnknown, name + ": its " + step + " callback returned " +
                                   std::to_string(code)};
}

Expected<void> CustomOperators::BindPart(Part& part,
                                         const RunBindings& bindings) {
  const custom::Part& note =
      model_.parts[static_cast<size_t>(&part - parts_.data())];
  for (const Direction direction : {Direction::kInput, Direction::kOutput}) {
    const bool reads = direction == Direction::kInput;
    const std::vector<custom::Port>& ports = reads ? note.inputs : note.outputs;
    const std::vector<Binding>& wanted =
        reads ? bindings.inputs : bindings.outputs;
    std::vector<Binding>& bound = reads ? part.inputs : part.outputs;
    for (uint32_t i = 0; i < ports.size(); ++i) {
      if (ports[i].between) continue;
      if (ports[i].index >= wanted.size()) {
        return Error{Code::kDataLoss,
                     "the parts of the model have other ports than it has"};
      }
      Binding binding = wanted[ports[i].index];
      binding.set = 0;
      if (bound[i] == binding) continue;
      if (Expected<void> done =
              target_->Bind(part.context, direction, i, binding);
          !done.ok()) {
        return done;
      }
      bound[i] = binding;
    }
  }
  return {};
}

Expected<RunReport> CustomOperators::Run(const RunRequest& request,
                                         const RunBindings& bindings) {
  const base::MutexLock lock(mutex_);
  if (ended_) {
    return Error{Code::kNotFound, "the context was destroyed meanwhile"};
  }
  RunReport sum;
  for (size_t p = 0; p < parts_.size(); ++p) {
    Part& part = parts_[p];
    if (part.context != 0) {
      if (Expected<void> bound = BindPart(part, bindings); !bound.ok()) {
        return std::move(bound).error();
      }
      RunRequest own;
      own.context = part.context;
      own.frame = request.frame;
      own.timeout_ms = request.timeout_ms;
      Expected<RunReport> report = target_->Run(own);
      if (!report.ok()) return report;
      sum.queue_ns += report->queue_ns;
      sum.run_ns += report->run_ns;
      sum.total_ns += report->total_ns;
      sum.core = report->core;
    }
    if (p == nodes_.size()) break;
    const base::MonotonicClock clock;
    const base::Nanoseconds begin = clock.Now();
    if (Expected<void> done = Compute(*nodes_[p]); !done.ok()) {
      return std::move(done).error();
    }
    nodes_[p]->took = clock.Now() - begin;
  }
  return sum;
}

Expected<std::string> CustomOperators::PerfText() {
  if (IsCalling()) {
    return Error{Code::kFailedPrecondition,
                 "a callback asks, and its run has not ended"};
  }
  const base::MutexLock lock(mutex_);
  std::string text;
  for (size_t p = 0; p < parts_.size(); ++p) {
    if (parts_[p].context != 0) {
      Expected<std::string> layers = target_->PerfDetail(parts_[p].context);
      if (!layers.ok()) return layers;
      text += "Part " + std::to_string(p + 1) + " of " +
              std::to_string(parts_.size()) + ":\n" + *layers + "\n";
    }
    if (p == nodes_.size()) break;
    const Node& node = *nodes_[p];
    text += "Custom operator '" + node.note->type + "' of node '" +
            node.note->name + "', in the program: " +
            std::to_string(node.took / base::kMicrosecond) + " us\n";
  }
  return text;
}

Expected<void> CustomOperators::SetCoreMask(uint32_t mask) {
  const base::MutexLock lock(mutex_);
  for (const Part& part : parts_) {
    if (part.context == 0) continue;
    if (Expected<void> set = target_->SetCoreMask(part.context, mask);
        !set.ok()) {
      return set;
    }
  }
  return {};
}

void CustomOperators::End() {
  const base::MutexLock lock(mutex_);
  if (std::exchange(ended_, true)) return;
  for (const std::unique_ptr<Node>& node : nodes_) {
    if (node->begun && node->op->destroy != nullptr) {
      const std::thread::id before =
          calling_.exchange(std::this_thread::get_id());
      node->op->destroy(&node->context);
      calling_ = before;
    }
    LiveOperators& live = Live();
    const base::MutexLock live_lock(live.mutex);
    live.by_number.erase(static_cast<uint64_t>(node->context.internal_ctx));
  }
  for (const Part& part : parts_) {
    if (part.context == 0) continue;
    // Whoever ends a context is not told of its parts.
    if (auto removed = Runtime::Get().RemoveContext(part.context);
        removed.ok()) {
      static_cast<void>((*removed)->Destroy().ok());
    }
  }
}

bool IsInCallback(const Context& context) {
  const std::shared_ptr<CustomOperators> custom = context.custom();
  return custom != nullptr && custom->IsCalling();
}

Outcome GetOperatorAttribute(const rknn_custom_op_context& op_context,
                             const char* name, rknn_custom_op_attr* attr) {
  LiveOperators& live = Live();
  const base::MutexLock lock(live.mutex);
  const auto found =
      live.by_number.find(static_cast<uint64_t>(op_context.internal_ctx));
  if (found == live.by_number.end()) {
    return Failure{{Code::kInvalidArgument,
                    "op_ctx is of no operator that lives: pass the one that "
                    "the callback was called with"},
                   Subject::kNone};
  }
  for (const custom::Attribute& attribute : found->second->attributes) {
    if (attribute.name != name) continue;
    std::strncpy(attr->name, name, sizeof attr->name - 1);
    attr->dtype = static_cast<rknn_tensor_type>(attribute.type);
    attr->n_elems = attribute.count;
    // The API has no const; nobody writes there.
    attr->data = const_cast<std::byte*>(attribute.data.data());
    return {};
  }
  return {};
}

}  // namespace rknnd::client
