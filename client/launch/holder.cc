// A process that holds contexts and tells what NPU memory that takes: one way
// of laying them out is one row of the memory table (memory_rows.h).
//
//   rknnd-holder --model FILE [--streams N] [--contexts N]
//                [--duplicates none|stream|all]
//
// Makes the contexts, with memory bound to each, runs each once, says on stdout
// as one line of JSON what is held by then, and holds it until its stdin ends.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/include/rknnd.hpp"
#include "client/launch/memory_rows.h"

namespace rknnd::client {
namespace {

// Which contexts are rknn_dup_context's and not rknn_init's.
enum class Duplicates {
  kNone,
  kPerStream,  // all but the first of each stream
  kAll,        // all but the very first
};

struct Options {
  int streams = 1;
  int contexts = 3;
  Duplicates duplicates = Duplicates::kNone;
  std::string model;
};

// A context with memory of its own on all sides.
class Bound {
 public:
  explicit Bound(Context made) : context_(std::move(made)) {
    for (uint32_t i = 0; i < context_.inputs().size(); ++i) {
      memory_.push_back(context_.AllocateInput(i));
      context_.BindInput(i, memory_.back());
    }
    for (uint32_t i = 0; i < context_.outputs().size(); ++i) {
      memory_.push_back(context_.AllocateOutput(i));
      context_.BindOutput(i, memory_.back());
    }
    context_.Run();
  }

  [[nodiscard]] const Context& context() const { return context_; }

 private:
  Context context_;
  std::vector<Memory> memory_;
};

void Hold(const Options& options) {
  std::vector<Bound> held;
  for (int i = 0; i < options.streams * options.contexts; ++i) {
    const bool first_of_stream = i % options.contexts == 0;
    const bool duplicate =
        options.duplicates == Duplicates::kAll
            ? i > 0
            : options.duplicates == Duplicates::kPerStream && !first_of_stream;
    // What a duplicate is of makes no difference but that it is its stream's.
    held.emplace_back(duplicate ? held.back().context().Duplicate()
                                : Context::FromFile(options.model));
  }
  std::puts(ToJson(held.back().context().NpuMemory()).dump().c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Holds contexts and tells what NPU memory that takes");
  Options options;
  app.add_option("--streams", options.streams)->check(CLI::Range(1, 64));
  app.add_option("--contexts", options.contexts, "of each stream")
      ->check(CLI::Range(1, 64));
  app.add_option("--model", options.model)
      ->required()
      ->check(CLI::ExistingFile);
  const std::map<std::string, Duplicates> kinds = {
      {"none", Duplicates::kNone},
      {"stream", Duplicates::kPerStream},
      {"all", Duplicates::kAll}};
  app.add_option("--duplicates", options.duplicates)
      ->transform(CLI::CheckedTransformer(kinds));
  CLI11_PARSE(app, argc, argv);
  try {
    Hold(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rknnd-holder of '%s': %s\n", options.model.c_str(),
                 error.what());
    return 1;
  }
}

}  // namespace
}  // namespace rknnd::client

int main(int argc, char** argv) { return rknnd::client::Main(argc, argv); }
