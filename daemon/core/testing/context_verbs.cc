// What clients ask of contexts. Called by tests and a fuzzer, on one thread.

#include "daemon/core/testing/context_verbs.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace rknnd::core::testing {
namespace {

// OK, or why not.
template <class Value>
absl::Status StatusOf(const absl::StatusOr<Value>& value) {
  return value.status();
}
absl::Status StatusOf(absl::Status status) { return status; }

class Table {
 public:
  // What answers at once.
  template <class Ask>
  void Add(std::string name, Ask ask) {
    AddLater(std::move(name), [ask](Session& session, uint32_t context,
                                    const ContextVerb::Answer& answer) {
      answer(StatusOf(ask(session, context)));
    });
  }
  template <class Ask>
  void AddLater(std::string name, Ask ask) {
    verbs.push_back({std::move(name), std::move(ask)});
  }
  void AddSubmission(std::string name, const JobSubmission& submission) {
    Add(std::move(name), [submission](Session& session, uint32_t context) {
      JobSubmission asked = submission;
      asked.context = context;
      return session.gate()->Submit(asked);
    });
  }

  std::vector<ContextVerb> verbs;
};

BindRequest BindOf(uint32_t context, driver::Direction direction,
                   uint32_t index, uint32_t buffer) {
  BindRequest request;
  request.context = context;
  request.direction = direction;
  request.index = index;
  request.buffer = buffer;
  request.size = kVerbBufferBytes;
  request.format.type = driver::TensorType::kUint8;
  request.format.layout = driver::TensorLayout::kNhwc;
  return request;
}

void AddBindings(Table* table) {
  for (const uint32_t index : {0U, 1U, UINT32_MAX}) {
    for (const auto direction :
         {driver::Direction::kInput, driver::Direction::kOutput}) {
      for (const uint32_t buffer : {0U, kVerbBuffer, kVerbBuffer + 1}) {
        table->Add(
            absl::StrCat("Bind",
                         direction == driver::Direction::kInput ? "In" : "Out",
                         index, "To", buffer),
            [=](Session& session, uint32_t context) {
              return session.Bind(BindOf(context, direction, index, buffer));
            });
      }
    }
  }
  for (const uint32_t set : {kBindingSets - 1, kBindingSets}) {
    table->Add(absl::StrCat("BindSet", set),
               [set](Session& session, uint32_t context) {
                 BindRequest request =
                     BindOf(context, driver::Direction::kInput, 0, kVerbBuffer);
                 request.set = set;
                 return session.Bind(request);
               });
  }
  for (const uint32_t index : {0U, UINT32_MAX}) {
    table->Add(absl::StrCat("BindFrame", index),
               [index](Session& session, uint32_t context) {
                 FrameRequest request;
                 request.context = context;
                 request.index = index;
                 request.format.pixels = driver::PixelFormat::kNv12;
                 request.format.width = request.format.height = 8;
                 for (auto& plane : request.planes) {
                   plane = {kVerbBuffer, 0, kVerbBufferBytes};
                 }
                 return session.BindFrame(request);
               });
  }
  for (const uint32_t buffer : {0U, kVerbBuffer, kVerbBuffer + 1}) {
    const MemoryRequest memory{0, buffer, 0, kVerbBufferBytes};
    table->Add(absl::StrCat("SetInternalMemory", buffer),
               [memory](Session& session, uint32_t context) {
                 MemoryRequest request = memory;
                 request.context = context;
                 return session.SetInternalMemory(request);
               });
    table->AddLater(absl::StrCat("SetWeightMemory", buffer),
                    [memory](Session& session, uint32_t context,
                             const ContextVerb::Answer& answer) {
                      MemoryRequest request = memory;
                      request.context = context;
                      session.SetWeightMemory(request, answer);
                    });
  }
}

void AddContexts(Table* table) {
  for (const uint32_t mask : {0U, 1U, 2U, 3U, 4U, 5U, 7U, 0xffffU}) {
    table->AddLater(absl::StrCat("SetCoreMask", mask),
                    [mask](Session& session, uint32_t context,
                           const ContextVerb::Answer& answer) {
                      session.SetCoreMask(context, mask, answer);
                    });
  }
  for (const InitFlag& flag : InitFlags()) {
    table->AddLater(
        absl::StrCat("Duplicate", flag.name),
        [flags = flag.bits](Session& session, uint32_t context,
                            const ContextVerb::Answer& answer) {
          ContextRequest request;
          request.number = kVerbContext;
          request.duplicate_of = context;
          request.flags = flags;
          session.CreateContext(
              request, [answer](const auto& made) { answer(made.status()); });
        });
  }
  table->AddLater("CreateAgain", [](Session& session, uint32_t context,
                                    const ContextVerb::Answer& answer) {
    ContextRequest request;
    request.number = context;
    session.CreateContext(
        request, [answer](const auto& made) { answer(made.status()); });
  });
  table->Add("Destroy", [](Session& session, uint32_t context) {
    return session.DestroyContext(context);
  });
  const std::vector<std::pair<std::string, std::vector<InputShape>>> kShapes = {
      {"None", {}},
      {"One", {{{1, 1, 16, 1}, driver::TensorLayout::kNhwc}}},
      {"Other", {{{1, 1, 32, 1}, driver::TensorLayout::kNhwc}}},
      {"WithoutDims", {{{}, driver::TensorLayout::kNhwc}}},
      {"Two", {{{1, 1, 16, 1}, {}}, {{0, UINT32_MAX}, {}}}},
  };
  for (const auto& [name, shapes] : kShapes) {
    table->Add(absl::StrCat("SetShapes", name),
               [shapes = shapes](Session& session, uint32_t context) {
                 return session.SetShapes(context, shapes);
               });
  }
}

void AddRuns(Table* table) {
  JobSubmission run;
  run.slot = kJobSlots - 1;
  table->AddSubmission("Run", run);
  run.set = kBindingSets - 1;
  table->AddSubmission("RunSet", run);
  run.set = kBindingSets;
  table->AddSubmission("RunSetBeyond", run);
  run.set = 0;
  run.shared = true;
  run.frame = 7;
  table->AddSubmission("RunShared", run);
  run.shared = false;
  run.fence_in = run.fence_out = run.notify = 77;
  table->AddSubmission("RunFences", run);
  run.fence_in = run.fence_out = run.notify = 0;
  run.operation = JobSubmission::Operation::kCancel;
  table->AddSubmission("CancelFrame", run);
  run.frame = 0;
  table->AddSubmission("CancelAll", run);
  for (const auto policy : {QueuePolicy::kFifo, QueuePolicy::kNewest}) {
    table->Add(absl::StrCat("SetQueue", static_cast<uint32_t>(policy)),
               [policy](Session& session, uint32_t context) {
                 return session.SetQueue({context, policy, 1, 0});
               });
  }
  for (const uint64_t rate : {0U, 1000U}) {
    for (const bool reserve : {false, true}) {
      table->Add(absl::StrCat(reserve ? "Reserve" : "Admit", rate),
                 [rate, reserve](Session& session, uint32_t context) {
                   AdmissionRequest request;
                   request.context = context;
                   request.rate_mhz = rate;
                   request.reserve = reserve;
                   return session.Admit(request);
                 });
    }
  }
}

void AddQuestions(Table* table) {
  table->Add("MemorySize", [](Session& session, uint32_t context) {
    return session.GetMemorySize(context);
  });
  table->Add("PerfDetail", [](Session& session, uint32_t context) {
    return session.contexts().PerfDetail(context);
  });
  table->Add("PerfLayers", [](Session& session, uint32_t context) {
    return session.contexts().PerfLayers(context);
  });
  table->Add("ModelLayers", [](Session& session, uint32_t context) {
    return session.contexts().ModelLayers(context);
  });
  table->Add("ModelDetail", [](Session& session, uint32_t context) {
    return session.contexts().ModelDetail(context);
  });
  table->Add("ArmDump", [](Session& session, uint32_t context) {
    return session.ArmDump(context);
  });
  table->Add("TakeDump", [](Session& session, uint32_t context) {
    return session.contexts().TakeDump(context);
  });
}

}  // namespace

const std::vector<ContextVerb>& ContextVerbs() {
  static const std::vector<ContextVerb> kVerbs = [] {
    Table table;
    AddContexts(&table);
    AddBindings(&table);
    AddRuns(&table);
    AddQuestions(&table);
    return std::move(table.verbs);
  }();
  return kVerbs;
}

const std::vector<InitFlag>& InitFlags() {
  // rknn_api.h's, which this folder does not include.
  static const std::vector<InitFlag> kFlags = {
      {"NoFlag", 0},
      {"PriorMedium", 0x1},
      {"PriorLow", 0x2},
      {"Async", 0x4},
      {"CollectPerf", 0x8},
      {"AllocOutside", 0x10},
      {"ShareWeights", 0x20},
      {"FenceIn", 0x40},
      {"FenceOut", 0x80},
      {"InfoOnly", 0x100},
      {"InternalOutside", 0x200},
      {"FallbackGpu", 0x400},
      {"EnableSram", 0x800},
      {"ShareSram", 0x1000},
      {"LowProcess", 0x2000},
      {"KeepInputs", 0x4000},
      {"KeepOutputs", 0x8000},
      {"ZeroCopyModel", 0x10000},
  };
  return kFlags;
}

}  // namespace rknnd::core::testing
