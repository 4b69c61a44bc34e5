// The library is found beside the executable (in ../lib, as in a build tree) or
// in the folder that the installation has for rknnd's modules; never by a name
// that a configuration or a client gives.

#include "daemon/network/grpc_library.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/transport/grpc/library.h"

namespace rknnd {
namespace {

// By its whole path: a sanitizer's dlopen does not see the executable's
// RUNPATH, and LD_LIBRARY_PATH has no say in what a daemon loads.
std::string PathOfLibrary() {
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::filesystem::path beside =
      folder.parent_path() / "lib" / kGrpcLibrary;
  if (!error && std::filesystem::exists(beside, error)) return beside;
  return absl::StrCat(RKNND_MODULE_DIR "/", kGrpcLibrary);
}

absl::StatusOr<const transport::GrpcLibraryTable*> Load() {
  // NOW: what it does not find in this executable is said here.
  void* const library =
      dlopen(PathOfLibrary().c_str(), RTLD_NOW | RTLD_NODELETE);
  if (library == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): this thread's own
    const char* const reason = dlerror();
    return absl::FailedPreconditionError(
        absl::StrCat("gRPC is asked for, but this installation has none: ",
                     reason == nullptr ? kGrpcLibrary : reason,
                     "; install the package rknnd-grpc, or take away --grpc "
                     "and 'listen' under [grpc]"));
  }
  const auto function =
      reinterpret_cast<RknndGrpcLibrary>(dlsym(library, kGrpcLibraryFunction));
  const transport::GrpcLibraryTable* const table =
      function == nullptr ? nullptr : function();
  if (table == nullptr || std::string(table->version) != RKNND_VERSION) {
    return absl::FailedPreconditionError(absl::StrCat(
        kGrpcLibrary, " is of version ",
        table == nullptr ? "unknown" : table->version,
        ", rknnd of " RKNND_VERSION ": install the same version of both"));
  }
  return table;
}

}  // namespace

void PrepareGrpc() {
  // Whole frames, also where its memory is short: it reads them in pieces of
  // 8 KiB there otherwise. The relay sees to what frames may hold.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
  setenv("GRPC_EXPERIMENTS", "tcp_frame_size_tuning", /*overwrite=*/0);
}

absl::Status CheckGrpcServer(const transport::GrpcOptions& options) {
  RKNND_ASSIGN_OR_RETURN(const transport::GrpcLibraryTable* const table,
                         Load());
  return table->check(options);
}

absl::StatusOr<std::unique_ptr<transport::GrpcServer>> StartGrpcServer(
    const transport::GrpcOptions& options,
    const transport::GrpcEnvironment& environment) {
  RKNND_ASSIGN_OR_RETURN(const transport::GrpcLibraryTable* const table,
                         Load());
  return table->start(options, environment);
}

}  // namespace rknnd
