// rknnctl fault: makes things go wrong in a daemon that was started with
// --faults, shows what is set, and clears it. The daemon checks the values; its
// errors name the field.

#ifndef CLIENT_CTL_BOARD_FAULT_H_
#define CLIENT_CTL_BOARD_FAULT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "client/ctl/reports/report.h"
#include "proto/wire/codec.h"

namespace rknnd::client {

enum class FaultAction { kList, kSet, kClear };

struct FaultOptions {
  FaultAction action = FaultAction::kList;
  std::string kind, model;
  std::optional<uint32_t> core, status;
  uint64_t after = 0, every = 1, times = 0, ms = 0, bytes = 0;
  double factor = 0;
  std::string id = "all";  // to clear
};

// The number that `id` is, 0 for "all"; nothing for anything else.
std::optional<uint64_t> ParseFaultId(const std::string& id);

wire::Fault ToFaultMessage(const FaultOptions& options);

// The forms of an answer.
Output FaultListOutput(const wire::FaultList& list);
Output FaultSetOutput(const wire::FaultReport& fault);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_BOARD_FAULT_H_
