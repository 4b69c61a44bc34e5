// Bodies of frames: the messages of rknnd/v1/session.proto to and from bytes.
// Messages without lists are nanopb's structs under a shorter name; those with
// lists are structs with vectors here, so that no caller meets a callback.
// Used by both ends, which take the bytes they decode for hostile: every list
// has a bound, every string an end, and an enumeration may hold any number.

#ifndef PROTO_WIRE_CODEC_H_
#define PROTO_WIRE_CODEC_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/values/expected.h"
#include "proto/wire/frame.h"
#include "rknnd/v1/session.pb.h"

namespace rknnd::wire {

// Inputs or outputs of one model. An empty entry costs two bytes on the wire
// and some 400 in memory, so the body's size alone is no bound.
inline constexpr size_t kMaxTensors = 1024;
// Shapes of all inputs of all rows that a model lists.
inline constexpr size_t kMaxListedShapes = size_t{1} << 15;
// Lines of one report: 16 sessions at their limit of buffers.
inline constexpr size_t kMaxReportEntries = size_t{1} << 18;
// Text of MODEL.yml. Real ones have some hundred bytes.
inline constexpr size_t kMaxModelOptions = size_t{1} << 20;
// Layers of one model, and tensors of a dump: more than a network has, and at
// some 3 KiB each in memory no more than a client can bear.
inline constexpr size_t kMaxLayers = size_t{1} << 14;

using Hello = rknnd_v1_Hello;
using Welcome = rknnd_v1_Welcome;
using Error = rknnd_v1_Error;
using Empty = rknnd_v1_Empty;
using CreateContext = rknnd_v1_CreateContext;
using DestroyContext = rknnd_v1_DestroyContext;
using SetCoreMask = rknnd_v1_SetCoreMask;
using AllocateBuffer = rknnd_v1_AllocateBuffer;
using ImportBuffer = rknnd_v1_ImportBuffer;
using Buffer = rknnd_v1_Buffer;
using ReleaseBuffer = rknnd_v1_ReleaseBuffer;
using Bind = rknnd_v1_Bind;
using BindFrame = rknnd_v1_BindFrame;
using SetMemory = rknnd_v1_SetMemory;
using ImportPhysical = rknnd_v1_ImportPhysical;
using MemorySizeRequest = rknnd_v1_MemorySizeRequest;
using MemorySize = rknnd_v1_MemorySize;
using PerfDetailRequest = rknnd_v1_PerfDetailRequest;
using LayerReport = rknnd_v1_LayerReport;
using DumpRequest = rknnd_v1_DumpRequest;
using DumpedTensor = rknnd_v1_DumpedTensor;
using TensorAttr = rknnd_v1_TensorAttr;
using InputShape = rknnd_v1_InputShape;
using MemoryKinds = rknnd_v1_MemoryKinds;
using SessionReport = rknnd_v1_SessionReport;
using ModelReport = rknnd_v1_ModelReport;
using CopiedBytes = rknnd_v1_CopiedBytes;
using ContextReport = rknnd_v1_ContextReport;
using CoreReport = rknnd_v1_CoreReport;
using BufferReport = rknnd_v1_BufferReport;
using SramWindow = rknnd_v1_SramWindow;
using UserReport = rknnd_v1_UserReport;
using Number = rknnd_v1_Number;
using SyncBuffer = rknnd_v1_SyncBuffer;
using Fault = rknnd_v1_Fault;
using FaultReport = rknnd_v1_FaultReport;
using ClearFault = rknnd_v1_ClearFault;
using RegisterFence = rknnd_v1_RegisterFence;
using ReleaseFence = rknnd_v1_ReleaseFence;
using SetQueue = rknnd_v1_SetQueue;
using Admit = rknnd_v1_Admit;
using Admission = rknnd_v1_Admission;
using Trace = rknnd_v1_Trace;
using TraceRequest = rknnd_v1_TraceRequest;
using ShareSocket = rknnd_v1_ShareSocket;
using CloseShareSocket = rknnd_v1_CloseShareSocket;
using LeaseRequest = rknnd_v1_LeaseRequest;
using ForeignUser = rknnd_v1_ForeignUser;
using LogEvent = rknnd_v1_LogEvent;
using Finding = rknnd_v1_Finding;
using BoardClock = rknnd_v1_BoardClock;
using BufferKeyRequest = rknnd_v1_BufferKeyRequest;
using BufferKey = rknnd_v1_BufferKey;
using PinClocks = rknnd_v1_PinClocks;
using FollowLogs = rknnd_v1_FollowLogs;
using LogLine = rknnd_v1_LogLine;
using SetLogLevel = rknnd_v1_SetLogLevel;
using ResetRequest = rknnd_v1_ResetRequest;
using QuarantineRequest = rknnd_v1_QuarantineRequest;
using QuarantinedModel = rknnd_v1_QuarantinedModel;

struct UploadModel {
  std::array<uint8_t, 32> model{};
  std::string name;
  std::string options;
  bool has_weights_of = false;
  std::string weights_of_options;
};

struct ContextInfo {
  std::vector<TensorAttr> inputs, outputs;
  std::vector<TensorAttr> native_inputs, native_outputs;
  std::vector<TensorAttr> native_nhwc_inputs, native_nhwc_outputs;
  uint64_t weight_size = 0;
  uint64_t internal_size = 0;
  std::string custom_string;
  std::vector<InputShape> shapes;
  uint32_t batch = 1;
  std::string custom_operators;
};

struct SetShapes {
  uint32_t context = 0;
  std::vector<InputShape> shapes;
};

struct PerfDetail {
  std::string text;
  std::vector<LayerReport> layers;
};

struct DumpReply {
  std::vector<DumpedTensor> tensors;
  uint64_t size = 0;
};

// `kind` as it came: may be no rknnd_v1_ReportKind at all.
struct ReportRequest {
  uint32_t kind = 0;
};

// nanopb's struct, with its numbers and texts, and the lists as vectors. The
// list fields of the struct have the same names and are the codec's alone.
struct Report : rknnd_v1_Report {
  Report() : rknnd_v1_Report(rknnd_v1_Report_init_zero) { has_memory = true; }

  std::vector<SessionReport> sessions;
  std::vector<ModelReport> models;
  std::vector<ContextReport> contexts;
  std::vector<BufferReport> buffers;
  std::vector<CoreReport> core_reports;
  std::vector<UserReport> users;
  std::vector<SramWindow> sram_windows;
  std::vector<ForeignUser> foreign_users;
  std::vector<Number> numbers;
};

struct DrainReply {
  std::vector<SessionReport> sessions;
};

struct FaultList {
  std::vector<FaultReport> faults;
};

struct DoctorReply {
  std::vector<Finding> findings;
};

struct QuarantineReply {
  std::vector<QuarantinedModel> models;
};

struct ClocksReply {
  std::vector<BoardClock> clocks;
  std::string npu;
};

// The bytes of one message. kOutOfRange when a list is above its bound; a
// string that is too long is cut.
template <class Message>
base::Expected<std::vector<std::byte>> Encode(const Message& message);

// A message out of bytes nobody has looked at. kInvalidArgument, with what was
// wrong, for anything else.
template <class Message>
base::Expected<Message> Decode(std::span<const std::byte> body);

// The body of a reply whose code is not kOk, and what it says.
std::vector<std::byte> EncodeFailure(std::string_view message);
base::Error DecodeFailure(const Frame& reply);

// How many bytes of `text` fit below `room` without cutting a UTF-8 sequence.
size_t FittingPrefix(std::string_view text, size_t room);

// Copies text into a nanopb string, cut to its size.
template <size_t N>
void SetText(char (&field)[N], std::string_view text) {
  // A zero inside would end the string early for the peer; end it here too.
  text = text.substr(0, text.find('\0'));
  const size_t size = FittingPrefix(text, N - 1);
  std::memcpy(field, text.data(), size);
  std::memset(field + size, 0, N - size);
}

}  // namespace rknnd::wire

#endif  // PROTO_WIRE_CODEC_H_
