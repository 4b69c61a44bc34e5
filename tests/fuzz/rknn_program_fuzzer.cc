// Compiled model files as programs: whatever the bytes, reading, placing,
// cutting into jobs and checking end with a program that stays in its memory or
// with a reason. Nothing is run.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "driver/rknpu/checker.h"
#include "driver/rknpu/file/program_file.h"
#include "driver/rknpu/placement.h"
#include "driver/rknpu/relocated_commands.h"
#include "driver/rknpu/schedule.h"

namespace {

using rknnd::rknpu::ProgramFile;

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckJobs(const ProgramFile& file,
               const std::vector<rknnd::rknpu::Step>& schedule) {
  for (const auto& step : schedule) {
    Require(!step.on_cpu || step.node < file.nodes.size());
    for (const auto& range : step.piece.ranges) {
      Require(range.first <= file.tasks.size() &&
              range.count <= file.tasks.size() - range.first);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = rknnd::rknpu::Read(std::as_bytes(std::span(data, size)));
  if (!file.ok()) {
    Require(!file.error().message.empty());
    return 0;
  }
  const auto placement = rknnd::rknpu::PlaceTensors(*file);
  if (!placement.ok()) return 0;
  std::vector<std::vector<rknnd::rknpu::Step>> schedules;
  for (uint32_t cores = 1; cores <= 3; ++cores) {
    auto schedule = rknnd::rknpu::MakeSchedule(*file, cores);
    if (!schedule.ok()) continue;
    CheckJobs(*file, *schedule);
    schedules.push_back(*std::move(schedule));
  }
  const auto ports = rknnd::rknpu::CheckProgram(*file, *placement, schedules);
  Require(ports.ok() || !ports.status().message().empty());
  std::vector<uint64_t> words(file->commands.size());
  const rknnd::rknpu::AddressWords places(*file);
  rknnd::rknpu::RelocatedCommands commands(*file, places, words, 0x1000);
  commands.MoveAll(AddressesOf(*placement, {.constants = 0x100000,
                                            .private_memory = 0x200000,
                                            .internal = 0x300000}));
  return 0;
}
