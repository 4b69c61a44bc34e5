// How operators come to a context: checked, and the model loaded once more as
// one whose parts end at them.

#ifndef CLIENT_RKNNRT_CUSTOM_REGISTRATION_H_
#define CLIENT_RKNNRT_CUSTOM_REGISTRATION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "client/include/rknn_custom_op.h"
#include "client/rknnrt/context/context.h"
#include "client/rknnrt/outcome.h"

namespace rknnd::client {

// Whether `op` can be registered beside `known`.
Outcome CheckCustomOperator(const rknn_custom_op& op,
                            const std::vector<rknn_custom_op>& known);

// The operators that a program has registered so far, and those of `ops`: the
// context behind `handle` becomes one that calls them. What was bound to it
// before is bound anew. After a failure it is as it was. An operator of the
// program's takes the place of a plug-in's.
Outcome RegisterCustomOperators(uint32_t handle, Context& context,
                                std::span<const rknn_custom_op> ops);

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CUSTOM_REGISTRATION_H_
