// Whom the program wants to be told how far long work is (rknnd_set_progress).
// Told by what sends models and writes dumps, on whichever thread that runs.

#ifndef CLIENT_TARGET_PROGRESS_H_
#define CLIENT_TARGET_PROGRESS_H_

#include <cstdint>

#include "client/include/rknnd.h"

namespace rknnd::client {

// Null: nobody. When it returns the one before is not called any more.
void SetProgress(rknnd_progress callback, void* user);

// Thread: any.
void TellProgress(const char* what, uint64_t done, uint64_t total);

}  // namespace rknnd::client

#endif  // CLIENT_TARGET_PROGRESS_H_
