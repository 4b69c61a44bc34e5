// The networks as ONNX files, for those who start the programs that run them.

#ifndef TESTS_TORTURE_NETWORK_FILES_H_
#define TESTS_TORTURE_NETWORK_FILES_H_

#include <string>

#include "tests/torture/networks.h"

namespace rknnd::torture {

// Writes the network into `folder`. Throws std::runtime_error.
NetworkFile WriteNetwork(const std::string& folder, const Network& network);

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_NETWORK_FILES_H_
