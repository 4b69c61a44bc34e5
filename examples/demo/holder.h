// A process that holds contexts and tells what NPU memory that takes: one way
// of laying them out is one row of the demo's memory table.

#ifndef EXAMPLES_DEMO_HOLDER_H_
#define EXAMPLES_DEMO_HOLDER_H_

#include <string>

namespace rknnd::demo {

// Which contexts are rknn_dup_context's and not rknn_init's.
enum class Duplicates {
  kNone,
  kPerStream,  // all but the first of each stream
  kAll,        // all but the very first
};

struct HolderOptions {
  int streams = 1;
  int contexts = 3;
  Duplicates duplicates = Duplicates::kNone;
  std::string model;
};

// Makes the contexts, with memory bound to each, runs each once, says on stdout
// as JSON what is held by then, and holds it until its stdin ends. The exit
// code of the process.
int RunHolder(const HolderOptions& options);

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_HOLDER_H_
