// See holder.h.

#include "examples/demo/holder.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

#include "client/include/rknnd.hpp"
#include "examples/demo/detector_context.h"
#include "examples/demo/figures.h"

namespace rknnd::demo {
namespace {

void Hold(const HolderOptions& options) {
  std::vector<std::unique_ptr<DetectorContext>> held;
  for (int i = 0; i < options.streams * options.contexts; ++i) {
    const bool first_of_stream = i % options.contexts == 0;
    const bool duplicate =
        options.duplicates == Duplicates::kAll
            ? i > 0
            : options.duplicates == Duplicates::kPerStream && !first_of_stream;
    // What a duplicate is of makes no difference but that it is its stream's.
    held.push_back(std::make_unique<DetectorContext>(
        duplicate ? held.back()->context().Duplicate()
                  : Context::FromFile(options.model)));
    held.back()->Run();
  }
  std::puts(ToJson(held.back()->context().NpuMemory()).dump().c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}

}  // namespace

int RunHolder(const HolderOptions& options) {
  try {
    Hold(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "holder of '%s': %s\n", options.model.c_str(),
                 error.what());
    return 1;
  }
}

}  // namespace rknnd::demo
