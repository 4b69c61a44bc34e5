// Writes a FlatBuffer front to back: a table first, what it points at behind
// it, so that all offsets lead forward as the format demands.

#include "driver/rknn_file/testing/rknn_builder.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

namespace rknnd::rknn_file::testing {
namespace {

class Writer {
 public:
  // What a field is made of: bytes in the table itself, or something behind it
  // whose offset stands there.
  struct Field {
    std::string inline_bytes;
    std::function<size_t(Writer&)> write;
  };
  using Fields = std::map<uint32_t, Field>;

  template <class T>
  static Field Number(T value) {
    return {std::string(reinterpret_cast<const char*>(&value), sizeof value),
            nullptr};
  }
  static Field Text(const std::string& text) {
    return {"", [text](Writer& writer) {
              writer.Align(4);
              const size_t at = writer.bytes_.size();
              writer.Put(static_cast<uint32_t>(text.size()));
              writer.bytes_ += text + '\0';
              return at;
            }};
  }
  template <class T>
  static Field Numbers(const std::vector<T>& values) {
    return {"", [values](Writer& writer) {
              writer.Align(4);
              const size_t at = writer.bytes_.size();
              writer.Put(static_cast<uint32_t>(values.size()));
              for (const T& value : values) writer.Put(value);
              return at;
            }};
  }
  static Field Table(const Fields& fields) {
    return {"", [fields](Writer& writer) { return writer.Write(fields); }};
  }
  static Field Tables(const std::vector<Fields>& tables) {
    return {"", [tables](Writer& writer) {
              writer.Align(4);
              const size_t at = writer.bytes_.size();
              writer.Put(static_cast<uint32_t>(tables.size()));
              const size_t list = writer.bytes_.size();
              for (size_t i = 0; i < tables.size(); ++i) {
                writer.Put(uint32_t{0});
              }
              for (size_t i = 0; i < tables.size(); ++i) {
                writer.PointAt(list + 4 * i, writer.Write(tables[i]));
              }
              return at;
            }};
  }

  // The whole buffer.
  std::string Finish(const Fields& root) {
    Put(uint32_t{0});
    bytes_ += "RKNN";
    PointAt(0, Write(root));
    return bytes_;
  }

 private:
  template <class T>
  void Put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Align(size_t to) {
    while (bytes_.size() % to != 0) bytes_ += '\0';
  }
  void PointAt(size_t from, size_t to) {
    const auto ahead = static_cast<uint32_t>(to - from);
    std::memcpy(bytes_.data() + from, &ahead, sizeof ahead);
  }

  // The table's place.
  size_t Write(const Fields& fields) {
    const uint32_t slots = fields.empty() ? 0 : fields.rbegin()->first + 1;
    Align(8);
    const size_t vtable = bytes_.size();
    bytes_.append(4 + size_t{slots} * 2, '\0');
    Align(8);
    const size_t table = bytes_.size();
    Put(static_cast<int32_t>(table - vtable));
    std::map<uint32_t, size_t> places;
    for (const auto& [slot, field] : fields) {
      const size_t size =
          field.write ? sizeof(uint32_t) : field.inline_bytes.size();
      Align(size);
      places[slot] = bytes_.size();
      const auto offset = static_cast<uint16_t>(bytes_.size() - table);
      std::memcpy(bytes_.data() + vtable + 4 + size_t{slot} * 2, &offset,
                  sizeof offset);
      bytes_ += field.write ? std::string(4, '\0') : field.inline_bytes;
    }
    const auto vtable_size = static_cast<uint16_t>(4 + slots * 2);
    const auto table_size = static_cast<uint16_t>(bytes_.size() - table);
    std::memcpy(bytes_.data() + vtable, &vtable_size, sizeof vtable_size);
    std::memcpy(bytes_.data() + vtable + 2, &table_size, sizeof table_size);
    for (const auto& [slot, field] : fields) {
      if (field.write) PointAt(places[slot], field.write(*this));
    }
    return table;
  }

  std::string bytes_;
};

Writer::Fields TensorFields(const TensorSpec& tensor) {
  return {{0, Writer::Number(tensor.type)},
          {1, Writer::Number(uint8_t{0x40})},
          {2, Writer::Number(tensor.tensor_class)},
          {3, Writer::Numbers(tensor.native_shape)},
          {4, Writer::Numbers(tensor.shape)},
          {5, Writer::Text(tensor.name)},
          {10, Writer::Numbers(tensor.scale)},
          {11, Writer::Numbers(tensor.zero_point)},
          {12, Writer::Number(tensor.bytes)},
          {13, Writer::Number(tensor.offset)}};
}

}  // namespace

FileSpec SmallModel() {
  FileSpec spec;
  TensorSpec x;
  x.name = "x";
  TensorSpec y;
  y.name = "y";
  y.tensor_class = 2;
  y.shape = {1, 4};
  y.native_shape = {1, 1, 1, 1, 16};
  y.bytes = 64;
  y.offset = 1024;
  TensorSpec weight;
  weight.name = "w";
  weight.tensor_class = 4;
  weight.bytes = 100;
  spec.tensors = {x, y, weight};
  spec.nodes = {{"InputOperator", "InputOperator:x", 0},
                {"ConvRelu", "Conv:c", 2},
                {"OutputOperator", "OutputOperator:y", 0}};
  return spec;
}

std::string Build(const FileSpec& spec) {
  std::vector<Writer::Fields> tensors;
  for (const TensorSpec& tensor : spec.tensors) {
    tensors.push_back(TensorFields(tensor));
  }
  std::vector<Writer::Fields> nodes;
  for (const NodeSpec& node : spec.nodes) {
    nodes.push_back({{1, Writer::Text(node.type)},
                     {2, Writer::Text(node.name)},
                     {3, Writer::Number(node.device)}});
  }
  const Writer::Fields graph = {{0, Writer::Tables(tensors)},
                                {1, Writer::Tables(nodes)},
                                {2, Writer::Numbers(spec.inputs)},
                                {3, Writer::Numbers(spec.outputs)}};
  Writer::Fields root = {{0, Writer::Number(uint32_t{1})},
                         {1, Writer::Text("RKNPU v2")},
                         {2, Writer::Tables({graph})},
                         {7, Writer::Text(spec.versions)},
                         {8, Writer::Text(spec.platform)},
                         {9, Writer::Text(spec.framework)},
                         {12, Writer::Text(spec.input_json)},
                         {13, Writer::Text(spec.output_json)},
                         {14, Writer::Text("1")},
                         {16, Writer::Text("static_shape")}};
  if (spec.sizes.size() == 3) {
    root[19] = Writer::Table({{0, Writer::Number(spec.sizes[0])},
                              {1, Writer::Number(spec.sizes[1])},
                              {2, Writer::Number(spec.sizes[2])}});
  }
  const std::string section = Writer().Finish(root);
  std::string file("RKNN\0\0\0\0", 8);
  const auto put = [&file](uint64_t value) {
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(spec.container_version);
  put(section.size());
  if (spec.container_version != 1) file.append(40, '\0');
  file += section;
  put(spec.json.size());
  return file + spec.json;
}

}  // namespace rknnd::rknn_file::testing
