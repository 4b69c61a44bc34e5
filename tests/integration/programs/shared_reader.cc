// A program that reads frames which others read too: one context, whose input
// is memory that it was given by a path. "submit FRAME" begins a shared run,
// "wait FRAME" tells its end; each is answered with a number of the API and,
// for the latter, the first number of the answer.
//
//   integration_shared_reader MODEL MEMORY

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rknn_api.h"
#include "rknnd.h"

namespace {

int Fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, rknnd_last_error());
  return 1;
}

int BindTensor(rknn_context context, rknn_query_cmd which,
               rknn_tensor_mem* memory) {
  rknn_tensor_attr attr{};
  const int code = rknn_query(context, which, &attr, sizeof attr);
  if (code != RKNN_SUCC) return code;
  attr.type = RKNN_TENSOR_FLOAT32;
  return rknn_set_io_mem(context, memory, &attr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  rknn_context context = 0;
  if (rknn_init(&context, argv[1], 0, 0, nullptr) != RKNN_SUCC) {
    return Fail("rknn_init");
  }
  const int fd = open(argv[2], O_RDWR | O_CLOEXEC);
  struct stat about {};
  if (fd < 0 || fstat(fd, &about) != 0) return Fail("open");
  const auto size = static_cast<uint32_t>(about.st_size);
  void* const seen =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  rknn_tensor_mem* const input =
      rknn_create_mem_from_fd(context, fd, seen, size, 0);
  rknn_tensor_mem* const output = rknn_create_mem(context, size);
  if (input == nullptr || output == nullptr) return Fail("memory");
  if (BindTensor(context, RKNN_QUERY_INPUT_ATTR, input) != RKNN_SUCC ||
      BindTensor(context, RKNN_QUERY_OUTPUT_ATTR, output) != RKNN_SUCC) {
    return Fail("rknn_set_io_mem");
  }
  std::puts("ready");
  std::fflush(stdout);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    char* const space = std::strchr(line, ' ');
    if (space == nullptr) return 2;
    const uint64_t frame = std::strtoull(space, nullptr, 10);
    if (std::strncmp(line, "submit", 6) == 0) {
      rknnd_run_options options{};
      options.size = sizeof options;
      options.flags = RKNND_RUN_SHARED;
      options.frame_id = frame;
      std::printf("%d\n", rknnd_submit(context, &options, nullptr));
    } else {
      rknnd_completion done{};
      const int code = rknnd_wait(context, frame, 60000, &done, sizeof done);
      float first = 0;
      std::memcpy(&first, output->virt_addr, sizeof first);
      std::printf("%d %g\n", code, static_cast<double>(first));
      if (code != RKNN_SUCC) std::fprintf(stderr, "%s\n", rknnd_last_error());
    }
    std::fflush(stdout);
  }
  rknn_destroy(context);
  return 0;
}
