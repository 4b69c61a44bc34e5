/* Input and output in memory that the program made itself (guide 9.2.1): what
 * a decoder, a camera or a display would bring. rknn_create_mem_from_fd takes
 * a dma-buf of any of them; here it is a sealed memfd, which every Linux has.
 *
 *   external_io MODEL */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "examples/memory/flow.h"

/* Memory with a descriptor, mapped. It must not become shorter while the NPU
 * works on it: hence the seal, without which it is refused. */
static void* make_memory(uint32_t bytes, int* fd) {
  *fd = memfd_create("frame", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (*fd < 0 || ftruncate(*fd, bytes) != 0 ||
      fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    fail("cannot make memory");
  }
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
  if (memory == MAP_FAILED) fail("cannot map memory");
  return memory;
}

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: external_io MODEL");
  rknn_context context = 0;
  check(rknn_init(&context, argv[1], 0, 0, NULL), "rknn_init");

  /* What the answer must be: the library's own memory. */
  struct tensors own;
  bind_tensors(context, &own);
  const uint64_t wanted = run_once(context, &own);

  /* Input and first output share one descriptor, the output behind the input:
   * an offset says where each begins. */
  rknn_tensor_attr input = picture_attr(context);
  rknn_tensor_attr output = answer_attr(context, 0);
  const uint32_t page = 4096;
  const uint32_t behind = (input.size_with_stride + page - 1) / page * page;
  int fd = -1;
  void* memory = make_memory(behind + output.size_with_stride, &fd);
  rknn_tensor_mem* frame = check_made(
      rknn_create_mem_from_fd(context, fd, memory, input.size_with_stride, 0),
      "input from an fd");
  rknn_tensor_mem* answer = check_made(
      rknn_create_mem_from_fd(context, fd, memory, output.size_with_stride,
                              (int32_t)behind),
      "output from an fd");
  check(rknn_set_io_mem(context, frame, &input), "bind the input");
  check(rknn_set_io_mem(context, answer, &output), "bind the output");

  /* The same picture and network; the answer comes to our memory. */
  struct tensors ours = own;
  ours.mem[0] = frame;
  ours.mem[1] = answer;
  memset(own.mem[1]->virt_addr, 0, own.bytes[1]);
  const int same = run_once(context, &ours) == wanted;
  printf("external I/O: the answer is %s\n", same ? "the same" : "another");

  check(rknn_destroy_mem(context, frame), "rknn_destroy_mem");
  check(rknn_destroy_mem(context, answer), "rknn_destroy_mem");
  free_tensors(context, &own);
  check(rknn_destroy(context), "rknn_destroy");
  munmap(memory, behind + output.size_with_stride);
  close(fd);
  return same ? 0 : 1;
}
