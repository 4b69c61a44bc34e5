// rknnctl mem MODEL: what a model takes of the board's memory.

#ifndef CLIENT_CTL_MODELS_MODEL_MEMORY_H_
#define CLIENT_CTL_MODELS_MODEL_MEMORY_H_

#include <cstdint>
#include <string>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

struct ModelMemory {
  uint64_t weight = 0, internal = 0;
  uint64_t other = 0;  // inputs and outputs
  uint64_t model_size = 0;
};

// In the words of the vendor's eval_memory.
Output ModelMemoryOutput(const ModelMemory& memory);

base::Expected<Output> MemoryOfModel(const std::string& model);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_MODEL_MEMORY_H_
