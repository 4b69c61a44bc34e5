// How each function that makes a context does so: rknn_init, rknn_dup_context,
// rknnd_init_from_token. Called on the program's threads.

#ifndef CLIENT_RKNNRT_CONTEXT_MAKE_CONTEXT_H_
#define CLIENT_RKNNRT_CONTEXT_MAKE_CONTEXT_H_

#include <cstdint>
#include <memory>

#include "client/rknnrt/context/context.h"
#include "client/session/target.h"
#include "client/target/model_source.h"

namespace rknnd::client {

// Makes a context in the target and gives it a handle. `request`: but its
// number; flags as the program gave them. `source`: null where it is a
// duplicate's; the model's id in `origin` is then the original's.
Outcome MakeContext(ContextRequest request,
                    const std::shared_ptr<ModelSource>& source,
                    ModelOrigin origin, const std::shared_ptr<Target>& target,
                    uint32_t* handle);

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CONTEXT_MAKE_CONTEXT_H_
