// In place of the vendor's librknnrt.so: the same name and one of its
// functions, with an answer that ours never gives.

#include <stdint.h>

__attribute__((visibility("default"))) int rknn_destroy(uint64_t context);

int rknn_destroy(uint64_t context) {
  (void)context;
  return -1000;
}
