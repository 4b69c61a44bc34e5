// The table of all verbs, and options that several have.

#include "client/ctl/models/bench.h"
#include "client/ctl/verbs/verb.h"

namespace rknnd::client {

std::vector<Verb> AllVerbs() {
  std::vector<Verb> all;
  for (const std::span<const Verb> some :
       {ReportVerbs(), RunVerbs(), FaultVerbs(), ModelVerbs(), BoardVerbs()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void AddModel(CLI::App& verb, std::string& model, const char* help) {
  verb.add_option("MODEL", model, help)->required();
}

CLI::Option* AddInputs(CLI::App& verb, std::vector<std::string>& inputs,
                       const char* help) {
  return verb.add_option("--input", inputs, help)
      ->allow_extra_args(false)
      ->type_name("FILE");
}

void AddCoreMask(CLI::App& verb, std::string& mask) {
  verb.add_option("--core-mask", mask, "auto, 0, 1, 2, 0_1, 0_1_2 or all")
      ->type_name("MASK")
      ->capture_default_str();
}

std::string FaultOfCoreMask(const std::string& mask) {
  if (ParseCoreMask(mask)) return "";
  return "--core-mask '" + mask + "' is none of auto, 0, 1, 2, 0_1, 0_1_2, all";
}

}  // namespace rknnd::client
