#include "client/ctl/models/network_inputs.h"

#include <utility>

#include "client/ctl/text/table.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

Expected<std::vector<TensorInput>> MakeInputs(
    const Network& network, const std::vector<std::string>& files) {
  const std::vector<rknn_tensor_attr>& attrs = network.inputs();
  if (!files.empty() && files.size() != attrs.size()) {
    return Error{Code::kInvalidArgument,
                 "the model has " + FormatCount(attrs.size(), "input") +
                     " and not " + std::to_string(files.size()) +
                     ": give --input once for each, in order"};
  }
  std::vector<TensorInput> inputs;
  for (size_t i = 0; i < attrs.size(); ++i) {
    if (files.empty()) {
      inputs.push_back(NoiseInput(attrs[i], static_cast<uint32_t>(i)));
      continue;
    }
    Expected<TensorInput> input = ReadTensorInput(files[i], attrs[i]);
    if (!input) return std::move(input).error();
    inputs.push_back(*std::move(input));
  }
  return inputs;
}

Expected<std::unique_ptr<Network>> LoadWithInputs(
    const std::string& path, const std::vector<std::string>& files,
    uint32_t flags) {
  Expected<std::unique_ptr<Network>> network = Network::Load(path, flags);
  if (!network) return network;
  const Expected<std::vector<TensorInput>> inputs =
      MakeInputs(**network, files);
  if (!inputs) return inputs.error();
  if (Expected<void> set = (*network)->SetInputs(*inputs); !set) {
    return std::move(set).error();
  }
  return network;
}

}  // namespace rknnd::client
