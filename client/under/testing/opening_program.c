// A program that opens the library by the names given, one after the other, and
// prints for each whose it got: vendor, rknnd or none.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    void* const library = dlopen(argv[i], RTLD_NOW);
    int (*destroy)(uint64_t) = NULL;
    if (library != NULL) {
      *(void**)&destroy = dlsym(library, "rknn_destroy");
    }
    if (destroy == NULL) {
      puts("none");
    } else {
      puts(destroy(0) == -1000 ? "vendor" : "rknnd");
    }
  }
  return 0;
}
