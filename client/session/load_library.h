// Loads the libraries that not every program needs: the whole daemon for the
// target `local:`, gRPC for `tcp://`.

#ifndef CLIENT_SESSION_LOAD_LIBRARY_H_
#define CLIENT_SESSION_LOAD_LIBRARY_H_

#include <string>

#include "base/values/expected.h"

namespace rknnd::client {

struct LoadedName {
  const char* target;   // for messages: "local:"
  const char* library;  // "librknnd-local.so"
  const char* name;     // the one that it exports
  // It is linked with gRPC, and finds that before the program's own, which may
  // be another version.
  bool needs_grpc = false;
};

// The function of that name. The library is looked for beside this one first,
// then where the loader looks; it stays loaded, and none of its names are seen
// by the program. Thread: any.
base::Expected<void*> LoadFunction(const LoadedName& wanted);

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_LOAD_LIBRARY_H_
