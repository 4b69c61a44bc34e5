// See model_set.h.

#include "bench/peers/model_set.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <utility>

#include "bench/common/model_files.h"

namespace rknnd::bench {
namespace {

namespace fs = std::filesystem;

ModelSet Read(const fs::path& folder) {
  const auto meta = nlohmann::json::parse(std::ifstream(folder / "meta.json"));
  ModelSet model;
  model.name = meta.at("name").get<std::string>();
  model.precision = meta.at("precision").get<std::string>();
  model.file = folder / meta.at("file").get<std::string>();
  const auto& set = meta.at("sets").at(0);
  for (const auto& input : set.at("inputs")) {
    model.inputs.push_back(
        {input.at("name").get<std::string>(),
         input.at("dtype").get<std::string>(),
         input.at("shape").get<std::vector<uint32_t>>(),
         folder / set.at("dir").get<std::string>() /
             fs::path(input.at("file").get<std::string>()).filename()});
  }
  return model;
}

}  // namespace

std::vector<ModelSet> FindModelSets(const std::string& names) {
  const std::regex wanted(names);
  std::vector<ModelSet> models;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(SharedModels(), error)) {
    if (!fs::exists(entry.path() / "meta.json")) continue;
    ModelSet model = Read(entry.path());
    if (std::regex_search(model.name, wanted)) {
      models.push_back(std::move(model));
    }
  }
  std::sort(models.begin(), models.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return models;
}

}  // namespace rknnd::bench
