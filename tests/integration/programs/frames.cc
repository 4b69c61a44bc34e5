// What the runner does with frames and with memory that is known by an address.

#include <cstdlib>
#include <string>

#include "rknnd.h"
#include "tests/integration/programs/commands.h"

namespace rknnd::integration {
namespace {

uint32_t Number(const std::string& word) {
  return static_cast<uint32_t>(std::strtoull(word.c_str(), nullptr, 0));
}

// From words[first] on: FORMAT WIDTH HEIGHT FIT CX CY CW CH.
rknnd_frame FrameOf(const Words& words, size_t first) {
  rknnd_frame frame = {};
  frame.format = Number(words[first]);
  frame.width = Number(words[first + 1]);
  frame.height = Number(words[first + 2]);
  frame.fit = Number(words[first + 3]);
  frame.crop_x = Number(words[first + 4]);
  frame.crop_y = Number(words[first + 5]);
  frame.crop_width = Number(words[first + 6]);
  frame.crop_height = Number(words[first + 7]);
  return frame;
}

}  // namespace

Reply Commands::SetCameraFrame(const Words& words) {
  rknnd_frame frame = FrameOf(words, 2);
  // MEM OFFSET STRIDE for each plane; a name never heard is a null pointer.
  size_t plane = 0;
  for (size_t i = 10; i + 2 < words.size(); i += 3, ++plane) {
    if (plane == RKNND_MAX_PLANES) break;
    frame.planes[plane].memory = Mem(words[i]);
    frame.planes[plane].offset =
        std::strtoull(words[i + 1].c_str(), nullptr, 0);
    frame.planes[plane].stride = Number(words[i + 2]);
  }
  return Answer(rknnd_set_input_frame(Context(words[1]), 0, &frame));
}

Reply Commands::PlaceFrame(const Words& words) {
  const rknnd_frame frame = FrameOf(words, 2);
  rknnd_placement placement = {};
  const int code = rknnd_place_frame(Context(words[1]), 0, &frame, &placement,
                                     sizeof placement);
  return Answer(code, std::to_string(placement.x) + "," +
                          std::to_string(placement.y) + " " +
                          std::to_string(placement.width) + "x" +
                          std::to_string(placement.height) + " scale " +
                          std::to_string(placement.scale_x) + " offset " +
                          std::to_string(placement.offset_x));
}

Reply Commands::CreatePhysical(const Words& words) {
  Memory memory;
  memory.context = Context(words[2]);
  memory.mem = rknn_create_mem_from_phys(
      memory.context, std::strtoull(words[3].c_str(), nullptr, 0), nullptr,
      Number(words[4]));
  if (memory.mem == nullptr) return Answer(RKNN_ERR_FAIL);
  memories_[words[1]] = std::move(memory);
  return {};
}

}  // namespace rknnd::integration
