// Frames in place of input tensors, and where they come to lie. Called on the
// program's threads; what the numbers of a frame may be, the daemon knows: here
// they only get their memory.

#include <cstdint>
#include <string>
#include <utility>

#include "base/values/overflow.h"
#include "base/values/picture_fit.h"
#include "client/rknnrt/context/context.h"
#include "client/rknnrt/tensor.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

namespace {

Outcome Wrong(std::string message) {
  return Failure{{Code::kInvalidArgument, std::move(message)}, Subject::kNone};
}

std::string FrameFor(uint32_t index) {
  return "frame for input " + std::to_string(index) + ": ";
}

struct Crop {
  uint32_t x, y, width, height;
};

Expected<Crop> CropOf(uint32_t index, const rknnd_frame& frame) {
  Crop crop = {frame.crop_x, frame.crop_y, frame.crop_width, frame.crop_height};
  if ((crop.x | crop.y | crop.width | crop.height) == 0) {
    crop = {0, 0, frame.width, frame.height};
  }
  if (crop.width == 0 || crop.height == 0 ||
      !base::RangeFits(crop.x, crop.width, frame.width) ||
      !base::RangeFits(crop.y, crop.height, frame.height)) {
    return Error{Code::kInvalidArgument,
                 FrameFor(index) + "the crop of " + std::to_string(crop.width) +
                     "x" + std::to_string(crop.height) + " at " +
                     std::to_string(crop.x) + "," + std::to_string(crop.y) +
                     " has no pixels or is not inside the frame of " +
                     std::to_string(frame.width) + "x" +
                     std::to_string(frame.height)};
  }
  return crop;
}

}  // namespace

Expected<FrameBinding> Context::PlanFrame(uint32_t index,
                                          const rknnd_frame& frame,
                                          const PlaneMemory& memory) const {
  FrameBinding binding;
  binding.format = frame.format;
  binding.width = frame.width;
  binding.height = frame.height;
  binding.crop_x = frame.crop_x;
  binding.crop_y = frame.crop_y;
  binding.crop_width = frame.crop_width;
  binding.crop_height = frame.crop_height;
  binding.fit = frame.fit;
  binding.pad = {frame.pad[0], frame.pad[1], frame.pad[2]};
  binding.bgr_input = frame.bgr_input != 0;
  for (size_t p = 0; p < memory.size(); ++p) {
    if (memory[p] == nullptr) continue;
    const std::string plane = FrameFor(index) + "plane " + std::to_string(p);
    if (p >= binding.planes.size()) {
      return Error{Code::kInvalidArgument,
                   plane + " has memory, but no pixel format has so many"};
    }
    Expected<MemoryRange> range = RangeOf(*memory[p]);
    if (!range.ok()) return std::move(range).error();
    const uint64_t offset = frame.planes[p].offset;
    if (offset >= range->size) {
      return Error{Code::kInvalidArgument,
                   plane + " starts at offset " + std::to_string(offset) +
                       " of a memory of " + std::to_string(range->size) +
                       " bytes"};
    }
    binding.planes[p] = {range->buffer, range->offset + offset,
                         range->size - offset};
    binding.strides[p] = frame.planes[p].stride;
  }
  if (binding.planes[0].buffer == 0) {
    return Error{Code::kInvalidArgument,
                 FrameFor(index) + "the memory of plane 0 is NULL"};
  }
  return binding;
}

Outcome Context::BindFrame(uint32_t index, const rknnd_frame& frame,
                           const PlaneMemory& memory) {
  const base::MutexLock lock(mutex_);
  if (index >= ports_.inputs()) {
    return Wrong(NoSuchTensor("input", index, ports_.inputs()));
  }
  Expected<FrameBinding> binding = PlanFrame(index, frame, memory);
  if (!binding.ok()) {
    return Failure{std::move(binding).error(), Subject::kNone};
  }
  return ports_.BindFrame(index, *binding);
}

Outcome Context::PlaceFrame(uint32_t index, const rknnd_frame& frame,
                            rknnd_placement* placement) const {
  const base::MutexLock lock(mutex_);
  if (!shape_chosen_) return NoShape();
  if (index >= ports_.inputs()) {
    return Wrong(NoSuchTensor("input", index, ports_.inputs()));
  }
  const TensorAttr& input = ports_.shape().inputs[index];
  if (input.dims_count != 4 || input.layout != RKNN_TENSOR_NHWC) {
    return Wrong(FrameFor(index) + "input '" + input.name + "' is no image");
  }
  if (frame.fit > RKNND_FIT_LETTERBOX) {
    return Wrong(FrameFor(index) + "fit " + std::to_string(frame.fit) +
                 " does not exist");
  }
  const Expected<Crop> crop = CropOf(index, frame);
  if (!crop.ok()) return Failure{crop.error(), Subject::kNone};
  const base::PictureFit fit =
      base::FitPicture(crop->width, crop->height, input.dims[2], input.dims[1],
                       frame.fit == RKNND_FIT_LETTERBOX);
  placement->x = fit.x;
  placement->y = fit.y;
  placement->width = fit.width;
  placement->height = fit.height;
  const double scale_x = static_cast<double>(fit.width) / crop->width;
  const double scale_y = static_cast<double>(fit.height) / crop->height;
  placement->scale_x = static_cast<float>(scale_x);
  placement->scale_y = static_cast<float>(scale_y);
  placement->offset_x = static_cast<float>(fit.x - crop->x * scale_x);
  placement->offset_y = static_cast<float>(fit.y - crop->y * scale_y);
  return {};
}

}  // namespace rknnd::client
