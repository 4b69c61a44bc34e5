// What both C++ programs of this folder need beside rknnd.hpp: a context of a
// detector with memory for several frames, and pictures that differ.

#ifndef EXAMPLES_RUNS_PICTURES_H_
#define EXAMPLES_RUNS_PICTURES_H_

#include <cstdint>
#include <vector>

#include "rknnd.hpp"

namespace rknnd::examples {

// One set of bindings: a frame and what is found in it.
struct FrameSlot {
  Memory picture;
  std::vector<Memory> answers;
};

// Memory for all tensors of a network with one picture as its input, in `sets`
// sets of bindings. The picture is bytes with channels last, and answers are as
// the NPU leaves them: nothing is copied.
inline std::vector<FrameSlot> BindSets(Context& context, uint32_t sets) {
  const Tensor picture = context.inputs()
                             .at(0)
                             .WithType(RKNN_TENSOR_UINT8)
                             .WithFormat(RKNN_TENSOR_NHWC);
  std::vector<FrameSlot> slots(sets);
  for (uint32_t set = 0; set < sets; ++set) {
    slots[set].picture = context.Allocate(picture);
    context.Bind(set, picture, slots[set].picture);
    for (uint32_t i = 0; i < context.outputs().size(); ++i) {
      const Tensor answer = context.native_output(i);
      slots[set].answers.push_back(context.Allocate(answer));
      context.Bind(set, answer, slots[set].answers.back());
    }
  }
  return slots;
}

// The picture that a camera sees in its frame `number`: the same each time.
inline void Film(const Memory& picture, uint32_t camera, uint64_t number) {
  auto* const pixels = picture.as<uint8_t>();
  uint32_t state = camera * 7919 + static_cast<uint32_t>(number) * 104729 + 1;
  for (uint32_t i = 0; i < picture.size(); ++i) {
    state = state * 1664525 + 1013904223;
    pixels[i] = static_cast<uint8_t>(state >> 24);
  }
}

// A number for all answers together: equal answers, equal numbers.
inline uint64_t Digest(const FrameSlot& slot) {
  uint64_t digest = 14695981039346656037U;
  for (const Memory& answer : slot.answers) {
    const auto* const bytes = answer.as<uint8_t>();
    for (uint32_t i = 0; i < answer.size(); ++i) {
      digest = (digest ^ bytes[i]) * 1099511628211U;
    }
  }
  return digest;
}

}  // namespace rknnd::examples

#endif  // EXAMPLES_RUNS_PICTURES_H_
