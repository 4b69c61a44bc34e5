// Memory blocks of Rockchip's media process platform (MB_BLK), by the functions
// of it that the program has: nothing of it is linked, or loaded here.

#ifndef CLIENT_RKNNRT_MEDIA_BLOCK_H_
#define CLIENT_RKNNRT_MEDIA_BLOCK_H_

#include "base/values/expected.h"

namespace rknnd::client {

// The descriptor of a block's dma-buf, which stays the platform's.
// kUnimplemented, with what to use instead, where this process has no such
// platform. Thread: any.
base::Expected<int> FdOfMediaBlock(void* block);

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_MEDIA_BLOCK_H_
