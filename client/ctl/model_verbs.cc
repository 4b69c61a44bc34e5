#include "client/ctl/model_verbs.h"

#include <vector>

namespace rknnd::client {
namespace {

void AddInputs(CLI::App& verb, std::vector<std::string>& inputs) {
  verb.add_option("--input", inputs,
                  "one file for each input, in order, as for infer; none: "
                  "noise, the same each time")
      ->allow_extra_args(false)
      ->type_name("FILE");
}

}  // namespace

void DeclareModelVerbs(CLI::App& app, ModelVerbs& verbs,
                       std::string& core_mask) {
  CLI::App* perf = app.add_subcommand(
      "perf", "what each layer of a model costs, and which types cost most");
  perf->add_option("MODEL", verbs.perf.model, "the model's file")->required();
  AddInputs(*perf, verbs.perf.inputs);
  perf->add_option("--core-mask", core_mask, "auto, 0, 1, 2, 0_1, 0_1_2 or all")
      ->capture_default_str();

  perf->add_option("--runs", verbs.perf.runs,
                   "of the whole model, after those of its layers")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  perf->add_flag("--fix-freq", verbs.perf.fix_freq,
                 "the board's clocks at their highest meanwhile, and as they "
                 "were behind it");

  CLI::App* dump = app.add_subcommand(
      "dump", "run a model once and write each layer's output as .npy");
  dump->add_option("MODEL", verbs.dump.model, "the model's file")->required();
  AddInputs(*dump, verbs.dump.inputs);
  dump->add_option("--output-dir", verbs.dump.output_dir,
                   "an empty folder, or one to make")
      ->required()
      ->type_name("DIR");
  dump->footer(
      "Files: <ID>_<OpType>_<tensor>.npy, ID as perf shows it. 8-bit and\n"
      "half-precision tensors are written as float32, axes in the model's\n"
      "order.");

  CLI::App* accuracy = app.add_subcommand(
      "accuracy", "how far each layer is from the same layer in float32");
  accuracy->add_option("MODEL", verbs.accuracy.model, "the ONNX file")
      ->required();
  accuracy
      ->add_option("--input", verbs.accuracy.inputs,
                   "one file for each input, in order, as for infer")
      ->required()
      ->allow_extra_args(false)
      ->type_name("FILE");
  accuracy
      ->add_option("--golden", verbs.accuracy.golden,
                   "the float model to compare with; if not given, MODEL as "
                   "if nothing in it were quantised")
      ->type_name("MODEL");
  accuracy
      ->add_option("--output-dir", verbs.accuracy.output_dir,
                   "for the tensors and the table; what an earlier analysis "
                   "left there is replaced")
      ->capture_default_str()
      ->type_name("DIR");
  accuracy->footer(
      "Runs on the software NPU in this process, and on the target where\n"
      "one is named (--target, RKNND_TARGET). Cosines below 0.99 are yellow,\n"
      "below 0.9 red.");

  CLI::App* info = app.add_subcommand(
      "info", "what a model file is: inputs, outputs, target, versions");
  info->add_option("FILE", verbs.info.file, "an ONNX or .rknn file")
      ->required();
  info->add_flag("--program", verbs.info.program,
                 "of a .rknn file all tasks too: layers and registers by name");
}

}  // namespace rknnd::client
