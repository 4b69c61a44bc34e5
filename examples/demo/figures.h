// What a camera process tells the demo about its stream, one line of JSON each,
// and what the demo makes of it.

#ifndef EXAMPLES_DEMO_FIGURES_H_
#define EXAMPLES_DEMO_FIGURES_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace rknnd::demo {

struct StreamFigures {
  size_t frames = 0;
  double fps = 0;
  // What it films at; 0 while it measures how much the machine computes.
  double rate = 0;
  size_t lost = 0;  // frames that nobody took, likewise since the line before
  // From the captured frame to its boxes. In a line: of each frame since the
  // line before.
  std::vector<double> latencies_us;
  size_t boxes = 0;  // in the last frame
  // With the last line:
  bool done = false;
  uint64_t copied_bytes = 0;
  std::string picture;
};

nlohmann::json ToJson(const StreamFigures& figures);
// Nothing for a line that is none.
std::optional<StreamFigures> ToStreamFigures(const std::string& line);
// What the lines so far say and the next one: its figures, and the latencies of
// both.
void Continue(StreamFigures& so_far, StreamFigures next);

// The value that `share` of them are not above; 0 of none.
double Percentile(std::vector<double> values, double share);

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_FIGURES_H_
