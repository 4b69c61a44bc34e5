// Writes a FlatBuffer front to back: a table first, what it points at behind
// it, so that all offsets lead forward as the format demands. For builders of
// files in tests.

#ifndef DRIVER_RKNN_FILE_TESTING_FLATBUFFER_WRITER_H_
#define DRIVER_RKNN_FILE_TESTING_FLATBUFFER_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rknnd::rknn_file::testing {

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

  // The whole buffer, whose identifier is RKNN.
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

}  // namespace rknnd::rknn_file::testing

#endif  // DRIVER_RKNN_FILE_TESTING_FLATBUFFER_WRITER_H_
