#include "driver/soft/plan/frame_transfer.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/values/picture_fit.h"
#include "driver/memory/fault_guard.h"

namespace rknnd::soft {
namespace {

using driver::FrameFormat;
using driver::PixelFormat;

constexpr int64_t kSide = driver::kMaxFrameSide;
// Fractions of a pixel: products of two of them and a byte fit 31 bits.
constexpr int kFractionBits = 11;
constexpr int32_t kOne = 1 << kFractionBits;
constexpr size_t kAlignment = 64;

constexpr size_t AlignUp(size_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

bool IsSemiPlanar(PixelFormat pixels) {
  return pixels == PixelFormat::kNv12 || pixels == PixelFormat::kNv21;
}

const char* NameOf(PixelFormat pixels) {
  switch (pixels) {
    case PixelFormat::kNv12:
      return "NV12";
    case PixelFormat::kNv21:
      return "NV21";
    case PixelFormat::kRgb888:
      return "RGB888";
    case PixelFormat::kBgr888:
      return "BGR888";
  }
  return nullptr;
}

struct Crop {
  uint32_t x, y, width, height;
};

Crop CropOf(const FrameFormat& frame) {
  if ((frame.crop_x | frame.crop_y | frame.crop_width | frame.crop_height) ==
      0) {
    return {0, 0, frame.width, frame.height};
  }
  return {frame.crop_x, frame.crop_y, frame.crop_width, frame.crop_height};
}

// Bytes of a row's pixels; both planes of NV12 have as many.
uint64_t RowBytes(const FrameFormat& frame) {
  return uint64_t{frame.width} * (IsSemiPlanar(frame.pixels) ? 1 : 3);
}

uint64_t StrideOf(const FrameFormat& frame, size_t plane) {
  return frame.stride[plane] == 0 ? RowBytes(frame) : frame.stride[plane];
}

uint32_t RowsOf(const FrameFormat& frame, size_t plane) {
  return plane == 0 ? frame.height : frame.height / 2;
}

size_t PlanesOf(PixelFormat pixels) { return IsSemiPlanar(pixels) ? 2 : 1; }

absl::Status Refuse(const IoPort& port, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("frame for input '", port.attr().name, "': ", what));
}

absl::Status CheckPort(const IoPort& port) {
  const driver::TensorAttr& attr = port.attr();
  if (port.shape().size() != 4 || port.shape()[1] != 3 ||
      attr.layout != driver::TensorLayout::kNhwc) {
    std::string dims;
    for (const uint32_t dim : attr.dims) {
      absl::StrAppend(&dims, dims.empty() ? "" : "x", dim);
    }
    return Refuse(
        port, absl::StrCat("it becomes a picture of 3 channels, but the input "
                           "is ",
                           driver::TensorTypeName(attr.type), " ", dims));
  }
  if (attr.dims[0] != 1) {
    return Refuse(port, absl::StrCat("it is one picture, but the input takes ",
                                     attr.dims[0],
                                     " at once: convert them into its tensor"));
  }
  return port
      .Resolve({.type = driver::TensorType::kUint8,
                .layout = driver::TensorLayout::kNhwc})
      .status();
}

// NV12 has one colour sample for two columns and two rows.
absl::Status CheckEven(const IoPort& port, PixelFormat pixels, const char* what,
                       uint32_t number) {
  if (!IsSemiPlanar(pixels) || number % 2 == 0) return absl::OkStatus();
  return Refuse(port,
                absl::StrCat(what, " ", number, " is odd: ", NameOf(pixels),
                             " has one colour sample for each square of "
                             "2x2 pixels, so sizes and crops are even"));
}

absl::Status CheckCrop(const IoPort& port, const FrameFormat& frame) {
  const Crop crop = CropOf(frame);
  if (crop.width == 0 || crop.height == 0) {
    return Refuse(port, absl::StrCat("a crop of ", crop.width, "x", crop.height,
                                     " has no pixels: leave all of it 0 for "
                                     "the whole frame"));
  }
  if (crop.x > frame.width || crop.width > frame.width - crop.x ||
      crop.y > frame.height || crop.height > frame.height - crop.y) {
    return Refuse(
        port, absl::StrCat("the crop of ", crop.width, "x", crop.height, " at ",
                           crop.x, ",", crop.y, " is not inside the frame of ",
                           frame.width, "x", frame.height));
  }
  absl::Status even = CheckEven(port, frame.pixels, "crop_x", crop.x);
  even.Update(CheckEven(port, frame.pixels, "crop_y", crop.y));
  even.Update(CheckEven(port, frame.pixels, "crop_width", crop.width));
  even.Update(CheckEven(port, frame.pixels, "crop_height", crop.height));
  return even;
}

absl::Status CheckFormat(const IoPort& port, const FrameFormat& frame) {
  if (NameOf(frame.pixels) == nullptr) {
    return Refuse(
        port, absl::StrCat("pixel format ", static_cast<uint32_t>(frame.pixels),
                           " does not exist"));
  }
  if (static_cast<uint32_t>(frame.fit) >
      static_cast<uint32_t>(driver::FrameFit::kLetterbox)) {
    return Refuse(port, absl::StrCat("fit ", static_cast<uint32_t>(frame.fit),
                                     " does not exist"));
  }
  if (frame.width == 0 || frame.height == 0 ||
      frame.width > driver::kMaxFrameSide ||
      frame.height > driver::kMaxFrameSide) {
    return Refuse(port, absl::StrCat(frame.width, "x", frame.height,
                                     " pixels: each side is 1 to ",
                                     driver::kMaxFrameSide));
  }
  absl::Status even = CheckEven(port, frame.pixels, "width", frame.width);
  even.Update(CheckEven(port, frame.pixels, "height", frame.height));
  return even;
}

uint8_t ToByte(int32_t fixed) {
  return static_cast<uint8_t>(
      std::clamp((fixed + (1 << 15)) >> 16, int32_t{0}, int32_t{255}));
}

// BT.601's limited range in 1/65536.
void ToRgb(const uint8_t* luma, const uint8_t* chroma, int64_t width,
           bool red_first_chroma, bool bgr, uint8_t* out) {
  const int red = bgr ? 2 : 0;
  const int blue = 2 - red;
  const int cr_at = red_first_chroma ? 0 : 1;
  for (int64_t pair = 0; pair < width; pair += 2) {
    const int32_t cr = chroma[pair + cr_at] - 128;
    const int32_t cb = chroma[pair + 1 - cr_at] - 128;
    const int32_t r = 104597 * cr;
    const int32_t g = -53279 * cr - 25675 * cb;
    const int32_t b = 132201 * cb;
    for (int64_t x = pair; x < pair + 2; ++x) {
      const int32_t y = 76309 * (luma[x] - 16);
      uint8_t* pixel = out + 3 * x;
      pixel[red] = ToByte(y + r);
      pixel[1] = ToByte(y + g);
      pixel[blue] = ToByte(y + b);
    }
  }
}

// Where along one axis of the crop a pixel of the picture is taken from.
struct Tap {
  int32_t first, second;  // pixels, of which the second has `weight`
  int32_t weight;
};

Tap TapAt(int64_t at, int64_t from, int64_t to) {
  // (at + 1/2) * from / to - 1/2, to the nearest 1/2048.
  const int64_t fixed = ((2 * at + 1) * from - to) * kOne;
  const int64_t rounded =
      fixed < 0 ? 0 : std::min((fixed + to) / (2 * to), (from - 1) * kOne);
  const int64_t first = rounded >> kFractionBits;
  return {static_cast<int32_t>(first),
          static_cast<int32_t>(std::min(first + 1, from - 1)),
          static_cast<int32_t>(rounded & (kOne - 1))};
}

// The parts of scratch. All but the picture is one row or two.
struct Room {
  uint8_t* picture;
  uint8_t* luma;  // or the row of an RGB frame
  uint8_t* chroma;
  uint8_t* pixels;  // the crop's row as RGB
  Tap* columns;
  std::array<int32_t*, 2> lines;  // rows of the crop, scaled in width

  static size_t Bytes(int64_t width, int64_t height, Room* room,
                      std::byte* scratch) {
    size_t used = 0;
    const auto take = [&]<class T>(T** part, int64_t count) {
      if (room != nullptr) *part = reinterpret_cast<T*>(scratch + used);
      used += AlignUp(static_cast<size_t>(count) * sizeof(T));
    };
    Room unused;
    Room& to = room == nullptr ? unused : *room;
    take(&to.picture, width * height * 3);
    take(&to.luma, 3 * kSide);
    take(&to.chroma, kSide);
    take(&to.pixels, 3 * kSide);
    take(&to.columns, width);
    take(&to.lines[0], width * 3);
    take(&to.lines[1], width * 3);
    return used;
  }
};

// One conversion.
class Conversion {
 public:
  Conversion(const FrameFormat& frame, const FramePlanes& planes,
             const Room& room)
      : frame_(frame), planes_(planes), crop_(CropOf(frame)), room_(room) {}

  // False, with `gone`, when the memory went away.
  bool Run(int64_t width, int64_t height, size_t* gone) {
    const base::PictureFit fit = base::FitPicture(
        crop_.width, crop_.height, static_cast<uint32_t>(width),
        static_cast<uint32_t>(height),
        frame_.fit == driver::FrameFit::kLetterbox);
    if (fit.width != width || fit.height != height) FillPad(width * height);
    placed_ = fit.width;
    for (int64_t x = 0; x < placed_; ++x) {
      room_.columns[x] = TapAt(x, crop_.width, placed_);
    }
    for (int64_t y = 0; y < fit.height; ++y) {
      const Tap rows = TapAt(y, crop_.height, fit.height);
      if (!HaveLine(rows.first, gone) || !HaveLine(rows.second, gone)) {
        return false;
      }
      const int32_t* first = room_.lines[rows.first & 1];
      const int32_t* second = room_.lines[rows.second & 1];
      uint8_t* to = room_.picture + ((fit.y + y) * width + fit.x) * 3;
      const int32_t weight = rows.weight;
      constexpr int32_t kHalf = 1 << (2 * kFractionBits - 1);
      for (int64_t i = 0; i < placed_ * 3; ++i) {
        to[i] = static_cast<uint8_t>(
            (first[i] * (kOne - weight) + second[i] * weight + kHalf) >>
            (2 * kFractionBits));
      }
    }
    return true;
  }

 private:
  void FillPad(int64_t pixels) {
    for (int64_t p = 0; p < pixels; ++p) {
      std::memcpy(room_.picture + 3 * p, frame_.pad.data(), 3);
    }
  }

  // The crop's row `y`, scaled in width, where its parity says: two that are
  // mixed are neighbours.
  bool HaveLine(int32_t y, size_t* gone) {
    if (line_rows_[y & 1] == y) return true;
    if (!ReadRow(y, gone)) return false;
    line_rows_[y & 1] = y;
    int32_t* line = room_.lines[y & 1];
    for (int64_t x = 0; x < placed_; ++x) {
      const Tap tap = room_.columns[x];
      const uint8_t* first = room_.pixels + 3 * int64_t{tap.first};
      const uint8_t* second = room_.pixels + 3 * int64_t{tap.second};
      for (int c = 0; c < 3; ++c) {
        line[3 * x + c] =
            first[c] * (kOne - tap.weight) + second[c] * tap.weight;
      }
    }
    return true;
  }

  bool ReadRow(int32_t y, size_t* gone) {
    const int64_t row = int64_t{crop_.y} + y;
    const int64_t width = crop_.width;
    if (IsSemiPlanar(frame_.pixels)) {
      if (!Take(0, row, crop_.x, width, room_.luma, gone) ||
          !Take(1, row / 2, crop_.x, width, room_.chroma, gone)) {
        return false;
      }
      ToRgb(room_.luma, room_.chroma, width,
            frame_.pixels == PixelFormat::kNv21, frame_.bgr_input,
            room_.pixels);
      return true;
    }
    const bool swap =
        (frame_.pixels == PixelFormat::kBgr888) != frame_.bgr_input;
    uint8_t* const to = swap ? room_.luma : room_.pixels;
    if (!Take(0, row, 3 * int64_t{crop_.x}, 3 * width, to, gone)) return false;
    for (int64_t x = 0; swap && x < width; ++x) {
      room_.pixels[3 * x] = to[3 * x + 2];
      room_.pixels[3 * x + 1] = to[3 * x + 1];
      room_.pixels[3 * x + 2] = to[3 * x];
    }
    return true;
  }

  bool Take(size_t plane, int64_t row, int64_t at, int64_t bytes, uint8_t* to,
            size_t* gone) const {
    const auto from = planes_[plane].subspan(
        static_cast<size_t>(row) *
                static_cast<size_t>(StrideOf(frame_, plane)) +
            static_cast<size_t>(at),
        static_cast<size_t>(bytes));
    *gone = plane;
    return driver::Guarded(
        from, [from, to] { std::memcpy(to, from.data(), from.size()); });
  }

  const FrameFormat& frame_;
  const FramePlanes& planes_;
  const Crop crop_;
  const Room room_;
  int64_t placed_ = 0;
  std::array<int32_t, 2> line_rows_{-1, -1};
};

}  // namespace

absl::StatusOr<driver::FrameSizes> CheckFrame(const IoPort& port,
                                              const FrameFormat& frame) {
  if (absl::Status status = CheckPort(port); !status.ok()) return status;
  if (absl::Status status = CheckFormat(port, frame); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckCrop(port, frame); !status.ok()) return status;
  driver::FrameSizes sizes{};
  for (size_t plane = 0; plane < PlanesOf(frame.pixels); ++plane) {
    const uint64_t row = RowBytes(frame);
    const uint64_t stride = StrideOf(frame, plane);
    if (stride < row) {
      return Refuse(
          port, absl::StrCat("stride ", stride, " of plane ", plane,
                             " is less than the ", row, " bytes of a row of ",
                             frame.width, " pixels in ", NameOf(frame.pixels)));
    }
    // The last row need not be followed by padding.
    sizes[plane] = stride * (RowsOf(frame, plane) - 1) + row;
  }
  return sizes;
}

size_t FrameScratch(const Shape& shape) {
  if (shape.size() != 4 || shape[0] != 1 || shape[1] != 3) return 0;
  return Room::Bytes(shape[3], shape[2], nullptr, nullptr);
}

std::optional<std::span<const std::byte>> ConvertFrame(
    const FrameFormat& frame, const FramePlanes& planes, const Shape& shape,
    std::byte* scratch, size_t* gone) {
  const int64_t height = shape[2];
  const int64_t width = shape[3];
  Room room;
  Room::Bytes(width, height, &room, scratch);
  Conversion conversion(frame, planes, room);
  if (!conversion.Run(width, height, gone)) return std::nullopt;
  return std::as_bytes(
      std::span(room.picture, static_cast<size_t>(width * height * 3)));
}

}  // namespace rknnd::soft
