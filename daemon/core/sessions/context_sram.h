// What a session's contexts get of the NPU's SRAM, and what it saves them.

#ifndef DAEMON_CORE_SESSIONS_CONTEXT_SRAM_H_
#define DAEMON_CORE_SESSIONS_CONTEXT_SRAM_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "daemon/core/contexts/run_context.h"
#include "daemon/core/memory/sram.h"
#include "daemon/core/models/loaded_model.h"
#include "daemon/core/sessions/context_table.h"
#include "daemon/core/sessions/service_parts.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

struct SramAsker {
  const std::string& holder;  // of the session
  LogSink* log = nullptr;     // is told what it gets; null: nobody
  uint64_t limit = 0;         // bytes that the client asked for; 0: all
};

// What a new context of these cores gets. Thread: loop.
SramLease TakeSram(const ServiceParts& parts, const SramAsker& asker,
                   const ContextTraits& traits, const LoadedModel& model,
                   uint32_t cores);

// DDR bytes that so many bytes of SRAM save a run of a model.
using SramForecasts =
    std::map<std::pair<const LoadedModel*, uint64_t>, uint64_t>;

// What SRAM saves these contexts, into the windows that they have. What has
// been worked out for the report is `known`. Thread: loop.
void AddSramSaved(const ContextTable& contexts, SramReport* report,
                  SramForecasts* known);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SESSIONS_CONTEXT_SRAM_H_
