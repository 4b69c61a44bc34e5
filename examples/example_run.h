// Runs a program of bin/examples as a reader would, with a daemon of its own.
// For the tests of the folders below.

#ifndef EXAMPLES_EXAMPLE_RUN_H_
#define EXAMPLES_EXAMPLE_RUN_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rknnd::examples {

// Whether the program ends with 0, and the daemon too; what it said otherwise.
testing::AssertionResult RunsWell(const std::string& program,
                                  std::vector<std::string> arguments);

}  // namespace rknnd::examples

#endif  // EXAMPLES_EXAMPLE_RUN_H_
