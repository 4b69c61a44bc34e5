// rknnd-run-audit.so: what the dynamic loader asks, in a program started by
// rknnd-run, before it looks for a library (LD_AUDIT, rtld-audit(7)). Whoever
// wants librknnrt.so, linked, by dlopen, or at a path of its own choice such as
// /usr/lib/librknnrt.so, gets the one that stands beside this module; nothing
// else is touched. The path is also answered where no such file exists.
//
// Called by the loader, under its own lock, on any thread that loads a library.
// It lives in a namespace of its own, with a C library of its own: keep it so
// small that nothing in it can fail. It has no la_pltenter or la_symbind, so
// that calls of the program go as fast as without it.

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static const char kLibrary[] = "librknnrt.so";

// Written by la_version() before the loader calls anything else.
static char own_library[PATH_MAX];

EXPORTED unsigned int la_version(unsigned int version);
EXPORTED char* la_objsearch(const char* name, uintptr_t* cookie,
                            unsigned int flag);

// 0 makes the loader go on without this module.
unsigned int la_version(unsigned int version) {
  Dl_info self;
  if (dladdr((void*)(uintptr_t)&la_version, &self) == 0 ||
      self.dli_fname == NULL) {
    return 0;
  }
  const char* const slash = strrchr(self.dli_fname, '/');
  if (slash == NULL) return 0;
  const size_t folder = (size_t)(slash - self.dli_fname) + 1;
  if (folder + sizeof(kLibrary) > sizeof(own_library)) return 0;
  memcpy(own_library, self.dli_fname, folder);
  memcpy(own_library + folder, kLibrary, sizeof(kLibrary));
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

char* la_objsearch(const char* name, uintptr_t* cookie, unsigned int flag) {
  (void)cookie;
  // Later calls carry the paths that the loader makes of it.
  if (flag != LA_SER_ORIG) return (char*)(uintptr_t)name;
  const char* const slash = strrchr(name, '/');
  const char* const base = slash == NULL ? name : slash + 1;
  return strcmp(base, kLibrary) == 0 ? own_library : (char*)(uintptr_t)name;
}
