#include "driver/rknn_file/container.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "driver/rknn_file/slots.h"

namespace rknnd::rknn_file {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr uint64_t kOldHeader = 24;  // container version 1

uint64_t LittleEndian(std::span<const std::byte> bytes, uint64_t at) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

Error Damaged(const std::string& what) {
  return {Code::kInvalidArgument, "the .rknn file is damaged: " + what};
}

Kind KindOf(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min<size_t>(bytes.size(), 8));
  if (text.starts_with("CYPTRKNN")) return Kind::kEncrypted;
  if (text.starts_with("RKNN")) return Kind::kRknn;
  if (text.starts_with("RKNX")) return Kind::kRknn3;
  if (text.starts_with("VPMN")) return Kind::kFirstGeneration;
  return Kind::kOther;
}

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kRknn:
      return "a .rknn model";
    case Kind::kEncrypted:
      return "an encrypted .rknn model";
    case Kind::kRknn3:
      return "a model of the RKNN3 toolkit (RKNX)";
    case Kind::kFirstGeneration:
      return "a model for a first-generation NPU (RK1808, RV1126; VPMN)";
    case Kind::kOther:
      break;
  }
  return "no .rknn model";
}

Expected<Container> FindContainer(std::span<const std::byte> bytes) {
  if (bytes.size() < kOldHeader) {
    return Damaged("it ends inside its header, after " +
                   std::to_string(bytes.size()) + " bytes");
  }
  Container container;
  container.version = LittleEndian(bytes, 8);
  const uint64_t size = LittleEndian(bytes, 16);
  constexpr uint64_t kNewest = 64;  // 6 is the newest seen
  if (container.version == 0 || container.version > kNewest) {
    return Damaged("its container version is " +
                   std::to_string(container.version));
  }
  const uint64_t start = container.version == 1 ? kOldHeader : kHeaderBytes;
  if (bytes.size() < start || size > bytes.size() - start) {
    return Damaged("its main section has " + std::to_string(size) +
                   " bytes, the whole file " + std::to_string(bytes.size()));
  }
  // FlatBuffers count in 32 bits.
  constexpr uint64_t kMaxSection = uint64_t{UINT32_MAX} / 2;
  if (size > kMaxSection) {
    return Damaged("its main section has more than 2 GiB");
  }
  container.section = bytes.subspan(start, static_cast<size_t>(size));
  const uint64_t after = start + size;
  if (bytes.size() - after >= sizeof(uint64_t)) {
    container.json_bytes = LittleEndian(bytes, after);
    if (container.json_bytes > bytes.size() - after - sizeof(uint64_t)) {
      return Damaged("its JSON has " + std::to_string(container.json_bytes) +
                     " bytes, the whole file " + std::to_string(bytes.size()));
    }
  }
  return container;
}

}  // namespace rknnd::rknn_file
