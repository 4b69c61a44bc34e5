// Pictures from and to files, by libjpeg and libpng. What these libraries find
// wrong with a file comes back as their words.

#include <csetjmp>
#include <cstdio>
#include <cstring>

// clang-format off: jpeglib.h needs size_t and FILE before it
#include <jpeglib.h>
#include <png.h>
// clang-format on

#include "client/image/bmp.h"
#include "client/image/file.h"
#include "client/image/image.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

Error Broken(const std::string& path, const char* kind, const char* why) {
  return {Code::kInvalidArgument,
          std::string(kind) + " '" + path + "' cannot be read: " + why};
}

Expected<Image> MakeImage(const std::string& path, size_t width,
                          size_t height) {
  // Either side alone is checked first, so that the product cannot overflow.
  if (width == 0 || height == 0 || width > kMaxPixels ||
      height > kMaxPixels / width) {
    return Error{Code::kInvalidArgument,
                 "image '" + path + "' has " + std::to_string(width) + " x " +
                     std::to_string(height) +
                     " pixels; up to 64 megapixels are read"};
  }
  return Image(static_cast<int>(width), static_cast<int>(height));
}

// ---- JPEG -------------------------------------------------------------------

// libjpeg leaves its functions by error_exit alone, so by longjmp.
struct JpegErrors {
  jpeg_error_mgr manager;
  jmp_buf out;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void LeaveJpeg(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->manager.format_message(info, errors->message);
  longjmp(errors->out, 1);
}

void IgnoreJpegWarning(j_common_ptr /*info*/) {}

// These two have nothing to destroy, as longjmp destroys nothing. False on
// failure, with the reason in `errors`.
bool OpenJpeg(jpeg_decompress_struct* info, JpegErrors* errors,
              const unsigned char* bytes, size_t size) {
  info->err = jpeg_std_error(&errors->manager);
  errors->manager.error_exit = LeaveJpeg;
  errors->manager.output_message = IgnoreJpegWarning;
  if (setjmp(errors->out) != 0) return false;
  jpeg_create_decompress(info);
  jpeg_mem_src(info, bytes, size);
  jpeg_read_header(info, TRUE);
  info->out_color_space = JCS_RGB;
  info->dct_method = JDCT_ISLOW;  // the exact one: same pixels everywhere
  jpeg_calc_output_dimensions(info);
  return true;
}

bool ReadJpegRows(jpeg_decompress_struct* info, JpegErrors* errors,
                  Pixels pixels) {
  if (setjmp(errors->out) != 0) return false;
  jpeg_start_decompress(info);
  while (info->output_scanline < info->output_height) {
    JSAMPROW row = pixels.data + info->output_scanline * pixels.stride;
    jpeg_read_scanlines(info, &row, 1);
  }
  jpeg_finish_decompress(info);
  return true;
}

Expected<Image> DecodeJpeg(const std::string& path,
                           const std::vector<std::byte>& bytes) {
  struct Reader {
    jpeg_decompress_struct info{};
    JpegErrors errors{};
    ~Reader() { jpeg_destroy_decompress(&info); }
  } reader;
  if (!OpenJpeg(&reader.info, &reader.errors,
                reinterpret_cast<const unsigned char*>(bytes.data()),
                bytes.size())) {
    return Broken(path, "JPEG", reader.errors.message);
  }
  Expected<Image> image =
      MakeImage(path, reader.info.output_width, reader.info.output_height);
  if (!image) return image;
  if (!ReadJpegRows(&reader.info, &reader.errors, image->pixels())) {
    return Broken(path, "JPEG", reader.errors.message);
  }
  // libjpeg pads what is missing with grey and calls it a warning.
  if (reader.errors.manager.num_warnings > 0) {
    reader.errors.manager.format_message(
        reinterpret_cast<j_common_ptr>(&reader.info), reader.errors.message);
    return Broken(path, "JPEG", reader.errors.message);
  }
  return image;
}

// ---- PNG --------------------------------------------------------------------

struct Png {
  png_image image{};
  Png() { image.version = PNG_IMAGE_VERSION; }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;
  ~Png() { png_image_free(&image); }
};

Expected<Image> DecodePng(const std::string& path,
                          const std::vector<std::byte>& bytes) {
  Png png;
  if (png_image_begin_read_from_memory(&png.image, bytes.data(),
                                       bytes.size()) == 0) {
    return Broken(path, "PNG", png.image.message);
  }
  Expected<Image> image = MakeImage(path, png.image.width, png.image.height);
  if (!image) return image;
  png.image.format = PNG_FORMAT_RGB;
  const png_color black{0, 0, 0};
  if (png_image_finish_read(&png.image, &black, image->pixels().data,
                            static_cast<png_int_32>(image->pixels().stride),
                            nullptr) == 0) {
    return Broken(path, "PNG", png.image.message);
  }
  return image;
}

bool StartsWith(const std::vector<std::byte>& bytes, const void* start,
                size_t size) {
  return bytes.size() >= size && std::memcmp(bytes.data(), start, size) == 0;
}

}  // namespace

Expected<Image> ReadImage(const std::string& path) {
  Expected<std::vector<std::byte>> bytes = ReadFile(path);
  if (!bytes) return std::move(bytes).error();
  if (StartsWith(*bytes, "\xff\xd8\xff", 3)) return DecodeJpeg(path, *bytes);
  if (StartsWith(*bytes, "\x89PNG\r\n\x1a\n", 8)) {
    return DecodePng(path, *bytes);
  }
  if (IsBmp(*bytes)) return DecodeBmp(path, *bytes);
  return Error{Code::kInvalidArgument,
               "file '" + path + "' is neither a JPEG nor a PNG nor a BMP"};
}

Expected<void> WritePng(const std::string& path, ConstPixels image) {
  Png png;
  png.image.width = static_cast<png_uint_32>(image.width);
  png.image.height = static_cast<png_uint_32>(image.height);
  png.image.format = PNG_FORMAT_RGB;
  std::vector<std::byte> bytes(PNG_IMAGE_PNG_SIZE_MAX(png.image));
  png_alloc_size_t size = bytes.size();
  if (png_image_write_to_memory(&png.image, bytes.data(), &size, 0, image.data,
                                static_cast<png_int_32>(image.stride),
                                nullptr) == 0) {
    return Error{Code::kInternal,
                 "PNG '" + path + "' cannot be made: " + png.image.message};
  }
  return WriteFile(path, std::span(bytes).first(size));
}

}  // namespace rknnd::client
