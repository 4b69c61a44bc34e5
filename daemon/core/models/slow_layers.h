// What is said of a model, when it is loaded, that has layers no kernel is made
// for: which they are, and what to change. Called on the loop.

#ifndef DAEMON_CORE_MODELS_SLOW_LAYERS_H_
#define DAEMON_CORE_MODELS_SLOW_LAYERS_H_

#include <string>

#include "driver/model_info.h"

namespace rknnd::core {

// One line; "" where no layer is slow. `name`: the model's, for people. What to
// change comes before the layers, the first five of them by name: clients get
// no more than 1023 bytes of a line.
std::string SlowLayersText(const std::string& name,
                           const driver::ModelInfo& model);

// The same without what to change, which is kSlowLayersRemedy; for the doctor.
std::string SlowLayersFound(const std::string& name,
                            const driver::ModelInfo& model);

// Layers whose weights the file holds have kernels on every CPU.
inline constexpr char kSlowLayersRemedy[] =
    "store its weights in the model as constants (initializers) instead of "
    "computing them while it runs, or export the model quantised to int8";

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_SLOW_LAYERS_H_
