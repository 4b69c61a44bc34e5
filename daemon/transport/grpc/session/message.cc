// See the header. What is common is parsed by protobuf's own code; a message
// that is nothing but data is read by hand, so that a model of gigabytes is not
// copied once more.

#include "daemon/transport/grpc/session/message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/transport/grpc/pieces_stream.h"
#include "proto/wire/codec.h"
#include "rknnd/v1/remote.pb.h"

namespace rknnd::transport {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using Lite = google::protobuf::internal::WireFormatLite;

constexpr uint32_t Tag(int field, Lite::WireType type) {
  return static_cast<uint32_t>(field) << 3 | static_cast<uint32_t>(type);
}

// The next `size` bytes of `in`, which it has.
bool Take(CodedInputStream* in, int size, Pieces* data) {
  data->clear();
  while (size > 0) {
    const void* at = nullptr;
    int there = 0;
    if (!in->GetDirectBufferPointer(&at, &there)) return false;
    const int taken = std::min(there, size);
    data->emplace_back(static_cast<const std::byte*>(at),
                       static_cast<size_t>(taken));
    if (!in->Skip(taken)) return false;
    size -= taken;
  }
  return true;
}

// A tag of the messages below, which is one byte; 0: it is longer, or missing.
// CodedInputStream takes ten bytes and drops what does not fit, which
// protobuf's own code refuses.
uint32_t ReadShortTag(CodedInputStream* in) {
  const int from = in->CurrentPosition();
  const uint32_t tag = in->ReadTag();
  return in->CurrentPosition() - from == 1 ? tag : 0;
}

// A length; likewise, of no more than five bytes.
bool ReadSize(CodedInputStream* in, int* size) {
  constexpr int kMostBytes = 5;
  const int from = in->CurrentPosition();
  return in->ReadVarintSizeAsInt(size) &&
         in->CurrentPosition() - from <= kMostBytes;
}

// A message that is one chunk, or one write, and nothing else, as every client
// sends them. None: whatever it is, protobuf's own code shall say.
std::optional<FromClient> ParseData(const Pieces& message, size_t total) {
  PiecesStream stream(message);
  CodedInputStream in(&stream);
  const uint32_t part = ReadShortTag(&in);
  constexpr auto kBytes = Lite::WIRETYPE_LENGTH_DELIMITED;
  const bool chunk = part == Tag(v1::ToDaemon::kChunkFieldNumber, kBytes);
  if (!chunk && part != Tag(v1::ToDaemon::kWriteFieldNumber, kBytes)) return {};
  int length = 0;
  if (!ReadSize(&in, &length)) return {};
  const auto end = static_cast<int>(total);
  if (length != end - in.CurrentPosition()) return {};
  // Field 1 of both is a number.
  constexpr uint32_t kNumberTag =
      Tag(v1::Chunk::kRequestFieldNumber, Lite::WIRETYPE_VARINT);
  static_assert(kNumberTag ==
                Tag(v1::Data::kBufferFieldNumber, Lite::WIRETYPE_VARINT));
  const uint32_t data_tag = chunk ? Tag(v1::Chunk::kDataFieldNumber, kBytes)
                                  : Tag(v1::Data::kDataFieldNumber, kBytes);
  uint32_t number = 0;
  uint64_t offset = 0;
  int size = 0;
  Pieces data;
  while (in.CurrentPosition() < end) {
    const uint32_t tag = ReadShortTag(&in);
    if (tag == kNumberTag) {
      if (!in.ReadVarint32(&number)) return {};
    } else if (!chunk && tag == Tag(v1::Data::kOffsetFieldNumber,
                                    Lite::WIRETYPE_VARINT)) {
      if (!in.ReadVarint64(&offset)) return {};
    } else if (tag == data_tag) {
      if (!ReadSize(&in, &size)) return {};
      if (size > end - in.CurrentPosition()) return {};
      if (!Take(&in, size, &data)) return {};
    } else {
      return {};
    }
  }
  const auto bytes = static_cast<uint64_t>(size);
  if (chunk) return RemoteChunk{number, bytes, std::move(data), nullptr};
  return RemoteData{number, offset, bytes, std::move(data), nullptr};
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

RemoteData ToData(v1::Data& data) {
  RemoteData result;
  result.buffer = data.buffer();
  result.offset = data.offset();
  result.size = data.data().size();
  result.copy = std::make_unique<std::string>(std::move(*data.mutable_data()));
  result.data.push_back(BytesOf(*result.copy));
  return result;
}

RemoteChunk ToChunk(v1::Chunk& chunk) {
  RemoteChunk result;
  result.request = chunk.request();
  result.size = chunk.data().size();
  result.copy = std::make_unique<std::string>(std::move(*chunk.mutable_data()));
  result.data.push_back(BytesOf(*result.copy));
  return result;
}

absl::StatusOr<FromClient> ToFrame(const v1::Frame& frame) {
  if (frame.verb() > UINT16_MAX || frame.kind() > UINT16_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of verb ", frame.verb(), ", kind ", frame.kind(),
                     " is none of the session protocol"));
  }
  if (frame.attachments_size() > static_cast<int>(kMaxAttachments)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame with ", frame.attachments_size(),
                     " attachments: none has more than ", kMaxAttachments));
  }
  RemoteFrame result;
  result.frame.verb = static_cast<wire::Verb>(frame.verb());
  result.frame.kind = static_cast<wire::FrameKind>(frame.kind());
  result.frame.request = frame.request();
  const auto body = BytesOf(frame.body());
  result.frame.body.assign(body.begin(), body.end());
  result.attachments.assign(frame.attachments().begin(),
                            frame.attachments().end());
  result.body_attached = frame.body_attached();
  return result;
}

absl::StatusOr<FromClient> ToRun(v1::Run& run) {
  if (std::max(run.inputs_size(), run.outputs_size()) >
      static_cast<int>(wire::kMaxTensors)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a run with ", run.inputs_size(), " inputs and ", run.outputs_size(),
        " outputs: at most ", wire::kMaxTensors, " of each"));
  }
  RemoteRun result;
  result.submission.operation = run.operation();
  result.submission.context = run.context();
  result.submission.slot = run.slot();
  result.submission.sequence = run.sequence();
  result.submission.frame = run.frame();
  result.submission.flags = run.flags();
  result.submission.timeout_ms = run.timeout_ms();
  result.submission.deadline_ns = run.deadline_ns();
  result.submission.set = run.set();
  for (v1::Data& input : *run.mutable_inputs()) {
    result.inputs.push_back(ToData(input));
  }
  for (const v1::Range& output : run.outputs()) {
    result.outputs.push_back({output.buffer(), output.offset(), output.size()});
  }
  return result;
}

// Writes one message field by field; those that are 0 are left out, as by
// protobuf's own code.
class Writer {
 public:
  explicit Writer(uint8_t* to) : at_(to) {}

  void Number(int field, uint64_t value) {
    if (value == 0) return;
    at_ = Lite::WriteUInt64ToArray(field, value, at_);
  }
  void Code(int field, int32_t value) {
    if (value == 0) return;
    at_ = Lite::WriteInt32ToArray(field, value, at_);
  }
  // Its tag and length; what is in it comes next.
  void Begin(int field, size_t size) {
    at_ = CodedOutputStream::WriteTagToArray(
        Tag(field, Lite::WIRETYPE_LENGTH_DELIMITED), at_);
    at_ = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size),
                                                  at_);
  }
  void Bytes(int field, std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    Begin(field, bytes.size());
    std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  // To be filled by somebody else.
  std::span<std::byte> Hole(int field, size_t size) {
    Begin(field, size);
    const std::span hole(reinterpret_cast<std::byte*>(at_), size);
    at_ += size;
    return hole;
  }

 private:
  uint8_t* at_;
};

size_t NumberSize(int field, uint64_t value) {
  if (value == 0) return 0;
  return Lite::TagSize(field, Lite::TYPE_UINT64) + Lite::UInt64Size(value);
}

// With its tag and length.
size_t BytesSize(int field, size_t size) {
  return Lite::TagSize(field, Lite::TYPE_BYTES) +
         Lite::LengthDelimitedSize(size);
}

size_t DataSize(const RemoteRange& range) {
  return NumberSize(v1::Data::kBufferFieldNumber, range.buffer) +
         NumberSize(v1::Data::kOffsetFieldNumber, range.offset) +
         BytesSize(v1::Data::kDataFieldNumber, range.size);
}

std::span<std::byte> WriteData(Writer* writer, const RemoteRange& range) {
  writer->Number(v1::Data::kBufferFieldNumber, range.buffer);
  writer->Number(v1::Data::kOffsetFieldNumber, range.offset);
  return writer->Hole(v1::Data::kDataFieldNumber, range.size);
}

// A ToClient whose part `field` has `size` bytes, and where they go.
OutgoingBytes Make(int field, size_t size, Writer* writer) {
  OutgoingBytes message;
  message.size = BytesSize(field, size);
  message.bytes = std::make_unique_for_overwrite<std::byte[]>(message.size);
  *writer = Writer(reinterpret_cast<uint8_t*>(message.bytes.get()));
  writer->Begin(field, size);
  return message;
}

// A ToClient that somebody wants to have whole.
OutgoingBytes Serialize(const v1::ToClient& message) {
  OutgoingBytes bytes;
  bytes.size = message.ByteSizeLong();
  bytes.bytes = std::make_unique_for_overwrite<std::byte[]>(bytes.size);
  message.SerializeWithCachedSizesToArray(
      reinterpret_cast<uint8_t*>(bytes.bytes.get()));
  return bytes;
}

}  // namespace

absl::StatusOr<FromClient> ParseToDaemon(const Pieces& message) {
  size_t total = 0;
  for (const auto& piece : message) total += piece.size();
  if (total > kMaxRemoteMessage) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a message of ", total, " bytes: none is above ", kMaxRemoteMessage));
  }
  if (auto data = ParseData(message, total); data.has_value()) {
    return *std::move(data);
  }
  PiecesStream stream(message);
  v1::ToDaemon parsed;
  if (!parsed.ParseFromZeroCopyStream(&stream)) {
    return absl::InvalidArgumentError("a message that is no ToDaemon");
  }
  switch (parsed.part_case()) {
    case v1::ToDaemon::kFrame:
      return ToFrame(parsed.frame());
    case v1::ToDaemon::kChunk:
      return ToChunk(*parsed.mutable_chunk());
    case v1::ToDaemon::kWrite:
      return ToData(*parsed.mutable_write());
    case v1::ToDaemon::kRun:
      return ToRun(*parsed.mutable_run());
    case v1::ToDaemon::kPing:
      return RemotePing{parsed.ping().token()};
    case v1::ToDaemon::PART_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "a message without a part that this daemon knows");
}

OutgoingBytes MakeFrame(const RemoteFrame& frame) {
  v1::ToClient message;
  v1::Frame& out = *message.mutable_frame();
  out.set_verb(static_cast<uint32_t>(frame.frame.verb));
  out.set_kind(static_cast<uint32_t>(frame.frame.kind));
  out.set_request(frame.frame.request);
  out.set_code(static_cast<int32_t>(frame.frame.code));
  out.set_body(frame.frame.body.data(), frame.frame.body.size());
  for (const uint64_t size : frame.attachments) out.add_attachments(size);
  out.set_body_attached(frame.body_attached);
  return Serialize(message);
}

OutgoingBytes MakeChunk(uint32_t request, size_t size, Places* places) {
  const size_t body = NumberSize(v1::Chunk::kRequestFieldNumber, request) +
                      BytesSize(v1::Chunk::kDataFieldNumber, size);
  Writer writer(nullptr);
  OutgoingBytes message = Make(v1::ToClient::kChunkFieldNumber, body, &writer);
  writer.Number(v1::Chunk::kRequestFieldNumber, request);
  places->push_back(writer.Hole(v1::Chunk::kDataFieldNumber, size));
  return message;
}

OutgoingBytes MakeRead(const RemoteRange& range, Places* places) {
  Writer writer(nullptr);
  OutgoingBytes message =
      Make(v1::ToClient::kReadFieldNumber, DataSize(range), &writer);
  places->push_back(WriteData(&writer, range));
  return message;
}

OutgoingBytes MakeRunEnd(const RemoteRunEnd& end,
                         std::span<const RemoteRange> outputs, Places* places) {
  using End = v1::RunEnd;
  const auto text = std::as_bytes(std::span(end.text));
  size_t size = NumberSize(End::kSlotFieldNumber, end.slot) +
                NumberSize(End::kSequenceFieldNumber, end.sequence) +
                NumberSize(End::kFrameFieldNumber, end.frame) +
                NumberSize(End::kQueueNsFieldNumber, end.queue_ns) +
                NumberSize(End::kRunNsFieldNumber, end.run_ns) +
                NumberSize(End::kTotalNsFieldNumber, end.total_ns) +
                NumberSize(End::kCoreFieldNumber, end.core) +
                NumberSize(End::kDropsFieldNumber, end.drops) +
                NumberSize(End::kCountFieldNumber, end.count);
  if (end.code != 0) {
    size += Lite::TagSize(End::kCodeFieldNumber, Lite::TYPE_INT32) +
            Lite::Int32Size(end.code);
  }
  if (!text.empty()) size += BytesSize(End::kTextFieldNumber, text.size());
  for (const RemoteRange& output : outputs) {
    size += BytesSize(End::kOutputsFieldNumber, DataSize(output));
  }
  Writer writer(nullptr);
  OutgoingBytes message = Make(v1::ToClient::kRunEndFieldNumber, size, &writer);
  writer.Number(End::kSlotFieldNumber, end.slot);
  writer.Number(End::kSequenceFieldNumber, end.sequence);
  writer.Code(End::kCodeFieldNumber, end.code);
  writer.Bytes(End::kTextFieldNumber, text);
  writer.Number(End::kFrameFieldNumber, end.frame);
  writer.Number(End::kQueueNsFieldNumber, end.queue_ns);
  writer.Number(End::kRunNsFieldNumber, end.run_ns);
  writer.Number(End::kTotalNsFieldNumber, end.total_ns);
  writer.Number(End::kCoreFieldNumber, end.core);
  writer.Number(End::kDropsFieldNumber, end.drops);
  writer.Number(End::kCountFieldNumber, end.count);
  for (const RemoteRange& output : outputs) {
    writer.Begin(End::kOutputsFieldNumber, DataSize(output));
    places->push_back(WriteData(&writer, output));
  }
  return message;
}

OutgoingBytes MakePong(uint64_t token) {
  v1::ToClient message;
  message.mutable_pong()->set_token(token);
  return Serialize(message);
}

}  // namespace rknnd::transport
