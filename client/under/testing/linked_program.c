// A program that was linked to the vendor's library: prints whose it runs with.

#include <stdint.h>
#include <stdio.h>

int rknn_destroy(uint64_t context);

int main(void) {
  puts(rknn_destroy(0) == -1000 ? "vendor" : "rknnd");
  return 0;
}
