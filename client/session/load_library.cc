// Called on the program's threads, when a session opens.

#include "client/session/load_library.h"

#include <dlfcn.h>

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// The folder this code was loaded from, with its slash; "" if unknown.
std::string OwnFolder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&OwnFolder), &info) == 0 ||
      info.dli_fname == nullptr) {
    return "";
  }
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

const char* LoaderError() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is per thread
  const char* error = dlerror();
  return error == nullptr ? "no reason given" : error;
}

// RTLD_LOCAL: abseil, protobuf and gRPC stay apart from the program's.
constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;

bool IsLoaded(const char* soname) {
  if (*soname == '\0') return false;
  void* const library = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

bool HasSanitizer() {
  // A function of every runtime.
  return dlsym(RTLD_DEFAULT, "__sanitizer_set_report_fd") != nullptr;
}

int ModeOf(const LoadedName& wanted) {
  if (!wanted.needs_grpc) return kMode;
  // The loader gives the library those that are there, and a program that was
  // linked with them may have taken their variables into its own memory, where
  // their initialisers have filled them: there they are to be looked for.
  if (IsLoaded(RKNND_SONAME_GRPC) || IsLoaded(RKNND_SONAME_PROTOBUF)) {
    return kMode;
  }
  // Sanitizers stand before the C library themselves and refuse it.
  return HasSanitizer() ? kMode : kMode | RTLD_DEEPBIND;
}

}  // namespace

Expected<void*> LoadFunction(const LoadedName& wanted) {
  const int mode = ModeOf(wanted);
  void* library = nullptr;
  const std::string folder = OwnFolder();
  if (!folder.empty()) {
    library = dlopen((folder + wanted.library).c_str(), mode);
  }
  std::string beside_error;
  if (library == nullptr && !folder.empty()) {
    beside_error = std::string(LoaderError()) + "; ";
  }
  if (library == nullptr) library = dlopen(wanted.library, mode);
  if (library == nullptr) {
    return Error{Code::kUnavailable, std::string("target ") + wanted.target +
                                         " needs " + wanted.library + ": " +
                                         beside_error + LoaderError()};
  }
  void* const function = dlsym(library, wanted.name);
  if (function == nullptr) {
    return Error{Code::kUnavailable, std::string(wanted.library) +
                                         " is of another version: install "
                                         "both libraries from one package"};
  }
  return function;
}

}  // namespace rknnd::client
