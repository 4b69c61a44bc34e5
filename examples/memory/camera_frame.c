/* A camera's frame as it is: NV12 with padded rows, of which a part is of
 * interest. rknnd.h takes it in place of the input's tensor; conversion,
 * scaling and cropping are the NPU side's work, and no program needs an RGA.
 *
 * The frame is in memory with a descriptor, as V4L2 exports it
 * (VIDIOC_EXPBUF); here it is a sealed memfd.
 *
 *   camera_frame MODEL */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "examples/memory/flow.h"
#include "rknnd.h"

/* 4:3 from the sensor; the network wants 16:9. */
enum { kWidth = 640, kHeight = 480, kStride = 704, kCropHeight = 360 };
enum { kCropTop = (kHeight - kCropHeight) / 2 };
enum { kLuma = kStride * kHeight, kBytes = kLuma * 3 / 2 };

/* Something to see: a slope, with a bright square in it. */
static void film(uint8_t* frame, int left, int top) {
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const int in = x >= left && x < left + 80 && y >= top && y < top + 60;
      frame[y * kStride + x] = (uint8_t)(in ? 235 : 16 + (x + y) / 8);
    }
  }
  memset(frame + kLuma, 128, kLuma / 2);
}

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: camera_frame MODEL");
  rknn_context context = 0;
  struct tensors tensors;
  check(rknn_init(&context, argv[1], 0, 0, NULL), "rknn_init");
  bind_tensors(context, &tensors);

  const int fd = memfd_create("frame", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, kBytes) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    fail("cannot make memory");
  }
  rknn_tensor_mem* memory = check_made(
      rknn_create_mem_from_fd(context, fd, NULL, kBytes, 0), "the frame");

  rknnd_frame frame;
  memset(&frame, 0, sizeof frame);
  frame.format = RKNND_PIXEL_NV12;
  frame.width = kWidth;
  frame.height = kHeight;
  frame.planes[0].memory = memory;
  frame.planes[0].stride = kStride;
  frame.planes[1].memory = memory; /* CbCr behind Y, in the same memory */
  frame.planes[1].offset = kLuma;
  frame.planes[1].stride = kStride;
  frame.crop_y = kCropTop;
  frame.crop_width = kWidth;
  frame.crop_height = kCropHeight;
  check(rknnd_set_input_frame(context, 0, &frame), "rknnd_set_input_frame");

  /* Where a box in the input lies in the frame. */
  rknnd_placement placement;
  check(rknnd_place_frame(context, 0, &frame, &placement, sizeof placement),
        "rknnd_place_frame");
  printf("an input pixel is %.2f pixels of the frame, from row %.0f on\n",
         1 / (double)placement.scale_x,
         -(double)placement.offset_y / (double)placement.scale_y);

  /* A run reads the frame as it is then. What lies outside of the crop makes
   * no difference, what lies in it does. */
  uint8_t* pixels = memory->virt_addr;
  film(pixels, 100, 200);
  const uint64_t inside = answer_of_run(context, &tensors);
  film(pixels, 100, 200);
  memset(pixels, 235, (size_t)kCropTop * kStride);
  const uint64_t above_changed = answer_of_run(context, &tensors);
  film(pixels, 400, 200);
  const uint64_t moved = answer_of_run(context, &tensors);

  rknnd_copy_counters copies;
  check(rknnd_query_copies(context, &copies, sizeof copies), "copies");
  /* A byte for each value of the picture it becomes, whatever type the network
   * computes in. */
  const uint64_t converted = 3 * (uint64_t)picture_attr(context).n_elems;
  const int as_said = inside == above_changed && inside != moved &&
                      copies.to_device_inputs_set == 0 &&
                      copies.to_device_conversion == converted;
  printf("three runs converted %llu bytes; the answers are %s\n",
         (unsigned long long)copies.to_device_conversion,
         as_said ? "as they should be" : "wrong");

  check(rknn_destroy_mem(context, memory), "rknn_destroy_mem");
  free_tensors(context, &tensors);
  check(rknn_destroy(context), "rknn_destroy");
  close(fd);
  return as_said ? 0 : 1;
}
