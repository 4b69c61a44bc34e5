#include "client/ctl/models/tensor_input.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <random>

#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/image/file.h"
#include "client/image/image.h"
#include "client/image/npy.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

Error Misfit(const std::string& path, const rknn_tensor_attr& attr,
             const std::string& why) {
  return {Code::kInvalidArgument, "file '" + path + "' does not fit input '" +
                                      Printable(attr.name) + "': " + why};
}

std::string Suffix(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || path.find('/', dot) != std::string::npos) {
    return "";
  }
  std::string suffix = path.substr(dot + 1);
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return suffix;
}

std::vector<size_t> Dims(const rknn_tensor_attr& attr) {
  return {attr.dims,
          attr.dims + std::min<uint32_t>(attr.n_dims, RKNN_MAX_DIMS)};
}

// A 4-D input in both orders; nothing for others.
struct Orders {
  std::vector<size_t> nchw, nhwc;
};

std::optional<Orders> OrdersOf(const rknn_tensor_attr& attr) {
  const std::vector<size_t> d = Dims(attr);
  if (d.size() != 4) return std::nullopt;
  if (attr.fmt == RKNN_TENSOR_NHWC) return Orders{{d[0], d[3], d[1], d[2]}, d};
  if (attr.fmt == RKNN_TENSOR_NCHW) return Orders{d, {d[0], d[2], d[3], d[1]}};
  return std::nullopt;
}

Expected<TensorInput> FromImage(const std::string& path,
                                const rknn_tensor_attr& attr) {
  const std::optional<Orders> orders = OrdersOf(attr);
  if (!orders || (orders->nhwc[3] != 3 && orders->nhwc[3] != 1)) {
    return Misfit(path, attr,
                  "a picture needs an input of 1 or 3 channels, this one is " +
                      FormatShape(orders ? orders->nchw : Dims(attr)) +
                      (orders ? " (NCHW)" : ""));
  }
  const Expected<Image> image = ReadImage(path);
  if (!image) return image.error();
  const size_t batch = orders->nhwc[0];
  const size_t channels = orders->nhwc[3];
  const size_t pixels = orders->nhwc[1] * orders->nhwc[2];
  if (pixels == 0 || pixels > kMaxPixels) {
    return Misfit(
        path, attr,
        "an input of " + FormatShape(orders->nhwc) + " (NHWC) is no picture");
  }
  Image fitted(static_cast<int>(orders->nhwc[2]),
               static_cast<int>(orders->nhwc[1]));
  Resize(image->pixels(), fitted.pixels());

  TensorInput input;
  input.type = RKNN_TENSOR_UINT8;
  input.format = RKNN_TENSOR_NHWC;
  const uint8_t* rgb = fitted.pixels().data;
  std::vector<std::byte> item(pixels * channels);
  if (channels == 3) {
    std::memcpy(item.data(), rgb, item.size());
  } else {
    for (size_t i = 0; i < pixels; ++i, rgb += 3) {
      // Luma of BT.601 in 1/256.
      item[i] = static_cast<std::byte>(
          (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8);
    }
  }
  for (size_t i = 0; i < batch; ++i) {
    input.bytes.insert(input.bytes.end(), item.begin(), item.end());
  }
  return input;
}

std::optional<rknn_tensor_type> TensorType(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
    case ElementType::kFloat64:  // narrowed by the caller
      return RKNN_TENSOR_FLOAT32;
    case ElementType::kFloat16:
      return RKNN_TENSOR_FLOAT16;
    case ElementType::kInt8:
      return RKNN_TENSOR_INT8;
    case ElementType::kUint8:
      return RKNN_TENSOR_UINT8;
    case ElementType::kInt16:
      return RKNN_TENSOR_INT16;
    case ElementType::kUint16:
      return RKNN_TENSOR_UINT16;
    case ElementType::kInt32:
      return RKNN_TENSOR_INT32;
    case ElementType::kUint32:
      return RKNN_TENSOR_UINT32;
    case ElementType::kInt64:
      return RKNN_TENSOR_INT64;
    case ElementType::kBool:
      return RKNN_TENSOR_BOOL;
    case ElementType::kUint64:
      return std::nullopt;
  }
  return std::nullopt;
}

std::vector<std::byte> Narrow(const std::vector<std::byte>& doubles) {
  std::vector<std::byte> floats(doubles.size() / 2);
  for (size_t i = 0; i < floats.size() / sizeof(float); ++i) {
    double wide = 0;
    std::memcpy(&wide, doubles.data() + i * sizeof(wide), sizeof(wide));
    const auto value = static_cast<float>(wide);
    std::memcpy(floats.data() + i * sizeof(value), &value, sizeof(value));
  }
  return floats;
}

// Whether an array is `dims`, or one item of a batch of one.
bool Fits(const std::vector<size_t>& shape, const std::vector<size_t>& dims) {
  if (shape == dims) return true;
  return dims.front() == 1 &&
         std::equal(shape.begin(), shape.end(), dims.begin() + 1, dims.end());
}

Expected<TensorInput> FromNpy(const std::string& path,
                              const rknn_tensor_attr& attr) {
  Expected<Array> array = ReadNpy(path);
  if (!array) return std::move(array).error();
  const std::optional<rknn_tensor_type> type = TensorType(array->type);
  if (!type) {
    return Misfit(path, attr,
                  std::string("elements of ") + ElementName(array->type) +
                      " are no tensor type");
  }
  TensorInput input;
  input.type = *type;
  if (const std::optional<Orders> orders = OrdersOf(attr)) {
    if (Fits(array->shape, orders->nchw)) {
      input.format = RKNN_TENSOR_NCHW;
    } else if (Fits(array->shape, orders->nhwc)) {
      input.format = RKNN_TENSOR_NHWC;
    } else {
      return Misfit(path, attr,
                    "its shape is " + FormatShape(array->shape) +
                        ", wanted is " + FormatShape(orders->nchw) +
                        " (NCHW) or " + FormatShape(orders->nhwc) + " (NHWC)");
    }
  } else {
    size_t elements = 1;
    for (const size_t extent : array->shape) elements *= extent;
    if (elements != attr.n_elems) {
      return Misfit(path, attr,
                    "its shape is " + FormatShape(array->shape) +
                        ", wanted is " + FormatShape(Dims(attr)));
    }
    input.format = attr.fmt;
  }
  input.bytes = array->type == ElementType::kFloat64 ? Narrow(array->bytes)
                                                     : std::move(array->bytes);
  return input;
}

bool IsWholeNumber(rknn_tensor_type type) {
  switch (type) {
    case RKNN_TENSOR_BOOL:
    case RKNN_TENSOR_INT16:
    case RKNN_TENSOR_UINT16:
    case RKNN_TENSOR_INT32:
    case RKNN_TENSOR_UINT32:
    case RKNN_TENSOR_INT64:
      return true;
    default:
      return false;
  }
}

Expected<TensorInput> FromBin(const std::string& path,
                              const rknn_tensor_attr& attr) {
  Expected<std::vector<std::byte>> bytes = ReadFile(path);
  if (!bytes) return std::move(bytes).error();
  const size_t elements = attr.n_elems;
  TensorInput input;
  if (IsWholeNumber(attr.type) &&
      bytes->size() == elements * ElementBytes(attr.type)) {
    input.type = attr.type;
  } else if (bytes->size() == elements * 4) {
    input.type = RKNN_TENSOR_FLOAT32;
  } else if (bytes->size() == elements * 2) {
    input.type = RKNN_TENSOR_FLOAT16;
  } else if (bytes->size() == elements) {
    input.type = RKNN_TENSOR_UINT8;
  } else {
    return Misfit(path, attr,
                  "it has " + std::to_string(bytes->size()) + " bytes; " +
                      std::to_string(elements) +
                      " elements take 4 bytes each as FP32, 2 as FP16, 1 as "
                      "UINT8");
  }
  if (attr.n_dims != 4) {
    input.format = attr.fmt;
  } else {
    input.format =
        input.type == RKNN_TENSOR_UINT8 ? RKNN_TENSOR_NHWC : RKNN_TENSOR_NCHW;
  }
  input.bytes = *std::move(bytes);
  return input;
}

template <class T>
void Fill(std::vector<std::byte>& bytes, T (*draw)(std::mt19937& generator),
          std::mt19937& generator) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = draw(generator);
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
}

}  // namespace

size_t ElementBytes(rknn_tensor_type type) {
  switch (type) {
    case RKNN_TENSOR_INT64:
      return 8;
    case RKNN_TENSOR_FLOAT32:
    case RKNN_TENSOR_INT32:
    case RKNN_TENSOR_UINT32:
      return 4;
    case RKNN_TENSOR_FLOAT16:
    case RKNN_TENSOR_BFLOAT16:
    case RKNN_TENSOR_INT16:
    case RKNN_TENSOR_UINT16:
      return 2;
    case RKNN_TENSOR_INT8:
    case RKNN_TENSOR_UINT8:
    case RKNN_TENSOR_BOOL:
      return 1;
    default:
      return 0;
  }
}

Expected<TensorInput> ReadTensorInput(const std::string& path,
                                      const rknn_tensor_attr& attr) {
  const std::string suffix = Suffix(path);
  if (suffix == "jpg" || suffix == "jpeg" || suffix == "png" ||
      suffix == "bmp") {
    return FromImage(path, attr);
  }
  if (suffix == "npy") return FromNpy(path, attr);
  if (suffix == "bin") return FromBin(path, attr);
  return Error{Code::kInvalidArgument,
               "file '" + path +
                   "': inputs are .jpg, .png, .bmp, .npy or .bin files, told "
                   "by their names"};
}

TensorInput NoiseInput(const rknn_tensor_attr& attr, uint32_t number) {
  // The generator, not a distribution: these differ between libraries.
  std::mt19937 generator(number + 1);
  TensorInput input;
  const size_t elements = attr.n_elems;
  input.format = attr.fmt;
  // 16 bits may stand for reals; wider integers never do.
  const bool quantized = attr.qnt_type == RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC &&
                         ElementBytes(attr.type) == 2;
  if (IsWholeNumber(attr.type) && !quantized) {
    input.type = attr.type;
    input.bytes.resize(elements * ElementBytes(attr.type));
    // The low byte of each little-endian element.
    const size_t step = ElementBytes(attr.type);
    const uint32_t bound = attr.type == RKNN_TENSOR_BOOL ? 2 : 10;
    for (size_t at = 0; at < input.bytes.size(); at += step) {
      input.bytes[at] = static_cast<std::byte>(generator() % bound);
    }
  } else if (attr.n_dims == 4) {
    input.type = RKNN_TENSOR_UINT8;
    input.format = RKNN_TENSOR_NHWC;
    input.bytes.resize(elements);
    Fill<uint8_t>(
        input.bytes,
        [](std::mt19937& g) { return static_cast<uint8_t>(g() & 0xff); },
        generator);
  } else {
    input.type = RKNN_TENSOR_FLOAT32;
    input.bytes.resize(elements * sizeof(float));
    Fill<float>(
        input.bytes,
        [](std::mt19937& g) {
          return static_cast<float>(g() >> 8) / (1 << 24);
        },
        generator);
  }
  return input;
}

}  // namespace rknnd::client
