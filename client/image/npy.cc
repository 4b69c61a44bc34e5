#include "client/image/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "client/image/file.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

struct TypeName {
  ElementType type;
  std::string_view code;  // kind and bytes, as in the header
  const char* name;
  size_t size;
};

constexpr TypeName kTypes[] = {
    {ElementType::kFloat32, "f4", "float32", 4},
    {ElementType::kFloat16, "f2", "float16", 2},
    {ElementType::kInt8, "i1", "int8", 1},
    {ElementType::kUint8, "u1", "uint8", 1},
    {ElementType::kInt16, "i2", "int16", 2},
    {ElementType::kUint16, "u2", "uint16", 2},
    {ElementType::kInt32, "i4", "int32", 4},
    {ElementType::kUint32, "u4", "uint32", 4},
    {ElementType::kInt64, "i8", "int64", 8},
    {ElementType::kBool, "b1", "bool", 1},
    {ElementType::kFloat64, "f8", "float64", 8},
    {ElementType::kUint64, "u8", "uint64", 8},
};

constexpr std::string_view kMagic = "\x93NUMPY";

// Axes of one array. NumPy itself stops at 32.
constexpr size_t kMaxAxes = 32;

const TypeName& Find(ElementType type) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes),
                       [type](const TypeName& t) { return t.type == type; });
}

// The text after `'key':` in the header, which is a Python dictionary; empty if
// there is no such key.
std::string_view ValueOf(std::string_view header, std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = quote + std::string(key) + quote;
    size_t at = header.find(quoted);
    if (at == std::string_view::npos) continue;
    at = header.find(':', at + quoted.size());
    if (at == std::string_view::npos) continue;
    at = header.find_first_not_of(' ', at + 1);
    if (at != std::string_view::npos) return header.substr(at);
  }
  return {};
}

// "(1, 3, 240, 320)", "(10,)" or "()".
std::optional<std::vector<size_t>> ParseShape(std::string_view text) {
  const size_t end = text.find(')');
  if (text.empty() || text.front() != '(' || end == std::string_view::npos) {
    return std::nullopt;
  }
  text = text.substr(1, end - 1);
  std::vector<size_t> shape;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
    if (text.empty()) return shape;
    size_t extent = 0;
    const auto [stop, error] =
        std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || shape.size() == kMaxAxes) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(stop - text.data()));
    shape.push_back(extent);
  }
}

}  // namespace

size_t ElementSize(ElementType type) { return Find(type).size; }

const char* ElementName(ElementType type) { return Find(type).name; }

Expected<Array> ParseNpy(std::span<const std::byte> file,
                         const std::string& path) {
  const auto broken = [&path](const std::string& why) {
    return Error{Code::kInvalidArgument,
                 "array file '" + path + "' cannot be read: " + why};
  };
  const std::string_view text(reinterpret_cast<const char*>(file.data()),
                              file.size());
  if (text.size() < 12 || !text.starts_with(kMagic)) {
    return broken("it does not begin as .npy files do");
  }
  // Magic, two bytes of version, the header's length (two bytes in version 1,
  // four later).
  const auto byte = [&file](size_t i) {
    return std::to_integer<size_t>(file[i]);
  };
  const size_t version = byte(6);
  if (version < 1 || version > 3) {
    return broken("its version " + std::to_string(version) + " is not known");
  }
  const size_t start = version == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > text.size() - start) return broken("its header is cut short");
  const std::string_view header = text.substr(start, length);

  Array array;
  const std::string_view code = ValueOf(header, "descr");
  if (code.size() < 5) return broken("its header has no 'descr'");
  const auto* type = std::find_if(
      std::begin(kTypes), std::end(kTypes),
      [&](const TypeName& t) { return t.code == code.substr(2, 2); });
  const char order = code[1];
  if (type == std::end(kTypes) || (code[4] != '\'' && code[4] != '"') ||
      (order != '<' && order != '|' && order != '=')) {
    return broken(
        "its element type '" +
        std::string(code.substr(1, std::min<size_t>(3, code.size() - 1))) +
        "' is not a little-endian number");
  }
  array.type = type->type;
  if (!ValueOf(header, "fortran_order").starts_with("False")) {
    return broken("it is not in C order: save numpy.ascontiguousarray(x)");
  }
  std::optional<std::vector<size_t>> shape =
      ParseShape(ValueOf(header, "shape"));
  if (!shape) return broken("its header has no 'shape'");
  array.shape = *std::move(shape);
  size_t size = type->size;
  for (const size_t extent : array.shape) {
    if (__builtin_mul_overflow(size, extent, &size)) {
      return broken("its shape is too large");
    }
  }
  const std::span<const std::byte> data = file.subspan(start + length);
  if (data.size() != size) {
    return broken("its shape needs " + std::to_string(size) +
                  " bytes and it has " + std::to_string(data.size()));
  }
  array.bytes.assign(data.begin(), data.end());
  return array;
}

Expected<Array> ReadNpy(const std::string& path) {
  Expected<std::vector<std::byte>> file = ReadFile(path);
  if (!file) return std::move(file).error();
  return ParseNpy(*file, path);
}

Expected<void> WriteNpy(const std::string& path, ElementType type,
                        std::span<const size_t> shape,
                        std::span<const std::byte> bytes) {
  const TypeName& name = Find(type);
  std::string header = "{'descr': '";
  header += name.size == 1 ? '|' : '<';
  header += name.code;
  header += "', 'fortran_order': False, 'shape': (";
  for (const size_t extent : shape) header += std::to_string(extent) + ",";
  header += "), }";
  // The data begins at a multiple of 64, after a line end.
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';

  std::string start(kMagic);
  start += '\1';
  start += '\0';
  start += static_cast<char>(header.size() & 0xff);
  start += static_cast<char>(header.size() >> 8);
  start += header;
  std::vector<std::byte> file(start.size() + bytes.size());
  std::memcpy(file.data(), start.data(), start.size());
  if (!bytes.empty()) {
    std::memcpy(file.data() + start.size(), bytes.data(), bytes.size());
  }
  return WriteFile(path, file);
}

}  // namespace rknnd::client
