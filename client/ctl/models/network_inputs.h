// A network and what goes into it: files, or noise where there are none.

#ifndef CLIENT_CTL_MODELS_NETWORK_INPUTS_H_
#define CLIENT_CTL_MODELS_NETWORK_INPUTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/ctl/models/network.h"
#include "client/ctl/models/tensor_input.h"

namespace rknnd::client {

// One input for each of the network's: of `files`, in order, or noise where
// there are none.
base::Expected<std::vector<TensorInput>> MakeInputs(
    const Network& network, const std::vector<std::string>& files);

// The model at `path` with these inputs set. `flags` are rknn_init's.
base::Expected<std::unique_ptr<Network>> LoadWithInputs(
    const std::string& path, const std::vector<std::string>& files,
    uint32_t flags = 0);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_NETWORK_INPUTS_H_
