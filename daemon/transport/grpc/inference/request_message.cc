#include "daemon/transport/grpc/inference/request_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/transport/grpc/pieces_stream.h"
#include "inference/open_inference.pb.h"

namespace rknnd::transport {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using inference::InferTensorContents;
using inference::ModelInferRequest;

// Tensors, parameters and raw contents of a request together. Each costs more
// than its bytes.
constexpr size_t kMostParts = 16384;
// Bytes of this process for one of a message: for the smallest of fields that
// make a text or a message, and for elements of lists, while they grow.
constexpr uint64_t kForAnyByte = 40;
// A tag and a length.
constexpr size_t kMostOfPrefix = 10;
constexpr uint64_t kForBool = 2, kFor32Bits = 6, kFor64Bits = 12;

uint64_t ForByteOfList(int field) {
  switch (field) {
    case InferTensorContents::kBoolContentsFieldNumber:
      return kForBool;
    case InferTensorContents::kIntContentsFieldNumber:
    case InferTensorContents::kUintContentsFieldNumber:
      return kFor32Bits;
    case InferTensorContents::kInt64ContentsFieldNumber:
    case InferTensorContents::kUint64ContentsFieldNumber:
      return kFor64Bits;
    case InferTensorContents::kFp32ContentsFieldNumber:
    case InferTensorContents::kFp64ContentsFieldNumber:
      return 1;
    default:
      return kForAnyByte;
  }
}

// Calls `each` with the fields of `message` that have a length; false: it is
// broken.
template <class Each>
bool ForEachPart(std::string_view message, Each each) {
  CodedInputStream input(reinterpret_cast<const uint8_t*>(message.data()),
                         static_cast<int>(message.size()));
  while (const uint32_t tag = input.ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) !=
        WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&input, tag)) return false;
      continue;
    }
    int size = 0;
    if (!input.ReadVarintSizeAsInt(&size)) return false;
    const auto at = static_cast<size_t>(input.CurrentPosition());
    if (!input.Skip(size)) return false;
    each(WireFormatLite::GetTagFieldNumber(tag),
         message.substr(at, static_cast<size_t>(size)));
  }
  return input.ConsumedEntireMessage();
}

// What an InferInputTensor takes of this process, at most. Lists of elements
// are told from the rest, as they are large and cost little.
uint64_t CostOfInput(std::string_view tensor) {
  uint64_t rest = tensor.size();
  uint64_t lists = 0;
  const auto add_list = [&](int field, std::string_view elements) {
    rest -= elements.size();
    lists += elements.size() * ForByteOfList(field);
  };
  // What is broken here is refused by the parser.
  ForEachPart(tensor, [&](int field, std::string_view part) {
    if (field == ModelInferRequest::InferInputTensor::kContentsFieldNumber) {
      ForEachPart(part, add_list);
    }
  });
  return rest * kForAnyByte + lists;
}

absl::Status Broken() {
  return absl::InvalidArgumentError(
      "the request is no inference.ModelInferRequest: its bytes end early, or "
      "a text in it is not UTF-8");
}

}  // namespace

RequestMessage::RequestMessage()
    : head_(std::make_unique<ModelInferRequest>()) {}
RequestMessage::RequestMessage(RequestMessage&&) noexcept = default;
RequestMessage& RequestMessage::operator=(RequestMessage&&) noexcept = default;
RequestMessage::~RequestMessage() = default;

absl::StatusOr<RequestMessage> RequestMessage::Parse(Pieces pieces,
                                                     const Charge& charge) {
  RequestMessage message;
  uint64_t total = 0;
  for (const auto& piece : pieces) {
    message.starts_.push_back(total);
    total += piece.size();
  }
  constexpr int kLongest = std::numeric_limits<int>::max();
  if (total > static_cast<uint64_t>(kLongest)) return Broken();
  PiecesStream stream(pieces);
  CodedInputStream input(&stream);
  input.SetTotalBytesLimit(kLongest);
  std::string rest;
  uint64_t cost = 0;
  size_t parts = 0;
  while (const uint32_t tag = input.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const bool known =
        field >= ModelInferRequest::kModelNameFieldNumber &&
        field <= ModelInferRequest::kRawInputContentsFieldNumber &&
        WireFormatLite::GetTagWireType(tag) ==
            WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if (!known) {
      if (!WireFormatLite::SkipField(&input, tag)) return Broken();
      continue;
    }
    int size = 0;
    if (!input.ReadVarintSizeAsInt(&size)) return Broken();
    if (++parts > kMostParts) {
      return absl::InvalidArgumentError(
          absl::StrCat("the request has more than ", kMostParts,
                       " tensors, parameters and raw_input_contents"));
    }
    if (field == ModelInferRequest::kRawInputContentsFieldNumber) {
      message.raw_starts_.push_back(
          static_cast<uint64_t>(input.CurrentPosition()));
      message.raw_sizes_.push_back(static_cast<uint64_t>(size));
      if (!input.Skip(size)) return Broken();
      continue;
    }
    const auto length = static_cast<uint64_t>(size);
    if (length > total - static_cast<uint64_t>(input.CurrentPosition())) {
      return Broken();
    }
    if (absl::Status refused = charge(length); !refused.ok()) return refused;
    std::string bytes;
    if (!input.ReadString(&bytes, size)) return Broken();
    cost += field == ModelInferRequest::kInputsFieldNumber
                ? CostOfInput(bytes)
                : length * kForAnyByte;
    std::array<uint8_t, kMostOfPrefix> prefix{};
    uint8_t* end = CodedOutputStream::WriteTagToArray(tag, prefix.data());
    end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size),
                                                  end);
    rest.append(reinterpret_cast<const char*>(prefix.data()),
                static_cast<size_t>(end - prefix.data()));
    rest.append(bytes);
  }
  if (!input.ConsumedEntireMessage()) return Broken();
  if (absl::Status refused = charge(cost); !refused.ok()) return refused;
  if (!message.head_->ParseFromString(rest)) return Broken();
  message.pieces_ = std::move(pieces);
  return message;
}

void RequestMessage::CopyRaw(size_t index, uint64_t from,
                             std::span<std::byte> to) const {
  const uint64_t start = raw_starts_[index] + from;
  auto piece = static_cast<size_t>(
      std::upper_bound(starts_.begin(), starts_.end(), start) -
      starts_.begin() - 1);
  uint64_t skip = start - starts_[piece];
  while (!to.empty()) {
    const auto bytes = pieces_[piece].subspan(static_cast<size_t>(skip));
    const size_t size = std::min(bytes.size(), to.size());
    if (size != 0) std::memcpy(to.data(), bytes.data(), size);
    to = to.subspan(size);
    skip = 0;
    ++piece;
  }
}

}  // namespace rknnd::transport
