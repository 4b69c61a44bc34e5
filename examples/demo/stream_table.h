// The table of the running cameras: in place on a terminal, else once at the
// end.

#ifndef EXAMPLES_DEMO_STREAM_TABLE_H_
#define EXAMPLES_DEMO_STREAM_TABLE_H_

#include <string>
#include <vector>

#include "examples/demo/figures.h"

namespace rknnd::demo {

// Thread: one.
class StreamTable {
 public:
  explicit StreamTable(bool live);

  // Over what was printed before, if live.
  void Update(const std::vector<StreamFigures>& streams);
  // The last time.
  void Finish(const std::vector<StreamFigures>& streams);
  // A line of text that stays, above the table.
  void Say(const std::string& text);

 private:
  void Print(const std::vector<StreamFigures>& streams);
  void GoUp();

  const bool live_;
  size_t printed_ = 0;  // lines that the next Print goes over
};

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_STREAM_TABLE_H_
