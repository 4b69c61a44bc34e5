// What a compiled model file (.rknn) is by its first bytes, and where its main
// section lies. For the reader that describes such files (rknn_file.h) and the
// one that takes them as programs (driver/rknpu/file). The file comes from a
// client and is not trusted.
//
//   0   "RKNN", 4 zero bytes        16  u64 length of the main section
//   8   u64 container version       24  (version 1) or 64: the main section,
//                                       a FlatBuffer; u64 and JSON behind it

#ifndef DRIVER_RKNN_FILE_CONTAINER_H_
#define DRIVER_RKNN_FILE_CONTAINER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/values/expected.h"

namespace rknnd::rknn_file {

enum class Kind : uint8_t {
  kOther,            // none of these
  kRknn,             // can be read here
  kEncrypted,        // "CYPTRKNN"
  kRknn3,            // "RKNX", of the RKNN3 toolkit
  kFirstGeneration,  // "VPMN", of RK1808 and RV1126
};

// Told from the first bytes alone.
Kind KindOf(std::span<const std::byte> bytes);
// "an encrypted .rknn model", for messages.
const char* KindName(Kind kind);

struct Container {
  uint64_t version = 0;
  std::span<const std::byte> section;  // the main one, of the file's bytes
  uint64_t json_bytes = 0;             // of the text behind it
};

// Of a file of Kind::kRknn. kInvalidArgument says which part is damaged.
base::Expected<Container> FindContainer(std::span<const std::byte> bytes);

// "the .rknn file is damaged: `what`".
base::Error Damaged(const std::string& what);

}  // namespace rknnd::rknn_file

#endif  // DRIVER_RKNN_FILE_CONTAINER_H_
