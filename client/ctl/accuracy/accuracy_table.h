// What rknnctl accuracy found of each layer, as the vendor's table (the guide's
// accuracy_analysis) and as JSON. Pure functions.

#ifndef CLIENT_CTL_ACCURACY_ACCURACY_TABLE_H_
#define CLIENT_CTL_ACCURACY_ACCURACY_TABLE_H_

#include <optional>
#include <string>
#include <vector>

#include "client/ctl/accuracy/accuracy_distance.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

// A distance that is missing could not be had: the other side lacks the tensor,
// or has it in another shape.
struct LayerAccuracy {
  std::string name, type;  // of the output tensor; "ConvRelu"
  struct {
    std::optional<Distance> entire, single;
  } simulator;
  struct {
    std::optional<Distance> entire, single_sim;
  } runtime;
};

struct AccuracyReport {
  std::vector<LayerAccuracy> layers;  // in the order of running
  bool has_runtime = false;
  // The first layer with infinities or NaN, and where: "golden", "simulator" or
  // "runtime".
  std::optional<size_t> first_inf;
  std::string inf_in;
  std::vector<std::string> notes;  // whole sentences
  std::string output_dir;
};

// Below it a cosine is yellow, and below the second red. The guide only says
// that low ones are coloured.
inline constexpr double kLowCosine = 0.99;
inline constexpr double kVeryLowCosine = 0.9;

// `color`: with a terminal's escapes.
std::string AccuracyText(const AccuracyReport& report, bool color);
Json AccuracyJson(const AccuracyReport& report);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_ACCURACY_ACCURACY_TABLE_H_
