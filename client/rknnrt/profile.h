// What RKNN_LOG_LEVEL makes the library tell beside errors, as the vendor's
// does: from 3 the model and its memory at rknn_init, from 4 the layers' times
// after each run, at 5 each layer's output as .npy files. Called by the C API's
// functions, on the program's threads. Telling never fails a call.

#ifndef CLIENT_RKNNRT_PROFILE_H_
#define CLIENT_RKNNRT_PROFILE_H_

#include <cstdint>
#include <string>

#include "base/values/expected.h"
#include "client/rknnrt/context/context.h"
#include "client/session/target.h"

namespace rknnd::client {

// rknn_init's flags, with RKNN_FLAG_COLLECT_PERF_MASK from level 4.
uint32_t WithProfile(uint32_t flags);
// Of a new context, from level 3.
void TellModel(Target& target, uint32_t context);
// rknn_run.
Outcome RunExtended(Context& context, rknn_run_extend* extend);

// A run whose layers' outputs end in `directory`, which is made if need be.
Outcome RunDumped(Context& context, rknn_run_extend* extend,
                  const std::string& directory);

// Where level 5 writes: the vendor's folder on a board, else "dumps" where the
// program runs.
std::string DumpDirectory();
// Files of a dump, one a tensor. The daemon's names are made harmless.
base::Expected<void> WriteDump(const LayerDump& dump,
                               const std::string& directory);

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_PROFILE_H_
