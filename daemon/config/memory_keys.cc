// Keys of memory: where buffers come from, and what of the SoC's bus users may
// reach.

#include <string>

#include "daemon/config/key_table.h"
#include "daemon/config/value_types.h"

namespace rknnd {

using driver::HeapConfig;
using driver::PhysicalWindow;

void AddMemoryKeys(KeyTable<Config>& table) {
  table
      .Restart("memory.heaps", HeapOrder(),
               At<&Config::heaps, &HeapConfig::order>,
               "Heaps that buffers come from, best first; `memfd` is always "
               "the last.")
      .Unset("all that this kernel has")
      .Example("[\"dma_heap:system\", \"udmabuf\"]");
  table.Restart("memory.dma32", Flag(), At<&Config::heaps, &HeapConfig::dma32>,
                "Whether all memory is below 4 GB, as an RGA2 needs it.");
  table.Restart("memory.contiguous", Flag(),
                At<&Config::heaps, &HeapConfig::contiguous>,
                "Whether all memory is in one piece, as an NPU without IOMMU "
                "needs it.");
  table.Restart("memory.isolate",
                OneOf<bool>({{"strict", true}, {"off", false}}),
                At<&Config::isolate>,
                "`\"strict\"`: internal memory is cleared between sessions; "
                "`\"off\"`: it is not.");

  const std::string list = "physical_memory";
  KeyTable<PhysicalWindow> windows;
  windows
      .Restart(list + ".uid", Number(0), At<&PhysicalWindow::uid>,
               "The user who may reach a range by "
               "`rknn_create_mem_from_phys`. The unit has to be relaxed, too: "
               "docs/operations.md.")
      .Required("1000");
  windows
      .Restart(list + ".begin", Number(0), At<&PhysicalWindow::begin>,
               "Its first address.")
      .Required("0x9000_0000");
  windows
      .Restart(list + ".size", Bytes(1), At<&PhysicalWindow::size>,
               "How many bytes it has.")
      .Required("0x0100_0000");
  windows.Restart(list + ".device", Text(), At<&PhysicalWindow::device>,
                  "The file where an offset is an address.");
  table.List(
      list, windows,
      [](const auto& /*file*/, const PhysicalWindow& window, bool /*good*/,
         Config& config, const Findings& /*findings*/) {
        config.physical_memory.push_back(window);
      },
      At<&Config::physical_memory>);
}

}  // namespace rknnd
