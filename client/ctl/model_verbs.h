// The verbs that tell about one model's file or its layers: their command line.

#ifndef CLIENT_CTL_MODEL_VERBS_H_
#define CLIENT_CTL_MODEL_VERBS_H_

#include <string>

#include "CLI/CLI.hpp"
#include "client/ctl/accuracy.h"
#include "client/ctl/dump.h"
#include "client/ctl/info.h"
#include "client/ctl/perf.h"

namespace rknnd::client {

struct ModelVerbs {
  PerfOptions perf;
  DumpOptions dump;
  AccuracyOptions accuracy;
  InfoOptions info;
};

// perf, dump, accuracy, info. Both outlive `app`.
void DeclareModelVerbs(CLI::App& app, ModelVerbs& verbs,
                       std::string& core_mask);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODEL_VERBS_H_
