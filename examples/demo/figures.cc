// See figures.h.

#include "examples/demo/figures.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rknnd::demo {
namespace {

using nlohmann::json;

// Calls read(document), which may meet any exception of the JSON library.
template <class Read>
auto FromLine(const std::string& line, Read read)
    -> std::optional<decltype(read(json()))> {
  const json document = json::parse(line, nullptr, false);
  try {
    return read(document);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

json ToJson(const StreamFigures& figures) {
  return {{"frames", figures.frames},
          {"fps", figures.fps},
          {"rate", figures.rate},
          {"lost", figures.lost},
          {"latencies_us", figures.latencies_us},
          {"boxes", figures.boxes},
          {"done", figures.done},
          {"copied_bytes", figures.copied_bytes},
          {"picture", figures.picture}};
}

std::optional<StreamFigures> ToStreamFigures(const std::string& line) {
  return FromLine(line, [](const json& document) {
    StreamFigures figures;
    document.at("frames").get_to(figures.frames);
    document.at("fps").get_to(figures.fps);
    document.at("rate").get_to(figures.rate);
    document.at("lost").get_to(figures.lost);
    document.at("latencies_us").get_to(figures.latencies_us);
    document.at("boxes").get_to(figures.boxes);
    document.at("done").get_to(figures.done);
    document.at("copied_bytes").get_to(figures.copied_bytes);
    document.at("picture").get_to(figures.picture);
    return figures;
  });
}

void Continue(StreamFigures& so_far, StreamFigures next) {
  std::vector<double> latencies = std::move(so_far.latencies_us);
  latencies.insert(latencies.end(), next.latencies_us.begin(),
                   next.latencies_us.end());
  so_far = std::move(next);
  so_far.latencies_us = std::move(latencies);
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto count = static_cast<double>(values.size());
  const auto rank = static_cast<size_t>(
      std::clamp(std::ceil(share * count) - 1, 0.0, count - 1));
  std::nth_element(values.begin(),
                   values.begin() + static_cast<ptrdiff_t>(rank), values.end());
  return values[rank];
}

}  // namespace rknnd::demo
