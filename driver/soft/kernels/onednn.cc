// See onednn.h.

#include "driver/soft/kernels/onednn.h"

#include <bit>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/code_room.h"

namespace rknnd::soft {

const dnnl::engine& CpuEngine() {
  // Never destroyed: kernels may outlive static destruction.
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::memory::desc DescribeDense(std::span<const int64_t> dims) {
  dnnl::memory::dims sizes(dims.begin(), dims.end());
  if (sizes.empty()) sizes.push_back(1);
  dnnl::memory::dims strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d > 1; --d) {
    strides[d - 2] = strides[d - 1] * sizes[d - 1];
  }
  return {sizes, dnnl::memory::data_type::f32, strides};
}

namespace {

dnnl::memory::data_type TypeOf(DataType type) {
  using Type = dnnl::memory::data_type;
  switch (type) {
    case DataType::kInt8:
      return Type::s8;
    case DataType::kUint8:
      return Type::u8;
    case DataType::kInt32:
      return Type::s32;
    default:
      return Type::f32;
  }
}

// Dense or with the channels last.
dnnl::memory::desc DescribePlain(const TensorSpec& spec) {
  dnnl::memory::dims sizes(spec.shape.begin(), spec.shape.end());
  if (sizes.empty()) sizes.push_back(1);
  dnnl::memory::dims strides(sizes.size(), 1);
  const bool last = spec.channels_last();
  int64_t step = last ? sizes[1] : 1;
  for (size_t d = sizes.size(); d > 0; --d) {
    if (last && d - 1 == 1) continue;
    strides[d - 1] = step;
    step *= sizes[d - 1];
  }
  return {sizes, TypeOf(spec.type), strides};
}

}  // namespace

dnnl::memory::desc Describe(const TensorSpec& spec) {
  using Tag = dnnl::memory::format_tag;
  const int block = spec.placement.block;
  if (spec.type != DataType::kFloat32 || (block != 8 && block != 16)) {
    return DescribePlain(spec);
  }
  const bool wide = block == 16;
  Tag tag = Tag::undef;
  switch (spec.shape.size()) {
    case 3:
      tag = wide ? Tag::nCw16c : Tag::nCw8c;
      break;
    case 4:
      tag = wide ? Tag::nChw16c : Tag::nChw8c;
      break;
    case 5:
      tag = wide ? Tag::nCdhw16c : Tag::nCdhw8c;
      break;
    default:
      break;
  }
  return {dnnl::memory::dims(spec.shape.begin(), spec.shape.end()),
          dnnl::memory::data_type::f32, tag};
}

std::string ImplementationOf(const dnnl::primitive_desc_base& primitive) {
  return absl::StrCat("oneDNN ", primitive.impl_info_str());
}

bool IsGenerated(std::string_view implementation) {
  return implementation.find("jit") != std::string_view::npos ||
         implementation.find("brg") != std::string_view::npos;
}

absl::Status CheckCodeRoom(const NodeView& node) {
  const base::Expected<void> room = KeepCodeRoom();
  if (room.ok()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      node.node().type, " '", node.node().name, "': ", room.error().message,
      ". Load fewer models, end what is "
      "not needed, or raise vm.max_map_count"));
}

absl::Status DnnlError(const NodeView& node, const std::exception& error) {
  const std::string who =
      absl::StrCat(node.node().type, " '", node.node().name, "'");
  const auto* dnnl_error = dynamic_cast<const dnnl::error*>(&error);
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      (dnnl_error != nullptr &&
       (dnnl_error->status == dnnl_out_of_memory ||
        // Of its generators of code: what they mapped cannot be made runnable.
        dnnl_error->status == dnnl_runtime_error))) {
    // oneDNN remembers what others may wait for, and nobody makes any more.
    const int kept = dnnl::get_primitive_cache_capacity();
    dnnl::set_primitive_cache_capacity(0);
    dnnl::set_primitive_cache_capacity(kept);
    return absl::ResourceExhaustedError(absl::StrCat(who, ": out of memory"));
  }
  return absl::InternalError(
      absl::StrCat(who, ": oneDNN has no kernel for it: ", error.what()));
}

DnnlCall::DnnlCall(const dnnl::primitive& primitive,
                   const std::vector<DnnlArgument>& arguments)
    : primitive_(primitive) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].fixed == nullptr) {
      bound_.push_back(i);
    } else {
      fixed_.emplace_back(arguments[i].desc, CpuEngine(),
                          const_cast<void*>(arguments[i].fixed));
    }
  }
  for (Set& set : sets_) {
    set.stream = dnnl::stream(CpuEngine());
    size_t fixed = 0;
    for (const DnnlArgument& argument : arguments) {
      if (argument.fixed != nullptr) {
        set.arguments.push_back({argument.index, fixed_[fixed++].get()});
        continue;
      }
      set.memory.emplace_back(argument.desc, CpuEngine(),
                              static_cast<void*>(DNNL_MEMORY_NONE));
      set.arguments.push_back({argument.index, set.memory.back().get()});
    }
  }
}

DnnlCall::~DnnlCall() = default;

absl::Status DnnlCall::Run(std::span<void* const> data) const {
  uint32_t free = free_.load(std::memory_order_relaxed);
  for (;;) {
    if (free == 0) {  // more threads than cores: folding while cores run
      std::this_thread::yield();
      free = free_.load(std::memory_order_relaxed);
    } else if (free_.compare_exchange_weak(free, free & (free - 1),
                                           std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
      break;
    }
  }
  const auto index = static_cast<uint32_t>(std::countr_zero(free));
  const Set& set = sets_[index];
  dnnl_status_t status = dnnl_success;
  for (size_t i = 0; i < bound_.size() && status == dnnl_success; ++i) {
    status = dnnl_memory_set_data_handle_v2(set.arguments[bound_[i]].memory,
                                            data[i], set.stream.get());
  }
  if (status == dnnl_success) {
    status = dnnl_primitive_execute(primitive_.get(), set.stream.get(),
                                    static_cast<int>(set.arguments.size()),
                                    set.arguments.data());
  }
  if (status == dnnl_success) status = dnnl_stream_wait(set.stream.get());
  free_.fetch_or(1U << index, std::memory_order_release);
  if (status == dnnl_success) return absl::OkStatus();
  if (status == dnnl_out_of_memory) {
    return absl::ResourceExhaustedError("oneDNN: out of memory");
  }
  return absl::InternalError(
      absl::StrCat("oneDNN failed with status ", static_cast<int>(status)));
}

void ReorderNow(const dnnl::memory::desc& from_desc, const void* from,
                const dnnl::memory::desc& to_desc, void* to) {
  dnnl::memory source(from_desc, CpuEngine(), const_cast<void*>(from));
  dnnl::memory target(to_desc, CpuEngine(), to);
  dnnl::stream stream(CpuEngine());
  dnnl::reorder(source, target).execute(stream, source, target);
  stream.wait();
}

}  // namespace rknnd::soft
