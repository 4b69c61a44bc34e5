// Messages, lists and texts by nanopb: for codec.cc, which has a pair of
// functions for each message. nanopb calls nothing of ours but the four
// callbacks here. They are entered from C: no exception may leave them.

#ifndef PROTO_WIRE_CODEC_FIELDS_H_
#define PROTO_WIRE_CODEC_FIELDS_H_

#include <pb_decode.h>
#include <pb_encode.h>

#include <cstddef>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/values/expected.h"
#include "proto/wire/codec.h"

namespace rknnd::wire {

inline constexpr char kListTooLong[] = "list too long";

inline base::Expected<std::vector<std::byte>> EncodeFields(
    const pb_msgdesc_t* fields, const void* message) {
  size_t size = 0;
  if (!pb_get_encoded_size(&size, fields, message)) {
    return base::Error{base::Code::kOutOfRange,
                       "message cannot be encoded: a list or text is too long"};
  }
  std::vector<std::byte> bytes(size);
  pb_ostream_t stream = pb_ostream_from_buffer(
      reinterpret_cast<pb_byte_t*>(bytes.data()), bytes.size());
  if (!pb_encode(&stream, fields, message)) {
    return base::Error{
        base::Code::kInternal,
        std::string("message cannot be encoded: ") + PB_GET_ERROR(&stream)};
  }
  return bytes;
}

inline base::Expected<void> DecodeFields(std::span<const std::byte> body,
                                         const pb_msgdesc_t* fields,
                                         void* message) {
  pb_istream_t stream = pb_istream_from_buffer(
      reinterpret_cast<const pb_byte_t*>(body.data()), body.size());
  if (!pb_decode(&stream, fields, message)) {
    return base::Error{
        base::Code::kInvalidArgument,
        std::string("message cannot be decoded: ") + PB_GET_ERROR(&stream)};
  }
  return {};
}

// A repeated message on its way into or out of a vector, which is the argument
// of nanopb's callback.
template <const pb_msgdesc_t* kFields, size_t kLimit, class Item>
bool DecodeItem(pb_istream_t* stream, const pb_field_t* /*field*/,
                void** argument) {
  auto* items = static_cast<std::vector<Item>*>(*argument);
  if (items->size() >= kLimit) PB_RETURN_ERROR(stream, kListTooLong);
  try {
    Item item{};
    if (!pb_decode(stream, kFields, &item)) return false;
    items->push_back(item);
  } catch (const std::bad_alloc&) {
    PB_RETURN_ERROR(stream, "out of memory");
  }
  return true;
}

template <const pb_msgdesc_t* kFields, size_t kLimit, class Item>
bool EncodeItems(pb_ostream_t* stream, const pb_field_t* field,
                 void* const* argument) {
  const auto* items = static_cast<const std::vector<Item>*>(*argument);
  if (items->size() > kLimit) PB_RETURN_ERROR(stream, kListTooLong);
  for (const Item& item : *items) {
    if (!pb_encode_tag_for_field(stream, field)) return false;
    if (!pb_encode_submessage(stream, kFields, &item)) return false;
  }
  return true;
}

// A field of bytes without a size of its own.
struct Bytes {
  size_t limit;
  std::string* decoded = nullptr;
  const std::string* encoded = nullptr;
};

inline bool DecodeBytes(pb_istream_t* stream, const pb_field_t* /*field*/,
                        void** argument) {
  auto* bytes = static_cast<Bytes*>(*argument);
  if (stream->bytes_left > bytes->limit) {
    PB_RETURN_ERROR(stream, "text too long");
  }
  try {
    bytes->decoded->resize(stream->bytes_left);
  } catch (const std::bad_alloc&) {
    PB_RETURN_ERROR(stream, "out of memory");
  }
  return pb_read(stream, reinterpret_cast<pb_byte_t*>(bytes->decoded->data()),
                 stream->bytes_left);
}

inline bool EncodeBytes(pb_ostream_t* stream, const pb_field_t* field,
                        void* const* argument) {
  const auto* bytes = static_cast<const Bytes*>(*argument);
  if (bytes->encoded->empty()) return true;
  if (bytes->encoded->size() > bytes->limit) {
    PB_RETURN_ERROR(stream, "text too long");
  }
  if (!pb_encode_tag_for_field(stream, field)) return false;
  return pb_encode_string(
      stream, reinterpret_cast<const pb_byte_t*>(bytes->encoded->data()),
      bytes->encoded->size());
}

// Binds a callback to a list: one that is decoded into, or a const one that is
// encoded. The list outlives the call of nanopb.
template <const pb_msgdesc_t* kFields, size_t kLimit = kMaxReportEntries,
          class Item>
void BindList(pb_callback_t& callback, std::vector<Item>& items) {
  callback.funcs.decode = &DecodeItem<kFields, kLimit, Item>;
  callback.arg = &items;
}
template <const pb_msgdesc_t* kFields, size_t kLimit = kMaxReportEntries,
          class Item>
void BindList(pb_callback_t& callback, const std::vector<Item>& items) {
  callback.funcs.encode = &EncodeItems<kFields, kLimit, Item>;
  callback.arg = const_cast<std::vector<Item>*>(&items);  // read only
}

}  // namespace rknnd::wire

#endif  // PROTO_WIRE_CODEC_FIELDS_H_
