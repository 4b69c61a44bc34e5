// rknnctl fault list, set and clear.

#include <memory>

#include "client/ctl/board/fault.h"
#include "client/ctl/control_connection.h"
#include "client/ctl/verbs/verb.h"

namespace rknnd::client {
namespace {

using base::Expected;

void DeclareSet(CLI::App& set, FaultOptions& options) {
  set.add_option("KIND", options.kind, "what goes wrong")
      ->type_name(
          "{slow,hang,wrong-status,out-of-memory,dead-core,crash,incoherent,"
          "throttle}")
      ->required();
  set.add_option("--core", options.core, "only jobs on this core");
  set.add_option("--model", options.model,
                 "only jobs of this model: its name, or 8 or more digits of "
                 "its SHA-256");
  set.add_option("--after", options.after, "so many go well first");
  set.add_option("--every", options.every, "then each N-th is hit")
      ->capture_default_str();
  set.add_option("--times", options.times, "so often in all; 0: no end")
      ->capture_default_str();
  set.add_option("--ms", options.ms,
                 "slow: so much later; hang: until it goes on; crash: until "
                 "the device is back; 0: until cleared");
  set.add_option("--factor", options.factor,
                 "slow, throttle: so many times as long");
  set.add_option("--bytes", options.bytes,
                 "out-of-memory: only what is larger");
  set.add_option("--status", options.status,
                 "wrong-status: what the core reports; 0: done, without "
                 "having run");
}

VerbEnd Do(const FaultOptions& options, const std::string& target) {
  const std::optional<uint64_t> id = ParseFaultId(options.id);
  if (!id) {
    return BadUsage("fault clear: '" + options.id +
                    "' is no fault's number, and not 'all'");
  }
  if (options.model.size() >= sizeof wire::Fault::model) {
    return BadUsage("--model has " + std::to_string(options.model.size()) +
                    " characters: no model's name has");
  }
  Expected<ControlConnection> daemon = ControlConnection::OpenAdmin(target);
  if (!daemon) return {std::move(daemon).error()};
  switch (options.action) {
    case FaultAction::kList: {
      const Expected<wire::FaultList> list = daemon->ListFaults();
      if (!list) return {list.error()};
      return {FaultListOutput(*list)};
    }
    case FaultAction::kSet: {
      const Expected<wire::FaultReport> set =
          daemon->SetFault(ToFaultMessage(options));
      if (!set) return {set.error()};
      return {FaultSetOutput(*set)};
    }
    case FaultAction::kClear: {
      const Expected<void> done = daemon->ClearFault(*id);
      if (!done) return {done.error()};
      return {Output{{{"cleared", options.id}},
                     *id == 0 ? "all faults are cleared\n"
                              : "fault " + options.id + " is cleared\n"}};
    }
  }
  return {base::Error{base::Code::kInternal, "no such action"}};
}

RunVerb DeclareFault(CLI::App& fault) {
  const auto options = std::make_shared<FaultOptions>();
  fault.require_subcommand(1);
  fault.add_subcommand("list", "what is set, and how often it hit")
      ->callback([options] { options->action = FaultAction::kList; });
  CLI::App* clear = fault.add_subcommand("clear", "end one fault, or all");
  clear->add_option("ID", options->id, "a fault's number, or all")
      ->capture_default_str();
  clear->callback([options] { options->action = FaultAction::kClear; });
  CLI::App* set = fault.add_subcommand("set", "from the next job on");
  set->callback([options] { options->action = FaultAction::kSet; });
  DeclareSet(*set, *options);
  return
      [options](const Common& common) { return Do(*options, common.target); };
}

constexpr Verb kFaultVerbs[] = {
    {"fault", "make things go wrong, in a daemon started with --faults",
     DeclareFault},
};

}  // namespace

std::span<const Verb> FaultVerbs() { return kFaultVerbs; }

}  // namespace rknnd::client
