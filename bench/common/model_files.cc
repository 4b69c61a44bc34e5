#include "bench/common/model_files.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace rknnd::bench {

namespace fs = std::filesystem;

fs::path SharedModels() {
  const char* shared = std::getenv("RKNND_SHARED");
  return fs::path(shared != nullptr ? shared : RKNND_SOURCE_ROOT "/../shared") /
         "models";
}

std::string FindSharedModel(const std::string& name) {
  const fs::path path = SharedModels() / name / "model.onnx";
  std::error_code error;
  return fs::exists(path, error) ? path.string() : "";
}

std::string ModelName(const fs::path& path) {
  return path.filename() == "model.onnx"
             ? path.parent_path().filename().string()
             : path.stem().string();
}

std::vector<fs::path> FindModels() {
  std::vector<fs::path> models = {RKNND_SOURCE_ROOT
                                  "/examples/detector/detector.onnx"};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(SharedModels(), error)) {
    const fs::path file = entry.path() / "model.onnx";
    if (fs::exists(file)) models.push_back(file);
  }
  if (error) std::fprintf(stderr, "no ../shared/models (set RKNND_SHARED)\n");
  std::sort(models.begin() + 1, models.end());
  return models;
}

}  // namespace rknnd::bench
