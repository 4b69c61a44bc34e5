// The verbs that tell about one model's file or its layers.

#include <cstdlib>
#include <memory>

#include "client/ctl/accuracy/accuracy.h"
#include "client/ctl/control_connection.h"
#include "client/ctl/models/bench.h"
#include "client/ctl/models/dump.h"
#include "client/ctl/models/fixture.h"
#include "client/ctl/models/info.h"
#include "client/ctl/models/perf.h"
#include "client/ctl/verbs/verb.h"

namespace rknnd::client {
namespace {

using base::Expected;

constexpr char kInputs[] =
    "one file for each input, in order, as for infer; none: noise, the same "
    "each time";

RunVerb DeclarePerf(CLI::App& verb) {
  struct Options {
    PerfOptions perf;
    std::string core_mask = "auto";
  };
  const auto options = std::make_shared<Options>();
  AddModel(verb, options->perf.model);
  AddInputs(verb, options->perf.inputs, kInputs);
  AddCoreMask(verb, options->core_mask);
  verb.add_option("--runs", options->perf.runs,
                  "of the whole model, after those of its layers")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb.add_flag("--fix-freq", options->perf.fix_freq,
                "the board's clocks at their highest meanwhile, and as they "
                "were behind it");
  return [options](const Common& common) -> VerbEnd {
    PerfOptions& perf = options->perf;
    const auto mask = ParseCoreMask(options->core_mask);
    if (!mask) return BadUsage(FaultOfCoreMask(options->core_mask));
    perf.core_mask = *mask;
    perf.target = common.target;
    perf.json = common.json;
    return {Perf(perf)};
  };
}

RunVerb DeclareDump(CLI::App& verb) {
  const auto options = std::make_shared<DumpOptions>();
  AddModel(verb, options->model);
  AddInputs(verb, options->inputs, kInputs);
  verb.add_option("--output-dir", options->output_dir,
                  "an empty folder, or one to make")
      ->required()
      ->type_name("DIR");
  verb.footer(
      "Files: <ID>_<OpType>_<tensor>.npy, ID as perf shows it. 8-bit and\n"
      "half-precision tensors are written as float32, axes in the model's\n"
      "order.");
  return [options](const Common& /*common*/) -> VerbEnd {
    return {DumpLayers(*options)};
  };
}

RunVerb DeclareRecord(CLI::App& verb) {
  struct Options {
    RecordOptions record;
    std::string compare;
  };
  const auto options = std::make_shared<Options>();
  AddModel(verb, options->record.model);
  CLI::Option* inputs = AddInputs(verb, options->record.inputs, kInputs);
  CLI::Option* output =
      verb.add_option("--output-dir", options->record.output_dir,
                      "an empty folder, or one to make")
          ->type_name("DIR");
  verb.add_option("--compare", options->compare,
                  "run it as it was recorded there, and compare all tensors")
      ->excludes(inputs)
      ->excludes(output)
      ->type_name("DIR");
  verb.footer("--compare ends with 1 when a tensor differs.");
  return [options](const Common& /*common*/) -> VerbEnd {
    if (options->compare.empty()) {
      if (!options->record.output_dir.empty()) {
        return {RecordFixture(options->record)};
      }
      return BadUsage("record needs --output-dir DIR, or --compare DIR");
    }
    Expected<FixtureComparison> compared =
        CompareFixture(options->record.model, options->compare);
    if (!compared) return {std::move(compared).error()};
    return {std::move(compared->output), compared->same ? kOk : kFailed};
  };
}

RunVerb DeclareAccuracy(CLI::App& verb) {
  const auto options = std::make_shared<AccuracyOptions>();
  AddModel(verb, options->model, "the ONNX file");
  AddInputs(verb, options->inputs,
            "one file for each input, in order, as for infer")
      ->required();
  verb.add_option("--golden", options->golden,
                  "the float model to compare with; if not given, MODEL as "
                  "if nothing in it were quantised")
      ->type_name("MODEL");
  verb.add_option("--output-dir", options->output_dir,
                  "for the tensors and the table; what an earlier analysis "
                  "left there is replaced")
      ->capture_default_str()
      ->type_name("DIR");
  verb.footer(
      "Runs on the software NPU in this process, and on the target where\n"
      "one is named (--target, RKNND_TARGET). Cosines below 0.99 are yellow,\n"
      "below 0.9 red.");
  return [options](const Common& common) -> VerbEnd {
    options->target = common.target;
    options->json = common.json;
    return {Accuracy(*options)};
  };
}

RunVerb DeclareInfo(CLI::App& verb) {
  const auto options = std::make_shared<InfoOptions>();
  verb.add_option("FILE", options->file, "an ONNX or .rknn file")->required();
  CLI::Option* program = verb.add_flag(
      "--program", options->program,
      "of a .rknn file all tasks too: layers and registers by name");
  verb.add_option("--diff", options->diff,
                  "only what another .rknn file has the NPU do otherwise")
      ->needs(program)
      ->type_name("OTHER");
  return [options](const Common& common) -> VerbEnd {
    // What a file is can be told without a daemon, too. The library reads this
    // at its first call; no other thread is there yet.
    if (common.target.empty() && !ControlConnection::Open("")) {
      ::setenv("RKNND_TARGET", "local:", 1);  // NOLINT(concurrency-mt-unsafe)
    } else if (common.target != "local:") {
      options->daemon = common.target.empty() ? kDefaultTarget : common.target;
    }
    return {Info(*options)};
  };
}

constexpr Verb kModelVerbs[] = {
    {"perf", "what each layer of a model costs, and which types cost most",
     DeclarePerf},
    {"dump", "run a model once and write each layer's output as .npy",
     DeclareDump},
    {"record", "keep a run, tensor by tensor, for another machine to compare",
     DeclareRecord},
    {"accuracy", "how far each layer is from the same layer in float32",
     DeclareAccuracy},
    {"info", "what a model file is: inputs, outputs, target, versions",
     DeclareInfo},
};

}  // namespace

std::span<const Verb> ModelVerbs() { return kModelVerbs; }

}  // namespace rknnd::client
