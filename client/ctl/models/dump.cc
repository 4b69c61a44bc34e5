#include "client/ctl/models/dump.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "client/ctl/models/network.h"
#include "client/ctl/models/network_inputs.h"
#include "client/ctl/text/table.h"
#include "client/image/npy.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

std::set<std::string> FilesIn(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".npy") {
      names.insert(entry.path().filename().string());
    }
  }
  return names;
}

}  // namespace

Expected<Output> DumpLayers(const DumpOptions& options) {
  // What is there afterwards is to be this run's.
  if (!FilesIn(options.output_dir).empty()) {
    return Error{Code::kFailedPrecondition,
                 "folder '" + options.output_dir +
                     "' has .npy files already: name an empty one"};
  }
  Expected<std::unique_ptr<Network>> loaded =
      LoadWithInputs(options.model, options.inputs);
  if (!loaded) return std::move(loaded).error();
  Network& network = **loaded;
  if (Expected<void> dumped = network.Dump(options.output_dir); !dumped) {
    return std::move(dumped).error();
  }

  Output output;
  output.json["output_dir"] = options.output_dir;
  output.json["files"] = Json::array();
  Table table({{"FILE"}, {"SHAPE"}, {"TYPE"}});
  for (const std::string& name : FilesIn(options.output_dir)) {
    const Expected<Array> array = ReadNpy(options.output_dir + "/" + name);
    if (!array) return array.error();
    output.json["files"].push_back({{"file", name},
                                    {"shape", array->shape},
                                    {"type", ElementName(array->type)}});
    table.Add({name, FormatShape(array->shape), ElementName(array->type)});
  }
  output.text = table.ToString() + "\n" +
                FormatCount(output.json["files"].size(), "tensor") + " in " +
                options.output_dir +
                (options.inputs.empty() ? ", of noise (no --input)\n" : "\n");
  return output;
}

}  // namespace rknnd::client
