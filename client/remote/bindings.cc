// See the header. Sizes are counted as the daemon counts them when it checks a
// binding (driver/soft/plan/io_port.cc).

#include "client/remote/bindings.h"

#include <algorithm>
#include <iterator>

#include "base/values/overflow.h"
#include "rknn_api.h"

namespace rknnd::client {
namespace {

uint64_t ElementSize(uint32_t type) {
  switch (type) {
    case RKNN_TENSOR_INT8:
    case RKNN_TENSOR_UINT8:
    case RKNN_TENSOR_BOOL:
      return 1;
    case RKNN_TENSOR_FLOAT16:
    case RKNN_TENSOR_INT16:
    case RKNN_TENSOR_UINT16:
    case RKNN_TENSOR_BFLOAT16:
      return 2;
    case RKNN_TENSOR_FLOAT32:
    case RKNN_TENSOR_INT32:
    case RKNN_TENSOR_UINT32:
      return 4;
    case RKNN_TENSOR_INT64:
      return 8;
    default:
      return 0;
  }
}

// Extents of a 4-D tensor, in whichever order its dims are.
struct Extents {
  uint64_t batch, channels, height, width;
};

Extents ExtentsOf(const wire::TensorAttr& tensor) {
  const auto& dims = tensor.dims;
  if (tensor.layout == RKNN_TENSOR_NHWC) {
    return {dims[0], dims[3], dims[1], dims[2]};
  }
  return {dims[0], dims[1], dims[2], dims[3]};
}

// Numbers of the daemon's own making that it has checked; one that overflows is
// more than any buffer has.
class Product {
 public:
  Product(std::initializer_list<uint64_t> factors) {
    for (const uint64_t factor : factors) {
      const auto next = base::CheckedMultiply(value_, factor);
      value_ = next ? *next : UINT64_MAX;
    }
  }
  [[nodiscard]] uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 1;
};

// Rows of plane `index` of a frame; 0: it has no such plane.
uint64_t RowsOf(const wire::BindFrame& frame, size_t index) {
  // Half as many rows of colour as of brightness, where they lie apart.
  return index == 0 ? frame.height : (uint64_t{frame.height} + 1) / 2;
}

void Add(const wire::BindFrame& frame, const BoundPort& port,
         std::vector<BoundRange>* ranges) {
  for (size_t p = 0; p < frame.planes_count && p < port.memory.size(); ++p) {
    if (port.memory[p] == nullptr) continue;
    const rknnd_v1_FramePlane& plane = frame.planes[p];
    uint64_t size = plane.size;
    if (plane.stride != 0) {
      size = std::min(size, Product{plane.stride, RowsOf(frame, p)}.value());
    }
    ranges->push_back({plane.buffer, port.memory[p], plane.offset, size});
  }
}

}  // namespace

uint64_t TensorExtent(const wire::TensorAttr& tensor,
                      const wire::TensorAttr& native,
                      const wire::Bind& binding) {
  const uint64_t element = ElementSize(binding.type);
  if (tensor.dims_count != 4 || element == 0) {
    return element == 0 ? std::max(tensor.size, tensor.size_with_stride)
                        : Product{tensor.elements, element}.value();
  }
  const Extents extents = ExtentsOf(tensor);
  uint64_t group = 1;  // channels that lie side by side
  if (binding.layout == RKNN_TENSOR_NC1HWC2 &&
      (binding.output || binding.pass_through)) {
    if (native.dims_count == 5) group = std::max<uint64_t>(native.dims[4], 1);
  } else if (binding.layout != RKNN_TENSOR_NCHW) {
    group = std::max<uint64_t>(extents.channels, 1);
  }
  const uint64_t groups = (extents.channels + group - 1) / group;
  uint64_t stride = binding.w_stride;
  if (stride == 0) {
    stride = binding.pass_through && native.w_stride != 0 ? native.w_stride
                                                          : extents.width;
  }
  const uint64_t rows =
      binding.h_stride == 0 ? extents.height : binding.h_stride;
  const uint64_t whole =
      Product{extents.batch, groups, rows, stride, group, element}.value();
  // Nothing need follow the last row, nor the last of the last plane's rows.
  const uint64_t spare_rows = rows > extents.height ? rows - extents.height : 0;
  const uint64_t spare = stride > extents.width ? stride - extents.width : 0;
  const uint64_t unused = Product{spare_rows, stride, group, element}.value() +
                          Product{spare, group, element}.value();
  return whole > unused ? whole - unused : whole;
}

void Bindings::Created(uint32_t context, wire::ContextInfo info) {
  Context& made = contexts_[context];
  made = {};
  made.info = std::move(info);
}

void Bindings::ChoseShapes(uint32_t context, wire::ContextInfo info) {
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return;
  found->second.info = std::move(info);
  ++found->second.shapes;
}

void Bindings::Bound(const wire::Bind& request, const LocalBuffers& buffers) {
  const auto found = contexts_.find(request.context);
  if (found == contexts_.end()) return;
  auto& ports = found->second.sets[request.set];
  const Port port{request.output, request.index};
  const auto memory = buffers.find(request.buffer);
  if (memory == buffers.end()) {
    ports.erase(port);
    return;
  }
  ports[port] = std::make_shared<const BoundPort>(
      BoundPort{request, {memory->second, nullptr}});
}

void Bindings::BoundFrame(const wire::BindFrame& request,
                          const LocalBuffers& buffers) {
  const auto found = contexts_.find(request.context);
  if (found == contexts_.end()) return;
  BoundPort port{request, {}};
  for (size_t p = 0; p < request.planes_count && p < port.memory.size(); ++p) {
    const auto memory = buffers.find(request.planes[p].buffer);
    if (memory != buffers.end()) port.memory[p] = memory->second;
  }
  found->second.sets[request.set][{false, request.index}] =
      std::make_shared<const BoundPort>(std::move(port));
}

std::vector<BoundPortRef> Bindings::Of(uint32_t context, uint32_t set) const {
  std::vector<BoundPortRef> ports;
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return ports;
  static const std::map<Port, BoundPortRef> kNone;
  const auto& sets = found->second.sets;
  const auto first = sets.find(0);
  const auto own = sets.find(set);
  const auto& base = first == sets.end() ? kNone : first->second;
  const auto& over = own == sets.end() ? kNone : own->second;
  for (const auto& [port, bound] : base) {
    const auto other = over.find(port);
    ports.push_back(other == over.end() ? bound : other->second);
  }
  for (const auto& [port, bound] : over) {
    if (!base.contains(port)) ports.push_back(bound);
  }
  return ports;
}

uint32_t Bindings::shapes(uint32_t context) const {
  const auto found = contexts_.find(context);
  return found == contexts_.end() ? 0 : found->second.shapes;
}

Bindings::Ranges Bindings::RangesOf(
    uint32_t context, const std::vector<BoundPortRef>& ports) const {
  Ranges ranges;
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return ranges;
  const wire::ContextInfo& info = found->second.info;
  for (const BoundPortRef& port : ports) {
    if (const auto* frame = std::get_if<wire::BindFrame>(&port->request)) {
      Add(*frame, *port, &ranges.inputs);
      continue;
    }
    const auto& bind = std::get<wire::Bind>(port->request);
    const auto& tensors = bind.output ? info.outputs : info.inputs;
    const auto& natives =
        bind.output ? info.native_outputs : info.native_inputs;
    if (bind.index >= tensors.size()) continue;
    const wire::TensorAttr& tensor = tensors[bind.index];
    const wire::TensorAttr& native =
        bind.index < natives.size() ? natives[bind.index] : tensor;
    const uint64_t size =
        std::min(bind.size, TensorExtent(tensor, native, bind));
    (bind.output ? ranges.outputs : ranges.inputs)
        .push_back({bind.buffer, port->memory[0], bind.offset, size});
  }
  return ranges;
}

}  // namespace rknnd::client
