// Model files as a client may send them, through the importer: whatever the
// bytes, it answers with a graph or with a reason.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "driver/soft/import/onnx_import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto graph =
      rknnd::soft::ImportOnnx(std::as_bytes(std::span(data, size)), "fuzz");
  if (!graph.ok() && graph.status().message().empty()) std::abort();
  return 0;
}
