// Keys of faults on demand. What the values of a fault may be is checked when
// the device is known.

#include <string>

#include "daemon/config/key_table.h"
#include "daemon/config/value_types.h"

namespace rknnd {
namespace {

using driver::Fault;

// A day: nobody waits for a driver as long as that.
constexpr uint64_t kMostGiveUpMs = uint64_t{24} * 3600 * 1000;

}  // namespace

void AddFaultKeys(KeyTable<Config>& table) {
  table.Restart("faults.enabled", Flag(),
                At<&Config::faults, &FaultConfig::enabled>,
                "Whether `rknnctl fault` may make things go wrong.");
  table.Restart("faults.give_up_ms", Milliseconds{kMostGiveUpMs},
                At<&Config::faults, &FaultConfig::give_up>,
                "When the modelled driver resets the NPU under a job that "
                "hangs. 0: never.");

  const std::string list = "faults.preset";
  KeyTable<Fault> faults;
  faults
      .Restart(list + ".kind", FaultName(), At<&Fault::kind>,
               "What goes wrong, from the start: `slow`, `hang`, "
               "`wrong-status`, `out-of-memory`, `dead-core`, `crash`, "
               "`incoherent` or `throttle`.")
      .Required("\"slow\"");
  faults
      .Restart(list + ".core", Number(0), At<&Fault::core>,
               "Only jobs on this core.")
      .Unset("all")
      .Example("0");
  faults
      .Restart(list + ".model", Text(), At<&Fault::model>,
               "Only jobs of this model.")
      .Unset("all")
      .Example("\"\"");
  faults.Restart(list + ".after", Number(0), At<&Fault::after>,
                 "So many go well first.");
  faults.Restart(list + ".every", Number(1), At<&Fault::every>,
                 "Of those after them, each so many-th is hit.");
  faults.Restart(list + ".times", Number(0), At<&Fault::times>,
                 "How often in all. 0: without end.");
  faults
      .Restart(list + ".ms", Number(0), At<&Fault::ms>,
               "Milliseconds: `slow`, how much later; `hang`, until it goes "
               "on.")
      .Example("10");
  faults
      .Restart(list + ".factor", Decimal(), At<&Fault::factor>,
               "How many times as slow.")
      .Example("2.0");
  faults.Restart(list + ".bytes", Number(0), At<&Fault::bytes>,
                 "`out-of-memory`: only what is larger.");
  faults
      .Restart(list + ".status", Number(0), At<&Fault::status>,
               "`wrong-status`: what the core reports.")
      .Unset("none")
      .Example("1");
  table.List(
      list, faults,
      [](const auto& /*file*/, const Fault& fault, bool /*good*/,
         Config& config, const Findings& /*findings*/) {
        config.faults.preset.push_back(fault);
      },
      At<&Config::faults, &FaultConfig::preset>);
}

}  // namespace rknnd
