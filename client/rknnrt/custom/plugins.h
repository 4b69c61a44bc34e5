// Operators in libraries of the board's: each librkcst_*.so of the folder
// /usr/lib/rknpu/op_plugins exports get_rknn_custom_op(), which gives one. They
// are registered for every model that is loaded, as if the program had done so,
// and run in its process: a plug-in that crashes costs the program that has it,
// and never the daemon.

#ifndef CLIENT_RKNNRT_CUSTOM_PLUGINS_H_
#define CLIENT_RKNNRT_CUSTOM_PLUGINS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/include/rknn_custom_op.h"

namespace rknnd::client {

// The plug-ins of `folder`, by the names of their files, loaded for good. Only
// libraries that none but root can change are loaded, or none but this user
// where the folder is the user's own. What is wrong with one is logged as a
// warning, and the others are loaded.
std::vector<rknn_custom_op> LoadPlugins(const std::string& folder);

// Of the folder that environment variable RKNND_OP_PLUGINS names, or else of
// the board's. Loaded once, at the first call. Thread: any.
const std::vector<rknn_custom_op>& Plugins();

// Registers them for the context behind `handle`. A model for which that fails
// stays as it was, with a warning.
void UsePlugins(uint32_t handle);

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CUSTOM_PLUGINS_H_
