#include "daemon/transport/grpc/inference/typed_contents.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/values/half.h"
#include "inference/open_inference.pb.h"

namespace rknnd::transport {
namespace {

using inference::InferTensorContents;

// Calls `use` with the list that has elements of `datatype`, and an element of
// the type that the tensor has; false: there is no such list.
template <class Use>
bool WithList(const InferTensorContents& contents, Datatype datatype, Use use) {
  switch (datatype) {
    case Datatype::kBool:
      use(contents.bool_contents(), uint8_t{});
      return true;
    case Datatype::kUint8:
      use(contents.uint_contents(), uint8_t{});
      return true;
    case Datatype::kUint16:
      use(contents.uint_contents(), uint16_t{});
      return true;
    case Datatype::kUint32:
      use(contents.uint_contents(), uint32_t{});
      return true;
    case Datatype::kUint64:
      use(contents.uint64_contents(), uint64_t{});
      return true;
    case Datatype::kInt8:
      use(contents.int_contents(), int8_t{});
      return true;
    case Datatype::kInt16:
      use(contents.int_contents(), int16_t{});
      return true;
    case Datatype::kInt32:
      use(contents.int_contents(), int32_t{});
      return true;
    case Datatype::kInt64:
      use(contents.int64_contents(), int64_t{});
      return true;
    case Datatype::kFp32:
      use(contents.fp32_contents(), float{});
      return true;
    case Datatype::kFp64:
      use(contents.fp64_contents(), double{});
      return true;
    case Datatype::kFp16:
    case Datatype::kBf16:
    case Datatype::kBytes:
      break;
  }
  return false;
}

template <class Element>
double Read(std::span<const std::byte> tensor, uint64_t index) {
  Element element{};
  std::memcpy(&element, tensor.data() + index * sizeof element, sizeof element);
  return static_cast<double>(element);
}

// Datatypes that outputs have.
double ReadNumber(Datatype datatype, std::span<const std::byte> tensor,
                  uint64_t index) {
  switch (datatype) {
    case Datatype::kBool:
    case Datatype::kUint8:
      return Read<uint8_t>(tensor, index);
    case Datatype::kUint16:
      return Read<uint16_t>(tensor, index);
    case Datatype::kUint32:
      return Read<uint32_t>(tensor, index);
    case Datatype::kUint64:
      return Read<uint64_t>(tensor, index);
    case Datatype::kInt8:
      return Read<int8_t>(tensor, index);
    case Datatype::kInt16:
      return Read<int16_t>(tensor, index);
    case Datatype::kInt32:
      return Read<int32_t>(tensor, index);
    case Datatype::kInt64:
      return Read<int64_t>(tensor, index);
    case Datatype::kFp64:
      return Read<double>(tensor, index);
    case Datatype::kFp16: {
      base::Half half{};
      std::memcpy(&half, tensor.data() + index * sizeof half, sizeof half);
      return static_cast<double>(base::HalfToFloat(half));
    }
    case Datatype::kFp32:
    case Datatype::kBf16:
    case Datatype::kBytes:
      break;
  }
  return Read<float>(tensor, index);
}

std::string NumberText(Datatype datatype, double value) {
  if (datatype == Datatype::kFp32 || datatype == Datatype::kFp16 ||
      datatype == Datatype::kFp64) {
    return std::to_string(value);
  }
  return absl::StrCat(static_cast<int64_t>(value));
}

}  // namespace

uint64_t CountTyped(const InferTensorContents& contents) {
  return static_cast<uint64_t>(contents.bool_contents_size()) +
         static_cast<uint64_t>(contents.int_contents_size()) +
         static_cast<uint64_t>(contents.int64_contents_size()) +
         static_cast<uint64_t>(contents.uint_contents_size()) +
         static_cast<uint64_t>(contents.uint64_contents_size()) +
         static_cast<uint64_t>(contents.fp32_contents_size()) +
         static_cast<uint64_t>(contents.fp64_contents_size()) +
         static_cast<uint64_t>(contents.bytes_contents_size());
}

absl::Status CheckTyped(const InferTensorContents& contents, Datatype datatype,
                        uint64_t elements) {
  absl::Status status;
  const bool has_list =
      WithList(contents, datatype, [&](const auto& list, auto element) {
        const auto count = static_cast<uint64_t>(list.size());
        if (count != CountTyped(contents)) {
          status = absl::InvalidArgumentError(
              absl::StrCat("contents of ", DatatypeName(datatype),
                           " have elements in the list of another datatype"));
          return;
        }
        if (count != elements) {
          status = absl::InvalidArgumentError(absl::StrCat(
              "contents have ", count, " elements, its shape has ", elements));
          return;
        }
        using Element = decltype(element);
        using Listed = std::decay_t<decltype(*list.begin())>;
        // A list's bool is any that the message can hold.
        if constexpr (!std::is_same_v<Listed, bool> &&
                      sizeof(Element) < sizeof(Listed)) {
          for (const Listed value : list) {
            if (value >= std::numeric_limits<Element>::min() &&
                value <= std::numeric_limits<Element>::max()) {
              continue;
            }
            status = absl::InvalidArgumentError(
                absl::StrCat("contents have ", value, ", which ",
                             DatatypeName(datatype), " cannot hold"));
            return;
          }
        }
      });
  if (has_list) return status;
  return absl::InvalidArgumentError(absl::StrCat(
      DatatypeName(datatype),
      " has no contents here: send it as one of raw_input_contents"));
}

void CopyTyped(const InferTensorContents& contents, Datatype datatype,
               std::span<std::byte> to) {
  WithList(contents, datatype, [&](const auto& list, auto element) {
    using Element = decltype(element);
    size_t at = 0;
    for (const auto value : list) {
      if (to.size() - at < sizeof(Element)) return;
      const auto converted = static_cast<Element>(value);
      std::memcpy(to.data() + at, &converted, sizeof converted);
      at += sizeof converted;
    }
  });
}

std::string Classify(Datatype datatype, std::span<const std::byte> tensor,
                     uint64_t batch, uint32_t classes) {
  const uint64_t elements = tensor.size() / DatatypeSize(datatype);
  const uint64_t part = elements / batch;
  std::string bytes;
  std::vector<uint64_t> order(static_cast<size_t>(part));
  for (uint64_t item = 0; item < batch; ++item) {
    std::vector<double> values(static_cast<size_t>(part));
    for (uint64_t i = 0; i < part; ++i) {
      const double value = ReadNumber(datatype, tensor, item * part + i);
      values[static_cast<size_t>(i)] =
          std::isnan(value) ? -std::numeric_limits<double>::infinity() : value;
    }
    std::iota(order.begin(), order.end(), 0);
    const size_t count = std::min<size_t>(classes, order.size());
    std::partial_sort(order.begin(),
                      order.begin() + static_cast<int64_t>(count), order.end(),
                      [&](uint64_t a, uint64_t b) {
                        if (values[a] != values[b])
                          return values[a] > values[b];
                        return a < b;
                      });
    for (size_t i = 0; i < count; ++i) {
      const std::string text = absl::StrCat(
          NumberText(datatype,
                     ReadNumber(datatype, tensor, item * part + order[i])),
          ":", order[i]);
      const auto size = static_cast<uint32_t>(text.size());
      bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
      bytes.append(text);
    }
  }
  return bytes;
}

}  // namespace rknnd::transport
