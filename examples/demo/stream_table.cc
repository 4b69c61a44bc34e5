// See stream_table.h.

#include "examples/demo/stream_table.h"

#include <cstdio>

namespace rknnd::demo {

StreamTable::StreamTable(bool live) : live_(live) {
  // What is printed above: through a pipe too, the film is seen to begin.
  std::fflush(stdout);
}

void StreamTable::Update(const std::vector<StreamFigures>& streams) {
  if (live_) Print(streams);
}

void StreamTable::Finish(const std::vector<StreamFigures>& streams) {
  Print(streams);
}

void StreamTable::Say(const std::string& text) {
  GoUp();
  std::printf("%s%s\n", text.c_str(), live_ ? "\033[K" : "");
  std::fflush(stdout);
}

void StreamTable::Print(const std::vector<StreamFigures>& streams) {
  GoUp();
  // Each line is cleared to its end.
  const char* clear = live_ ? "\033[K" : "";
  std::printf("  %-10s %7s %7s %5s %9s %9s %6s  %s%s\n", "stream", "frames",
              "fps", "rate", "p50 ms", "p99 ms", "boxes", "picture", clear);
  for (size_t i = 0; i < streams.size(); ++i) {
    const StreamFigures& stream = streams[i];
    std::printf("  camera %-3zu %7zu %7.1f %5g %9.2f %9.2f %6zu  %s%s\n", i,
                stream.frames, stream.fps, stream.rate,
                Percentile(stream.latencies_us, 0.5) / 1000,
                Percentile(stream.latencies_us, 0.99) / 1000, stream.boxes,
                stream.picture.c_str(), clear);
  }
  std::fflush(stdout);
  printed_ = streams.size() + 1;
}

void StreamTable::GoUp() {
  if (printed_ > 0) std::printf("\033[%zuA", printed_);
  printed_ = 0;
}

}  // namespace rknnd::demo
