// Compiled model files as a client may send them: whatever the bytes, the
// reader answers with a description that is bounded, or with a reason; and so
// does the software NPU that is given one.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "driver/rknn_file/rknn_file.h"
#include "driver/soft/import/rknn.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = rknnd::rknn_file::Read(bytes);
  if (file.ok()) {
    Require(file->main_section_bytes <= size);
    Require(file->inputs.size() <= rknnd::rknn_file::kMaxPorts);
    Require(file->outputs.size() <= rknnd::rknn_file::kMaxPorts);
    Require(file->nodes.size() <= rknnd::rknn_file::kMaxNodes);
  } else {
    Require(!file.error().message.empty());
  }
  if (!rknnd::soft::IsCompiled(bytes)) return 0;
  Require(!rknnd::soft::WhyCompiledCannotRun(bytes, "fuzz").ok());
  const auto model = rknnd::soft::DescribeCompiled(bytes, "fuzz");
  Require(model.ok() ? !model->runnable.ok() && model->programs.size() == 1
                     : !model.status().message().empty());
  return 0;
}
