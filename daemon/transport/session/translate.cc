// Called on the loop with core's answers and with decoded messages whose
// values nobody has checked.

#include "daemon/transport/session/translate.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd::transport {
namespace {

wire::TensorAttr ToTensorAttr(const driver::TensorAttr& attr) {
  wire::TensorAttr out{};
  wire::SetText(out.name, attr.name);
  out.dims_count =
      static_cast<pb_size_t>(std::min(attr.dims.size(), std::size(out.dims)));
  std::copy_n(attr.dims.begin(), out.dims_count, out.dims);
  out.elements = attr.elements;
  out.size = attr.size;
  out.size_with_stride = attr.size_with_stride;
  out.layout = static_cast<uint32_t>(attr.layout);
  out.type = static_cast<uint32_t>(attr.type);
  out.quantization = static_cast<uint32_t>(attr.quantization);
  out.zero_point = attr.zero_point;
  out.scale = attr.scale;
  out.w_stride = attr.w_stride;
  return out;
}

std::vector<wire::TensorAttr> ToTensorAttrs(
    const std::vector<driver::TensorAttr>& attrs) {
  std::vector<wire::TensorAttr> out;
  out.reserve(attrs.size());
  for (const driver::TensorAttr& attr : attrs)
    out.push_back(ToTensorAttr(attr));
  return out;
}

// The native attributes with their channels last: those of the API's own view
// with the element type that the device uses. Only 4-D tensors have the form.
std::vector<wire::TensorAttr> ToNativeNhwc(
    const std::vector<driver::TensorAttr>& attrs,
    const std::vector<driver::TensorAttr>& natives) {
  std::vector<wire::TensorAttr> out;
  out.reserve(natives.size());
  for (size_t i = 0; i < natives.size(); ++i) {
    const driver::TensorAttr& native = natives[i];
    if (native.layout == driver::TensorLayout::kNhwc || i >= attrs.size() ||
        attrs[i].dims.size() != 4) {
      out.push_back(ToTensorAttr(native));
      continue;
    }
    driver::TensorAttr attr = attrs[i];
    if (attr.layout == driver::TensorLayout::kNchw) {
      const std::vector<uint32_t> nchw = attr.dims;
      attr.dims = {nchw[0], nchw[2], nchw[3], nchw[1]};
      attr.layout = driver::TensorLayout::kNhwc;
      attr.w_stride = 0;
    }
    attr.type = native.type;
    attr.size = attr.elements * driver::ElementSize(native.type);
    attr.size_with_stride = attr.size;
    out.push_back(ToTensorAttr(attr));
  }
  return out;
}

wire::InputShape ToInputShape(const driver::TensorAttr& attr) {
  wire::InputShape shape{};
  shape.dims_count =
      static_cast<pb_size_t>(std::min(attr.dims.size(), std::size(shape.dims)));
  std::copy_n(attr.dims.begin(), shape.dims_count, shape.dims);
  shape.layout = static_cast<uint32_t>(attr.layout);
  return shape;
}

// Memory for `largest` is to do for `other` too: a row may have a smaller image
// and a longer text.
void Cover(const driver::TensorAttr& other, driver::TensorAttr& largest) {
  largest.size_with_stride =
      std::max(largest.size_with_stride, other.size_with_stride);
}

void TakeLarger(const driver::TensorAttr& other, driver::TensorAttr& largest) {
  const uint64_t bytes =
      std::max(largest.size_with_stride, other.size_with_stride);
  if (other.elements > largest.elements) largest = other;
  largest.size_with_stride = bytes;
}

// All but what is the model's as a whole.
wire::ContextInfo ToRowInfo(const driver::ProgramInfo& program) {
  wire::ContextInfo info;
  info.inputs = ToTensorAttrs(program.inputs);
  info.outputs = ToTensorAttrs(program.outputs);
  info.native_inputs = ToTensorAttrs(program.native_inputs);
  info.native_outputs = ToTensorAttrs(program.native_outputs);
  info.native_nhwc_inputs = ToNativeNhwc(program.inputs, program.native_inputs);
  info.native_nhwc_outputs =
      ToNativeNhwc(program.outputs, program.native_outputs);
  info.internal_size = program.internal_size;
  info.batch = program.batch;
  return info;
}

}  // namespace

std::string VerbName(wire::Verb verb) {
  switch (verb) {
    case wire::Verb::kHello:
      return "Hello";
    case wire::Verb::kCreateContext:
      return "CreateContext";
    case wire::Verb::kUploadModel:
      return "UploadModel";
    case wire::Verb::kDestroyContext:
      return "DestroyContext";
    case wire::Verb::kSetCoreMask:
      return "SetCoreMask";
    case wire::Verb::kSetShapes:
      return "SetShapes";
    case wire::Verb::kBind:
      return "Bind";
    case wire::Verb::kSetInternalMemory:
      return "SetInternalMemory";
    case wire::Verb::kSetWeightMemory:
      return "SetWeightMemory";
    case wire::Verb::kImportPhysical:
      return "ImportPhysical";
    case wire::Verb::kBindFrame:
      return "BindFrame";
    case wire::Verb::kAllocateBuffer:
      return "AllocateBuffer";
    case wire::Verb::kImportBuffer:
      return "ImportBuffer";
    case wire::Verb::kReleaseBuffer:
      return "ReleaseBuffer";
    case wire::Verb::kMemorySize:
      return "MemorySize";
    case wire::Verb::kPerfDetail:
      return "PerfDetail";
    case wire::Verb::kReport:
      return "Report";
    case wire::Verb::kDump:
      return "Dump";
    case wire::Verb::kSyncBuffer:
      return "SyncBuffer";
    case wire::Verb::kDrain:
      return "Drain";
    case wire::Verb::kUndoDrain:
      return "UndoDrain";
    case wire::Verb::kQuarantine:
      return "Quarantine";
    case wire::Verb::kSetFault:
      return "SetFault";
    case wire::Verb::kListFaults:
      return "ListFaults";
    case wire::Verb::kClearFault:
      return "ClearFault";
    case wire::Verb::kRegisterFence:
      return "RegisterFence";
    case wire::Verb::kReleaseFence:
      return "ReleaseFence";
    case wire::Verb::kSetQueue:
      return "SetQueue";
    case wire::Verb::kAdmit:
      return "Admit";
    case wire::Verb::kTrace:
      return "Trace";
    case wire::Verb::kLease:
      return "Lease";
    case wire::Verb::kBufferKey:
      return "BufferKey";
    case wire::Verb::kDoctor:
      return "Doctor";
    case wire::Verb::kClocks:
      return "Clocks";
    case wire::Verb::kFollowLogs:
      return "FollowLogs";
    case wire::Verb::kReset:
      return "Reset";
    case wire::Verb::kSetLogLevel:
      return "SetLogLevel";
    case wire::Verb::kPinClocks:
      return "PinClocks";
    case wire::Verb::kOpenShareSocket:
      return "OpenShareSocket";
    case wire::Verb::kCloseShareSocket:
      return "CloseShareSocket";
    case wire::Verb::kLogLine:
      return "LogLine";
    case wire::Verb::kLogEvent:
      return "LogEvent";
  }
  return absl::StrCat("verb ", static_cast<uint16_t>(verb));
}

absl::StatusOr<wire::ContextInfo> ToContextInfo(
    const driver::ModelInfo& model) {
  if (model.programs.empty()) {
    return absl::InternalError(
        absl::StrCat("model '", model.name, "' has no program"));
  }
  if (model.programs.size() == 1) {
    wire::ContextInfo info = ToContextInfo(core::ShapeChoice{&model, 0});
    info.custom_operators = model.custom_operators;
    return info;
  }
  // Without layers and tensors: there may be many, and this is the loop.
  const driver::ProgramInfo& first = model.programs[model.largest];
  driver::ProgramInfo largest;
  largest.inputs = first.inputs;
  largest.outputs = first.outputs;
  largest.native_inputs = first.native_inputs;
  largest.native_outputs = first.native_outputs;
  largest.batch = first.batch;
  std::vector<wire::InputShape> shapes;
  for (const driver::ProgramInfo& row : model.programs) {
    largest.internal_size = std::max(largest.internal_size, row.internal_size);
    for (size_t i = 0; i < row.inputs.size(); ++i) {
      shapes.push_back(ToInputShape(row.inputs[i]));
      Cover(row.inputs[i], largest.inputs[i]);
      if (i < row.native_inputs.size()) {
        Cover(row.native_inputs[i], largest.native_inputs[i]);
      }
    }
    for (size_t i = 0; i < row.outputs.size(); ++i) {
      TakeLarger(row.outputs[i], largest.outputs[i]);
      if (i < row.native_outputs.size()) {
        TakeLarger(row.native_outputs[i], largest.native_outputs[i]);
      }
    }
  }
  wire::ContextInfo info = ToRowInfo(largest);
  info.weight_size = model.weight_size;
  info.custom_string = model.custom_string;
  info.shapes = std::move(shapes);
  return info;
}

wire::ContextInfo ToContextInfo(const core::ShapeChoice& choice) {
  wire::ContextInfo info = ToRowInfo(choice.model->programs[choice.row]);
  info.weight_size = choice.model->weight_size;
  info.custom_string = choice.model->custom_string;
  return info;
}

absl::StatusOr<std::vector<core::InputShape>> ToInputShapes(
    const wire::SetShapes& message) {
  std::vector<core::InputShape> shapes;
  shapes.reserve(message.shapes.size());
  for (const wire::InputShape& shape : message.shapes) {
    if (shape.layout >= driver::kTensorLayoutCount) {
      return absl::InvalidArgumentError(absl::StrCat(
          "layout '", shape.layout, "' of input ", shapes.size(),
          " of context '", message.context, "' is no tensor layout"));
    }
    core::InputShape& added = shapes.emplace_back();
    added.dims.assign(shape.dims, shape.dims + shape.dims_count);
    added.layout = static_cast<driver::TensorLayout>(shape.layout);
  }
  return shapes;
}

absl::StatusOr<core::QueueRequest> ToQueueRequest(
    const wire::SetQueue& message) {
  if (message.max_age_ns >
      static_cast<uint64_t>(std::numeric_limits<base::Nanoseconds>::max())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_age_ns '", message.max_age_ns, "' of the queue of context '",
        message.context, "' is too large"));
  }
  core::QueueRequest request;
  request.context = message.context;
  // Any number: core says which it knows.
  request.policy = static_cast<core::QueuePolicy>(message.policy);
  request.depth = message.depth;
  request.max_age = static_cast<base::Nanoseconds>(message.max_age_ns);
  return request;
}

absl::StatusOr<core::BindRequest> ToBindRequest(const wire::Bind& message) {
  if (message.type >= driver::kTensorTypeCount) {
    return absl::InvalidArgumentError(
        absl::StrCat("type '", message.type, "' of context '", message.context,
                     "' is no tensor type"));
  }
  if (message.layout >= driver::kTensorLayoutCount) {
    return absl::InvalidArgumentError(
        absl::StrCat("layout '", message.layout, "' of context '",
                     message.context, "' is no tensor layout"));
  }
  core::BindRequest request;
  request.context = message.context;
  request.direction =
      message.output ? driver::Direction::kOutput : driver::Direction::kInput;
  request.index = message.index;
  request.buffer = message.buffer;
  request.offset = message.offset;
  request.size = message.size;
  request.format.type = static_cast<driver::TensorType>(message.type);
  request.format.layout = static_cast<driver::TensorLayout>(message.layout);
  request.format.pass_through = message.pass_through;
  request.format.w_stride = message.w_stride;
  request.format.h_stride = message.h_stride;
  request.set = message.set;
  return request;
}

absl::StatusOr<core::FrameRequest> ToFrameRequest(
    const wire::BindFrame& message) {
  core::FrameRequest request;
  if (message.planes_count > request.planes.size() ||
      message.pad.size > request.format.pad.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the frame for context '", message.context, "' has ",
                     message.planes_count, " planes and a pad colour of ",
                     message.pad.size, " bytes"));
  }
  request.context = message.context;
  request.index = message.index;
  driver::FrameFormat& format = request.format;
  format.pixels = static_cast<driver::PixelFormat>(message.format);
  format.width = message.width;
  format.height = message.height;
  format.crop_x = message.crop_x;
  format.crop_y = message.crop_y;
  format.crop_width = message.crop_width;
  format.crop_height = message.crop_height;
  format.fit = static_cast<driver::FrameFit>(message.fit);
  std::copy_n(message.pad.bytes, message.pad.size, format.pad.begin());
  format.bgr_input = message.bgr_input;
  for (size_t p = 0; p < message.planes_count; ++p) {
    const auto& plane = message.planes[p];
    request.planes[p] = {plane.buffer, plane.offset, plane.size};
    format.stride[p] = plane.stride;
  }
  request.set = message.set;
  return request;
}

absl::StatusOr<driver::Fault> ToFault(const wire::Fault& message) {
  const auto kind = driver::FaultKindOf(message.kind);
  if (!kind.ok()) return kind.status();
  driver::Fault fault;
  fault.kind = *kind;
  if (message.has_core) fault.core = message.core;
  fault.model = message.model;
  fault.after = message.after;
  fault.every = message.every;
  fault.times = message.times;
  fault.ms = message.ms;
  fault.factor = message.factor;
  fault.bytes = message.bytes;
  if (message.has_status) fault.status = message.status;
  return fault;
}

wire::FaultReport ToFaultReport(const driver::FaultReport& report) {
  const driver::Fault& fault = report.fault;
  wire::FaultReport out{};
  out.id = report.id;
  out.matched = report.matched;
  out.fired = report.fired;
  out.has_fault = true;
  wire::SetText(out.fault.kind, driver::NameOf(fault.kind));
  out.fault.has_core = fault.core.has_value();
  out.fault.core = fault.core.value_or(0);
  wire::SetText(out.fault.model, fault.model);
  out.fault.after = fault.after;
  out.fault.every = fault.every;
  out.fault.times = fault.times;
  out.fault.ms = fault.ms;
  out.fault.factor = fault.factor;
  out.fault.bytes = fault.bytes;
  out.fault.has_status = fault.status.has_value();
  out.fault.status = fault.status.value_or(0);
  return out;
}

absl::StatusOr<uint32_t> ChooseProtocol(const wire::Hello& hello,
                                        std::string_view daemon_version) {
  if (hello.protocol_min == 0 || hello.protocol_min > hello.protocol_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("protocol: the range ", hello.protocol_min, "..",
                     hello.protocol_max, " is none"));
  }
  if (hello.protocol_min <= wire::kProtocolCurrent &&
      hello.protocol_max >= wire::kProtocolMinimum) {
    return std::min(hello.protocol_max, wire::kProtocolCurrent);
  }
  const bool client_is_older = hello.protocol_max < wire::kProtocolMinimum;
  return absl::FailedPreconditionError(absl::StrCat(
      "protocol: this client, rknnd ", Printable(hello.client_version),
      ", speaks ", client_is_older ? hello.protocol_max : hello.protocol_min,
      ", board rknnd ", std::string(daemon_version), " speaks ",
      wire::kProtocolMinimum, "..", wire::kProtocolCurrent, "; update the ",
      client_is_older ? "client" : "board", " side"));
}

}  // namespace rknnd::transport
