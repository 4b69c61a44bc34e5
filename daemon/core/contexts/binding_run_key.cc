// What two runs must have in common to be one (shared_runs.h), as bytes to
// compare: made on the loop when a binding changes, read by workers.

#include <cstdint>
#include <initializer_list>
#include <string>

#include "daemon/core/contexts/binding_set.h"

namespace rknnd::core {
namespace {

void AppendNumbers(std::string* text, std::initializer_list<uint64_t> numbers) {
  for (const uint64_t number : numbers) {
    text->append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
}

// By what the kernel calls it: whichever fd or number a session has for it.
void AppendMemory(std::string* text, const Buffer& buffer, uint64_t offset,
                  uint64_t bytes) {
  AppendNumbers(text, {buffer.identity().device, buffer.identity().inode,
                       buffer.origin() + offset, bytes});
}

// Its memory beyond the first plane's, and how it is read.
void AppendFrame(std::string* text, const BoundFrame& frame) {
  const driver::FrameFormat& format = frame.request().format;
  AppendNumbers(
      text,
      {static_cast<uint64_t>(format.pixels), format.width, format.height,
       format.crop_x, format.crop_y, format.crop_width, format.crop_height,
       static_cast<uint64_t>(format.fit), format.pad[0], format.pad[1],
       format.pad[2], static_cast<uint64_t>(format.bgr_input)});
  for (const uint32_t stride : format.stride) AppendNumbers(text, {stride});
  for (size_t p = 1; p < frame.buffers().size(); ++p) {
    AppendNumbers(text, {frame.buffers()[p] == nullptr ? uint64_t{0} : 1});
    if (frame.buffers()[p] == nullptr) continue;
    AppendMemory(text, *frame.buffers()[p], frame.request().planes[p].offset,
                 frame.needed()[p]);
  }
}

}  // namespace

void BindingSet::NoteRunKey() {
  run_key_.clear();
  if (inputs_.unbound != 0 || outputs_.unbound != 0) return;
  const auto add_format = [this](const driver::TensorFormat& format) {
    AppendNumbers(&run_key_, {static_cast<uint64_t>(format.type),
                              static_cast<uint64_t>(format.layout),
                              static_cast<uint64_t>(format.pass_through),
                              format.w_stride, format.h_stride});
  };
  AppendNumbers(&run_key_, {row_});
  for (size_t i = 0; i < inputs_.buffers.size(); ++i) {
    AppendMemory(&run_key_, *inputs_.buffers[i], inputs_.bindings[i].offset,
                 inputs_.needed[i]);
    add_format(inputs_.bindings[i].format);
    // Told apart, so that no two meanings have one text.
    AppendNumbers(&run_key_, {inputs_.frames[i] == nullptr ? uint64_t{0} : 1});
    if (inputs_.frames[i] == nullptr) continue;
    AppendFrame(&run_key_, *inputs_.frames[i]);
  }
  for (size_t i = 0; i < outputs_.buffers.size(); ++i) {
    add_format(outputs_.bindings[i].format);
  }
}

}  // namespace rknnd::core
