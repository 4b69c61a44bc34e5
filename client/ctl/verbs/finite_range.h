// A range of numbers on a command line. CLI11's own lets "nan" pass, which is
// neither below nor above anything.

#ifndef CLIENT_CTL_VERBS_FINITE_RANGE_H_
#define CLIENT_CTL_VERBS_FINITE_RANGE_H_

#include <string>

#include "CLI/CLI.hpp"

namespace rknnd::client {

// `lowest` and `highest` are finite, and allowed.
inline CLI::Validator FiniteRange(double lowest, double highest) {
  const std::string range =
      CLI::detail::to_string(lowest) + " to " + CLI::detail::to_string(highest);
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= lowest &&
            value <= highest) {
          return "";
        }
        return "'" + text + "' is not a number from " + range;
      },
      range);
}

}  // namespace rknnd::client

#endif  // CLIENT_CTL_VERBS_FINITE_RANGE_H_
