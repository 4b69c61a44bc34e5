// One pair of functions for each message: from nanopb's struct to ours and
// back.

#include "proto/wire/codec.h"

#include <cstring>
#include <utility>

#include "proto/wire/codec_fields.h"

namespace rknnd::wire {
namespace {

// Messages that are nanopb's structs as they are.
template <class Message>
struct Plain;

#define RKNND_PLAIN(name)                                                    \
  template <>                                                                \
  struct Plain<name> {                                                       \
    static const pb_msgdesc_t* fields() { return rknnd_v1_##name##_fields; } \
  }
RKNND_PLAIN(Hello);
RKNND_PLAIN(Welcome);
RKNND_PLAIN(Error);
RKNND_PLAIN(Empty);
RKNND_PLAIN(CreateContext);
RKNND_PLAIN(DestroyContext);
RKNND_PLAIN(SetCoreMask);
RKNND_PLAIN(AllocateBuffer);
RKNND_PLAIN(ImportBuffer);
RKNND_PLAIN(Buffer);
RKNND_PLAIN(ReleaseBuffer);
RKNND_PLAIN(Bind);
RKNND_PLAIN(BindFrame);
RKNND_PLAIN(SetMemory);
RKNND_PLAIN(ImportPhysical);
RKNND_PLAIN(MemorySizeRequest);
RKNND_PLAIN(MemorySize);
RKNND_PLAIN(PerfDetailRequest);
RKNND_PLAIN(DumpRequest);
RKNND_PLAIN(SyncBuffer);
RKNND_PLAIN(Fault);
RKNND_PLAIN(FaultReport);
RKNND_PLAIN(ClearFault);
RKNND_PLAIN(RegisterFence);
RKNND_PLAIN(ReleaseFence);
RKNND_PLAIN(SetQueue);
RKNND_PLAIN(Admit);
RKNND_PLAIN(Admission);
RKNND_PLAIN(Trace);
RKNND_PLAIN(TraceRequest);
RKNND_PLAIN(LeaseRequest);
RKNND_PLAIN(ShareSocket);
RKNND_PLAIN(CloseShareSocket);
RKNND_PLAIN(LogEvent);
RKNND_PLAIN(BufferKeyRequest);
RKNND_PLAIN(BufferKey);
RKNND_PLAIN(PinClocks);
RKNND_PLAIN(FollowLogs);
RKNND_PLAIN(LogLine);
RKNND_PLAIN(SetLogLevel);
RKNND_PLAIN(ResetRequest);
RKNND_PLAIN(QuarantineRequest);
#undef RKNND_PLAIN

// The text of a nanopb string; what came from a peer has an end (nanopb
// refuses a longer one), what a caller filled might not.
template <size_t N>
std::string TextOf(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

template <class Message>
base::Expected<std::vector<std::byte>> EncodeMessage(const Message& message) {
  return EncodeFields(Plain<Message>::fields(), &message);
}

template <class Message>
base::Expected<void> DecodeMessage(std::span<const std::byte> body,
                                   Message& message) {
  return DecodeFields(body, Plain<Message>::fields(), &message);
}

base::Expected<std::vector<std::byte>> EncodeMessage(
    const UploadModel& message) {
  rknnd_v1_UploadModel raw = rknnd_v1_UploadModel_init_zero;
  std::memcpy(raw.model, message.model.data(), message.model.size());
  SetText(raw.name, message.name);
  Bytes options{kMaxModelOptions, nullptr, &message.options};
  raw.options.funcs.encode = &EncodeBytes;
  raw.options.arg = &options;
  raw.has_weights_of = message.has_weights_of;
  Bytes weights_of{kMaxModelOptions, nullptr, &message.weights_of_options};
  raw.weights_of_options.funcs.encode = &EncodeBytes;
  raw.weights_of_options.arg = &weights_of;
  return EncodeFields(rknnd_v1_UploadModel_fields, &raw);
}

base::Expected<void> DecodeMessage(std::span<const std::byte> body,
                                   UploadModel& message) {
  rknnd_v1_UploadModel raw = rknnd_v1_UploadModel_init_zero;
  Bytes options{kMaxModelOptions, &message.options, nullptr};
  raw.options.funcs.decode = &DecodeBytes;
  raw.options.arg = &options;
  Bytes weights_of{kMaxModelOptions, &message.weights_of_options, nullptr};
  raw.weights_of_options.funcs.decode = &DecodeBytes;
  raw.weights_of_options.arg = &weights_of;
  auto done = DecodeFields(body, rknnd_v1_UploadModel_fields, &raw);
  if (!done.ok()) return done;
  message.has_weights_of = raw.has_weights_of;
  std::memcpy(message.model.data(), raw.model, message.model.size());
  message.name = TextOf(raw.name);
  return {};
}

base::Expected<std::vector<std::byte>> EncodeMessage(
    const PerfDetail& message) {
  rknnd_v1_PerfDetail raw = rknnd_v1_PerfDetail_init_zero;
  Bytes text{kMaxMemfdBody, nullptr, &message.text};
  raw.text.funcs.encode = &EncodeBytes;
  raw.text.arg = &text;
  BindList<rknnd_v1_LayerReport_fields, kMaxLayers>(raw.layers, message.layers);
  return EncodeFields(rknnd_v1_PerfDetail_fields, &raw);
}

base::Expected<void> DecodeMessage(std::span<const std::byte> body,
                                   PerfDetail& message) {
  rknnd_v1_PerfDetail raw = rknnd_v1_PerfDetail_init_zero;
  Bytes text{kMaxMemfdBody, &message.text, nullptr};
  raw.text.funcs.decode = &DecodeBytes;
  raw.text.arg = &text;
  BindList<rknnd_v1_LayerReport_fields, kMaxLayers>(raw.layers, message.layers);
  return DecodeFields(body, rknnd_v1_PerfDetail_fields, &raw);
}

base::Expected<std::vector<std::byte>> EncodeMessage(const DumpReply& message) {
  rknnd_v1_DumpReply raw = rknnd_v1_DumpReply_init_zero;
  BindList<rknnd_v1_DumpedTensor_fields, kMaxLayers>(raw.tensors,
                                                     message.tensors);
  raw.size = message.size;
  return EncodeFields(rknnd_v1_DumpReply_fields, &raw);
}

base::Expected<void> DecodeMessage(std::span<const std::byte> body,
                                   DumpReply& message) {
  rknnd_v1_DumpReply raw = rknnd_v1_DumpReply_init_zero;
  BindList<rknnd_v1_DumpedTensor_fields, kMaxLayers>(raw.tensors,
                                                     message.tensors);
  auto done = DecodeFields(body, rknnd_v1_DumpReply_fields, &raw);
  if (!done.ok()) return done;
  message.size = raw.size;
  return {};
}

template <class AnyInfo>
void BindTensors(rknnd_v1_ContextInfo& raw, AnyInfo& message) {
  const auto bind = [](pb_callback_t& callback, auto& tensors) {
    BindList<rknnd_v1_TensorAttr_fields, kMaxTensors>(callback, tensors);
  };
  bind(raw.inputs, message.inputs);
  bind(raw.outputs, message.outputs);
  bind(raw.native_inputs, message.native_inputs);
  bind(raw.native_outputs, message.native_outputs);
  bind(raw.native_nhwc_inputs, message.native_nhwc_inputs);
  bind(raw.native_nhwc_outputs, message.native_nhwc_outputs);
}

base::Expected<std::vector<std::byte>> EncodeMessage(
    const ContextInfo& message) {
  rknnd_v1_ContextInfo raw = rknnd_v1_ContextInfo_init_zero;
  BindTensors(raw, message);
  raw.weight_size = message.weight_size;
  raw.internal_size = message.internal_size;
  SetText(raw.custom_string, message.custom_string);
  BindList<rknnd_v1_InputShape_fields, kMaxListedShapes>(raw.shapes,
                                                         message.shapes);
  raw.batch = message.batch;
  Bytes custom{kMaxMemfdBody, nullptr, &message.custom_operators};
  raw.custom_operators.funcs.encode = &EncodeBytes;
  raw.custom_operators.arg = &custom;
  return EncodeFields(rknnd_v1_ContextInfo_fields, &raw);
}

base::Expected<void> DecodeMessage(std::span<const std::byte> body,
                                   ContextInfo& message) {
  rknnd_v1_ContextInfo raw = rknnd_v1_ContextInfo_init_zero;
  BindTensors(raw, message);
  BindList<rknnd_v1_InputShape_fields, kMaxListedShapes>(raw.shapes,
                                                         message.shapes);
  Bytes custom{kMaxMemfdBody, &message.custom_operators, nullptr};
  raw.custom_operators.funcs.decode = &DecodeBytes;
  raw.custom_operators.arg = &custom;
  auto done = DecodeFields(body, rknnd_v1_ContextInfo_fields, &raw);
  if (!done.ok()) return done;
  message.weight_size = raw.weight_size;
  message.internal_size = raw.internal_size;
  message.custom_string = TextOf(raw.custom_string);
  message.batch = raw.batch == 0 ? 1 : raw.batch;
  return {};
}

base::Expected<std::vector<std::byte>> EncodeMessage(const SetShapes& message) {
  rknnd_v1_SetShapes raw = rknnd_v1_SetShapes_init_zero;
  raw.context = message.context;
  BindList<rknnd_v1_InputShape_fields, kMaxTensors>(raw.shapes, message.shapes);
  return EncodeFields(rknnd_v1_SetShapes_fields, &raw);
}

base::Expected<void> DecodeMessage(std::span<const std::byte> body,
                                   SetShapes& message) {
  rknnd_v1_SetShapes raw = rknnd_v1_SetShapes_init_zero;
  BindList<rknnd_v1_InputShape_fields, kMaxTensors>(raw.shapes, message.shapes);
  auto done = DecodeFields(body, rknnd_v1_SetShapes_fields, &raw);
  if (!done.ok()) return done;
  message.context = raw.context;
  return {};
}

base::Expected<std::vector<std::byte>> EncodeMessage(
    const ReportRequest& message) {
  rknnd_v1_ReportRequest raw = rknnd_v1_ReportRequest_init_zero;
  static_assert(sizeof raw.kind == sizeof message.kind);
  std::memcpy(&raw.kind, &message.kind, sizeof raw.kind);
  return EncodeFields(rknnd_v1_ReportRequest_fields, &raw);
}

base::Expected<void> DecodeMessage(std::span<const std::byte> body,
                                   ReportRequest& message) {
  rknnd_v1_ReportRequest raw = rknnd_v1_ReportRequest_init_zero;
  auto done = DecodeFields(body, rknnd_v1_ReportRequest_fields, &raw);
  if (!done.ok()) return done;
  // Not read as an enumeration: a number it lacks would be undefined.
  std::memcpy(&message.kind, &raw.kind, sizeof message.kind);
  return {};
}

// For encoding a const message, for decoding another.
template <class AnyReport>
void BindLists(rknnd_v1_Report& raw, AnyReport& message) {
  BindList<rknnd_v1_SessionReport_fields>(raw.sessions, message.sessions);
  BindList<rknnd_v1_ModelReport_fields>(raw.models, message.models);
  BindList<rknnd_v1_ContextReport_fields>(raw.contexts, message.contexts);
  BindList<rknnd_v1_BufferReport_fields>(raw.buffers, message.buffers);
  BindList<rknnd_v1_CoreReport_fields>(raw.core_reports, message.core_reports);
  BindList<rknnd_v1_UserReport_fields>(raw.users, message.users);
  BindList<rknnd_v1_SramWindow_fields>(raw.sram_windows, message.sram_windows);
  BindList<rknnd_v1_ForeignUser_fields>(raw.foreign_users,
                                        message.foreign_users);
  BindList<rknnd_v1_Number_fields>(raw.numbers, message.numbers);
}

base::Expected<std::vector<std::byte>> EncodeMessage(const Report& message) {
  rknnd_v1_Report raw = message;
  BindLists(raw, message);
  return EncodeFields(rknnd_v1_Report_fields, &raw);
}

base::Expected<void> DecodeMessage(std::span<const std::byte> body,
                                   Report& message) {
  rknnd_v1_Report raw = rknnd_v1_Report_init_zero;
  BindLists(raw, message);
  auto done = DecodeFields(body, rknnd_v1_Report_fields, &raw);
  if (!done.ok()) return done;
  // What nanopb was told of the lists is not the message's.
  for (pb_callback_t* list :
       {&raw.sessions, &raw.models, &raw.contexts, &raw.buffers,
        &raw.core_reports, &raw.users, &raw.sram_windows, &raw.foreign_users,
        &raw.numbers}) {
    *list = {};
  }
  static_cast<rknnd_v1_Report&>(message) = raw;
  return {};
}

// Messages that are one list.
#define RKNND_LIST(name, item, items)                                         \
  base::Expected<std::vector<std::byte>> EncodeMessage(const name& message) { \
    rknnd_v1_##name raw = rknnd_v1_##name##_init_zero;                        \
    BindList<rknnd_v1_##item##_fields>(raw.items, message.items);             \
    return EncodeFields(rknnd_v1_##name##_fields, &raw);                      \
  }                                                                           \
  base::Expected<void> DecodeMessage(std::span<const std::byte> body,         \
                                     name& message) {                         \
    rknnd_v1_##name raw = rknnd_v1_##name##_init_zero;                        \
    BindList<rknnd_v1_##item##_fields>(raw.items, message.items);             \
    return DecodeFields(body, rknnd_v1_##name##_fields, &raw);                \
  }
RKNND_LIST(DrainReply, SessionReport, sessions)
RKNND_LIST(FaultList, FaultReport, faults)
RKNND_LIST(DoctorReply, Finding, findings)
RKNND_LIST(QuarantineReply, QuarantinedModel, models)
#undef RKNND_LIST

base::Expected<std::vector<std::byte>> EncodeMessage(
    const ClocksReply& message) {
  rknnd_v1_ClocksReply raw = rknnd_v1_ClocksReply_init_zero;
  BindList<rknnd_v1_BoardClock_fields>(raw.clocks, message.clocks);
  SetText(raw.npu, message.npu);
  return EncodeFields(rknnd_v1_ClocksReply_fields, &raw);
}

base::Expected<void> DecodeMessage(std::span<const std::byte> body,
                                   ClocksReply& message) {
  rknnd_v1_ClocksReply raw = rknnd_v1_ClocksReply_init_zero;
  BindList<rknnd_v1_BoardClock_fields>(raw.clocks, message.clocks);
  auto done = DecodeFields(body, rknnd_v1_ClocksReply_fields, &raw);
  if (!done.ok()) return done;
  message.npu = TextOf(raw.npu);
  return {};
}

}  // namespace

template <class Message>
base::Expected<std::vector<std::byte>> Encode(const Message& message) {
  return EncodeMessage(message);
}

template <class Message>
base::Expected<Message> Decode(std::span<const std::byte> body) {
  Message message{};
  auto done = DecodeMessage(body, message);
  if (!done.ok()) return std::move(done).error();
  return message;
}

#define RKNND_MESSAGE(name)                                                  \
  template base::Expected<std::vector<std::byte>> Encode<name>(const name&); \
  template base::Expected<name> Decode<name>(std::span<const std::byte>)
RKNND_MESSAGE(Hello);
RKNND_MESSAGE(Welcome);
RKNND_MESSAGE(Error);
RKNND_MESSAGE(Empty);
RKNND_MESSAGE(CreateContext);
RKNND_MESSAGE(UploadModel);
RKNND_MESSAGE(ContextInfo);
RKNND_MESSAGE(DestroyContext);
RKNND_MESSAGE(SetCoreMask);
RKNND_MESSAGE(SetShapes);
RKNND_MESSAGE(AllocateBuffer);
RKNND_MESSAGE(ImportBuffer);
RKNND_MESSAGE(Buffer);
RKNND_MESSAGE(ReleaseBuffer);
RKNND_MESSAGE(Bind);
RKNND_MESSAGE(BindFrame);
RKNND_MESSAGE(SetMemory);
RKNND_MESSAGE(ImportPhysical);
RKNND_MESSAGE(MemorySizeRequest);
RKNND_MESSAGE(MemorySize);
RKNND_MESSAGE(PerfDetailRequest);
RKNND_MESSAGE(PerfDetail);
RKNND_MESSAGE(DumpRequest);
RKNND_MESSAGE(DumpReply);
RKNND_MESSAGE(ReportRequest);
RKNND_MESSAGE(Report);
RKNND_MESSAGE(DrainReply);
RKNND_MESSAGE(SyncBuffer);
RKNND_MESSAGE(Fault);
RKNND_MESSAGE(FaultReport);
RKNND_MESSAGE(ClearFault);
RKNND_MESSAGE(FaultList);
RKNND_MESSAGE(RegisterFence);
RKNND_MESSAGE(ReleaseFence);
RKNND_MESSAGE(SetQueue);
RKNND_MESSAGE(Admit);
RKNND_MESSAGE(Admission);
RKNND_MESSAGE(Trace);
RKNND_MESSAGE(TraceRequest);
RKNND_MESSAGE(LeaseRequest);
RKNND_MESSAGE(ShareSocket);
RKNND_MESSAGE(CloseShareSocket);
RKNND_MESSAGE(LogEvent);
RKNND_MESSAGE(BufferKeyRequest);
RKNND_MESSAGE(BufferKey);
RKNND_MESSAGE(PinClocks);
RKNND_MESSAGE(FollowLogs);
RKNND_MESSAGE(LogLine);
RKNND_MESSAGE(SetLogLevel);
RKNND_MESSAGE(ResetRequest);
RKNND_MESSAGE(QuarantineRequest);
RKNND_MESSAGE(QuarantineReply);
RKNND_MESSAGE(DoctorReply);
RKNND_MESSAGE(ClocksReply);
#undef RKNND_MESSAGE

std::vector<std::byte> EncodeFailure(std::string_view message) {
  Error error{};
  SetText(error.message, message);
  auto bytes = Encode(error);
  return bytes.ok() ? *std::move(bytes) : std::vector<std::byte>{};
}

base::Error DecodeFailure(const Frame& reply) {
  auto error = Decode<Error>(reply.body);
  if (!error.ok()) return {reply.code, "the daemon gave no reason"};
  return {reply.code, TextOf(error->message)};
}

size_t FittingPrefix(std::string_view text, size_t room) {
  if (text.size() <= room) return text.size();
  size_t size = room;
  // 10xxxxxx continues a sequence: the cut is before its first byte.
  while (size > 0 && (static_cast<uint8_t>(text[size]) & 0xC0) == 0x80) {
    --size;
  }
  return size;
}

}  // namespace rknnd::wire
