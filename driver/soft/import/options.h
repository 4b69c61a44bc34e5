// Model options: what the vendor's converter would have baked into a model
// (docs: interfaces, model options). Read from the ONNX file's metadata_props
// `rknn.<name>`, else from the text of the MODEL.yml beside it.

#ifndef DRIVER_SOFT_IMPORT_OPTIONS_H_
#define DRIVER_SOFT_IMPORT_OPTIONS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace rknnd::soft {

struct ModelOptions {
  std::string custom_string;
  std::string target_platform;
};

// `metadata` wins over `yaml`. An option that would change the answers and is
// not built in is an error that names it, never silently dropped.
absl::StatusOr<ModelOptions> ReadOptions(
    const std::map<std::string, std::string>& metadata, const std::string& yaml,
    const std::string& model);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_OPTIONS_H_
