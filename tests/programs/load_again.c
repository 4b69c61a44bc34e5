/* Loads the library, uses it and leaves it, many times, as hosts of plug-ins
 * do: nothing is left behind each time.
 *
 *   load_again LIBRARY MODEL */

#include <dirent.h>
#include <dlfcn.h>

#include "tests/programs/sample.h"

static int entries(const char* path) {
  DIR* const folder = opendir(path);
  int count = 0;
  EXPECT(folder != NULL);
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

static int mappings(void) {
  FILE* const file = fopen("/proc/self/maps", "r");
  int count = 0, c;
  EXPECT(file != NULL);
  while ((c = fgetc(file)) != EOF) count += c == '\n';
  fclose(file);
  return count;
}

/* A function of the library's; C99 has no cast from an object to a function. */
static void find(void* library, const char* name, void* function) {
  void* const symbol = dlsym(library, name);
  EXPECT(symbol != NULL);
  memcpy(function, &symbol, sizeof symbol);
}

int main(int argc, char** argv) {
  int round, files = 0, threads = 0, maps = 0;
  EXPECT(argc == 3);
  for (round = 0; round < 100; ++round) {
    int (*init)(rknn_context*, void*, uint32_t, uint32_t, rknn_init_extend*);
    int (*destroy)(rknn_context);
    rknn_context ctx = 0;
    void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(library != NULL);
    find(library, "rknn_init", &init);
    find(library, "rknn_destroy", &destroy);
    CHECK(init(&ctx, argv[2], 0, 0, NULL));
    CHECK(destroy(ctx));
    EXPECT(dlclose(library) == 0);
    if (round == 10) {
      files = entries("/proc/self/fd");
      threads = entries("/proc/self/task");
      maps = mappings();
    }
  }
  /* 89 rounds later. What was just given back may still be on its way. */
  EXPECT(entries("/proc/self/fd") < files + 10);
  EXPECT(entries("/proc/self/task") < threads + 10);
  EXPECT(mappings() < maps + 10);
  printf("load again: 100 times, %d descriptors\n", files);
  return 0;
}
