// Jobs: cores that step together, task by task (emulator.h).

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/rknpu/emulator/core_state.h"
#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/emulator/fast/fast_engine.h"
#include "driver/rknpu/emulator/plain/plain_engine.h"
#include "driver/rknpu/emulator/report.h"
#include "driver/rknpu/emulator/work_bounds.h"

namespace rknnd::rknpu {
namespace {

// Enable masks, and the interrupts that go with them.
constexpr uint32_t kConv = 0x1d, kConvAlone = 0x0d, kFlight = 0x18,
                   kPool = 0x60;
constexpr uint32_t kDpuDone = 0x300, kPoolDone = 0xc00;

absl::Status CheckMasks(const Task& task) {
  const uint32_t mask = task.enable_mask;
  if (mask != kConv && mask != kConvAlone && mask != kFlight && mask != kPool) {
    return absl::UnimplementedError(
        absl::StrCat("the enable mask 0x", absl::Hex(mask),
                     " is not known: 0x1d, 0x0d, 0x18 and 0x60 are"));
  }
  if (task.interrupt_mask != (mask == kPool ? kPoolDone : kDpuDone)) {
    return absl::UnimplementedError(
        absl::StrCat("the interrupt mask 0x", absl::Hex(task.interrupt_mask),
                     " is not known with the enable mask 0x", absl::Hex(mask)));
  }
  return absl::OkStatus();
}

// What a task is to do, by its registers; one of them, by its enable mask.
struct TaskSpec {
  ConvSpec conv;
  OutputSpec output;  // with `conv`
  FlightSpec flight;
  PoolSpec pool;
};

absl::Status ReadTask(const Task& task, TaskRegisters registers, TaskSpec& spec,
                      TaskReport& report) {
  switch (task.enable_mask) {
    case kFlight:
      spec.flight = ReadFlight(registers);
      break;
    case kPool:
      spec.pool = ReadPool(registers);
      break;
    default:
      spec.conv = ReadConv(registers);
      spec.output = ReadConvOutput(registers, spec.conv);
      break;
  }
  RKNND_RETURN_IF_ERROR(registers.status());
  switch (task.enable_mask) {
    case kFlight:
      CountFlight(spec.flight, report);
      report.fast = spec.flight.reader.flight == Flight::kCompute;
      break;
    case kPool:
      CountPool(spec.pool, report);
      break;
    default:
      CountConv(spec.conv, spec.output, report);
      report.fast = spec.conv.precision == Precision::kInt8;
      break;
  }
  return absl::OkStatus();
}

// `fast`: null where the plain engine was asked for.
absl::Status Execute(const Task& task, const TaskSpec& spec,
                     const Tables& tables, fast::FastEngine* fast,
                     Access& access, TaskReport& report) {
  report.fast = false;
  switch (task.enable_mask) {
    case kFlight:
      if (!IsBounded(spec.flight, access)) break;
      report.fast =
          fast != nullptr && fast->RunFlight(spec.flight, tables, access);
      if (!report.fast) RunPlainFlight(spec.flight, tables, access);
      break;
    case kPool:
      if (!IsBounded(spec.pool, access)) break;
      RunPlainPool(spec.pool, access);
      break;
    default:
      if (!IsBounded(spec.conv, access)) break;
      report.fast = fast != nullptr &&
                    fast->RunConv(spec.conv, spec.output, tables, access);
      if (!report.fast) RunPlainConv(spec.conv, spec.output, tables, access);
      break;
  }
  return access.status();
}

}  // namespace

struct Machine::Core {
  CoreState state;
  fast::FastEngine fast;

  absl::Status Step(const Task& task, const Task* next, size_t others,
                    const Memory& memory, const RunOptions& options,
                    TaskReport& report) {
    Access access(memory, options);
    if (!access.GoesOn()) return access.status();
    RKNND_RETURN_IF_ERROR(CheckMasks(task));
    RKNND_RETURN_IF_ERROR(state.Load(task, next, others, memory));
    TaskSpec spec;
    RKNND_RETURN_IF_ERROR(ReadTask(task, state.Registers(task), spec, report));
    absl::Status status;
    if (options.executes) {
      status = Execute(task, spec, state.tables(),
                       options.engine == Engine::kFast ? &fast : nullptr,
                       access, report);
    }
    state.Finish(task);
    return status;
  }
};

Machine::Machine() {
  for (auto& core : cores_) core = std::make_unique<Core>();
}
Machine::~Machine() = default;

absl::Status Machine::Run(const Memory& memory,
                          std::span<const std::span<const Task>> cores,
                          const RunOptions& options) {
  if (cores.size() > kCores) {
    return absl::InvalidArgumentError(
        absl::StrCat("a job for ", cores.size(), " cores: there are ", kCores));
  }
  size_t steps = 0, used = 0;
  for (size_t i = 0; i < cores.size(); ++i) {
    if (cores[i].empty()) continue;
    cores_[i]->state.Reset();
    steps = std::max(steps, cores[i].size());
    ++used;
  }
  for (size_t step = 0; step < steps; ++step) {
    for (size_t i = 0; i < cores.size(); ++i) {
      if (step >= cores[i].size()) continue;
      const Task& task = cores[i][step];
      const Task* const next =
          step + 1 < cores[i].size() ? &cores[i][step + 1] : nullptr;
      TaskReport report;
      report.core = static_cast<uint32_t>(i);
      report.task = static_cast<uint32_t>(step);
      report.node = task.node;
      report.enable_mask = task.enable_mask;
      const absl::Status status =
          cores_[i]->Step(task, next, used - 1, memory, options, report);
      if (!status.ok()) {
        return base::Annotate(
            status, absl::StrCat("task ", step, " of core ", i, " (node ",
                                 task.node, ")"));
      }
      if (options.report != nullptr) options.report->push_back(report);
    }
  }
  return absl::OkStatus();
}

}  // namespace rknnd::rknpu
