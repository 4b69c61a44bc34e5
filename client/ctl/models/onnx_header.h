// Who made an ONNX file, for which versions, and what it says about itself in
// metadata_props: the fields of its outermost message, without loading the
// network. Of files on the user's own disk, and not trusted either.

#ifndef CLIENT_CTL_MODELS_ONNX_HEADER_H_
#define CLIENT_CTL_MODELS_ONNX_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace rknnd::client {

struct OnnxHeader {
  struct Opset {
    std::string domain;  // "" is ONNX's own
    int64_t version = 0;
  };
  int64_t ir_version = 0;
  std::string producer_name, producer_version;
  std::vector<Opset> opsets;
  std::map<std::string, std::string> metadata;
};

// As much as there is before something that cannot be read.
OnnxHeader ReadOnnxHeader(std::span<const std::byte> file);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_ONNX_HEADER_H_
