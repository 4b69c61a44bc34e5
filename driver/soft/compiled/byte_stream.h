// Numbers and texts in a row of bytes, written and read back. What is read may
// be anything: a reader never leaves its bytes, and says at the end whether all
// of it was there.
//
// Used for the compiled form of models, by the thread that loads or keeps one.

#ifndef DRIVER_SOFT_COMPILED_BYTE_STREAM_H_
#define DRIVER_SOFT_COMPILED_BYTE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rknnd::soft {

// Thread: any, one at a time.
class ByteWriter {
 public:
  // In this machine's order: the form is never moved to another one.
  template <class T>
  void Put(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    PutRaw(std::as_bytes(std::span(&value, 1)));
  }
  void PutCount(size_t count) { Put(static_cast<uint64_t>(count)); }
  void PutText(std::string_view text) {
    PutCount(text.size());
    PutRaw(std::as_bytes(std::span(text.data(), text.size())));
  }
  template <class T>
  void PutList(std::span<const T> values) {
    PutCount(values.size());
    for (const T& value : values) Put(value);
  }
  void PutRaw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// After the first number that is not there, everything reads as zero or empty.
// Thread: any, one at a time.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  [[nodiscard]] bool good() const { return good_; }
  // What has been read cannot be meant.
  void Fail() {
    good_ = false;
    rest_ = {};
  }

  template <class T>
  T Get() {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    T value{};
    const std::span<const std::byte> from = GetRaw(sizeof value);
    if (!from.empty()) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  bool GetFlag() {
    const auto value = Get<uint8_t>();
    if (value > 1) Fail();
    return value == 1;
  }
  // How many things of at least `least` bytes follow, at most `most`: no more
  // than there are bytes for, whoever allocates room for them.
  size_t GetCount(size_t least = 1, uint64_t most = UINT64_MAX) {
    const auto count = Get<uint64_t>();
    if (count > most || count > rest_.size() / least) {
      Fail();
      return 0;
    }
    return static_cast<size_t>(count);
  }
  std::string GetText() {
    const std::span<const std::byte> from = GetRaw(GetCount());
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  template <class T>
  std::vector<T> GetList(uint64_t most = UINT64_MAX) {
    std::vector<T> values(GetCount(sizeof(T), most));
    for (T& value : values) value = Get<T>();
    return values;
  }
  // Borrowed.
  std::span<const std::byte> GetRaw(size_t size) {
    if (size > rest_.size()) {
      Fail();
      return {};
    }
    const std::span<const std::byte> taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  [[nodiscard]] size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
  bool good_ = true;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_COMPILED_BYTE_STREAM_H_
