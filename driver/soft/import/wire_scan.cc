#include "driver/soft/import/wire_scan.h"

namespace rknnd::soft {
namespace {

// The messages of ONNX that hold others, so that the walk knows where to go
// down. Everything else is a leaf.
enum class Message : uint8_t {
  kLeaf,
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparseTensor,
  kTraining,
  kFunction,
  kValueInfo,
  kType,
  kTensorType,
  kShape,
  kDimension,
};

// What field `number` of `message` is. Numbers are those of onnx.proto.
Message ChildOf(Message message, uint32_t number) {
  switch (message) {
    case Message::kModel:
      if (number == 7) return Message::kGraph;
      if (number == 20) return Message::kTraining;
      if (number == 25) return Message::kFunction;
      break;
    case Message::kGraph:
      if (number == 1) return Message::kNode;
      if (number == 5) return Message::kTensor;
      if (number == 15) return Message::kSparseTensor;
      if (number >= 11 && number <= 13) return Message::kValueInfo;
      break;
    case Message::kNode:
      if (number == 5) return Message::kAttribute;
      break;
    case Message::kAttribute:
      if (number == 5 || number == 10) return Message::kTensor;
      if (number == 6 || number == 11) return Message::kGraph;
      if (number == 14 || number == 15) return Message::kType;
      if (number == 22 || number == 23) return Message::kSparseTensor;
      break;
    case Message::kSparseTensor:
      if (number == 1 || number == 2) return Message::kTensor;
      break;
    case Message::kTraining:
      if (number == 1 || number == 2) return Message::kGraph;
      break;
    case Message::kFunction:
      if (number == 7) return Message::kNode;
      if (number == 11) return Message::kAttribute;
      break;
    case Message::kValueInfo:
      if (number == 2) return Message::kType;
      break;
    case Message::kType:
      if (number == 1) return Message::kTensorType;
      // Sequences, maps and optionals hold types again.
      if (number == 4 || number == 9) return Message::kTensorType;
      if (number == 5) return Message::kType;
      break;
    case Message::kTensorType:
      if (number == 1) return Message::kType;
      if (number == 2) return Message::kShape;
      break;
    case Message::kShape:
      if (number == 1) return Message::kDimension;
      break;
    case Message::kTensor:
    case Message::kDimension:
    case Message::kLeaf:
      break;
  }
  return Message::kLeaf;
}

class Walk {
 public:
  explicit Walk(std::span<const std::byte> bytes) : bytes_(bytes) {}

  WireScan Run() {
    result_.verdict = Range(0, bytes_.size(), Message::kModel, 0);
    return result_;
  }

 private:
  bool Varint(size_t& at, size_t end, uint64_t* value) const {
    *value = 0;
    for (int shift = 0; shift < 64 && at < end; shift += 7) {
      auto byte = static_cast<uint8_t>(bytes_[at++]);
      *value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }

  // A field that starts inside the file and ends outside it.
  WireScan::Verdict Overrun(int depth, size_t at, uint64_t length) {
    if (depth != 0) return WireScan::kMalformed;
    result_.needed = length > UINT64_MAX - at ? UINT64_MAX : at + length;
    return WireScan::kTruncated;
  }

  WireScan::Verdict Range(size_t at, size_t end, Message message, int depth) {
    if (depth > kMaxWireDepth) return WireScan::kTooDeep;
    while (at < end) {
      uint64_t tag = 0;
      uint64_t value = 0;
      if (!Varint(at, end, &tag)) {
        return at == end ? Overrun(depth, at, 1) : WireScan::kMalformed;
      }
      auto number = static_cast<uint32_t>(tag >> 3);
      if (tag >> 3 == 0 || tag >> 32 != 0) return WireScan::kMalformed;
      switch (tag & 7) {
        case 0:
          if (!Varint(at, end, &value)) {
            return at == end ? Overrun(depth, at, 1) : WireScan::kMalformed;
          }
          break;
        case 1:
          if (end - at < 8) return Overrun(depth, at, 8);
          at += 8;
          break;
        case 5:
          if (end - at < 4) return Overrun(depth, at, 4);
          at += 4;
          break;
        case 2: {
          if (!Varint(at, end, &value)) {
            return at == end ? Overrun(depth, at, 1) : WireScan::kMalformed;
          }
          if (++result_.elements > kMaxWireElements) return WireScan::kTooMany;
          if (value > end - at) return Overrun(depth, at, value);
          Message child = ChildOf(message, number);
          if (child != Message::kLeaf) {
            WireScan::Verdict verdict = Range(at, at + value, child, depth + 1);
            if (verdict != WireScan::kWhole) return verdict;
          }
          at += value;
          break;
        }
        default:
          return WireScan::kMalformed;  // groups: ONNX has none
      }
    }
    return WireScan::kWhole;
  }

  std::span<const std::byte> bytes_;
  WireScan result_;
};

}  // namespace

WireScan ScanModel(std::span<const std::byte> bytes) {
  return Walk(bytes).Run();
}

}  // namespace rknnd::soft
