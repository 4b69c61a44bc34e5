// Opening a session, its return, and its contexts. Called on the program's
// threads.

#include "client/session/target.h"

#include <optional>

#include "client/session/requests.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

Expected<std::shared_ptr<Target>> Target::Open(SessionOptions options) {
  std::shared_ptr<Target> target(new Target(std::move(options)));
  Expected<std::shared_ptr<Connection>> connection =
      target->link_.ConnectFirst();
  if (!connection.ok()) return std::move(connection).error();
  target->runs_.SubmitTo(*std::move(connection));
  return target;
}

Target::Target(SessionOptions options)
    : options_(std::move(options)),
      record_(options_.buffer_timeout),
      link_(options_,
            {.absent = [this] { grace_.Reset(); },
             .replay =
                 [this](Connection& connection) { return Replay(connection); },
             .resume =
                 [this](const std::shared_ptr<Connection>& connection) {
                   runs_.MoveTo(connection);
                 },
             .give_up = [this](const Error& error) { runs_.FailAll(error); }}) {
}

Expected<void> Target::Replay(Connection& connection) {
  grace_.BeginOnce();
  Expected<void> done = record_.Replay(connection, grace_);
  if (!done.ok()) return done;
  // Fences of runs that have ended need not be there again.
  runs_.CompleteEnded();
  done = fences_.Replay(connection, grace_);
  return done.ok() ? notices_.Replay(connection, grace_) : done;
}

TargetInfo Target::info() const {
  const wire::Welcome welcome = link_.welcome();
  TargetInfo info;
  info.soc = welcome.soc;
  info.cores = welcome.cores;
  info.limits = welcome.limits;
  info.api_version = welcome.api_version;
  info.driver_version = welcome.driver_version;
  return info;
}

Expected<std::shared_ptr<RunNotice>> Target::MakeNotice() {
  return link_.Ask(
      [&](Connection& connection) -> Expected<std::shared_ptr<RunNotice>> {
        fences_.ReleaseStale(connection);
        auto notice = RunNotice::Make(notices_, runs_);
        if (!notice.ok()) return notice;
        Expected<void> attached =
            notices_.Attach(connection, (*notice)->number());
        if (!attached.ok()) return std::move(attached).error();
        return notice;
      });
}

// ---- contexts ---------------------------------------------------------------

template <class Step>
auto Target::AskOf(uint32_t context, Step step) {
  using Result = decltype(step(std::declval<Connection&>(),
                               std::declval<ContextRecord*>()));
  return link_.Ask([&](Connection& connection) -> Result {
    if (Expected<void> there = record_.CheckContext(context); !there.ok()) {
      return std::move(there).error();
    }
    return step(connection, record_.FindContext(context));
  });
}

Expected<std::shared_ptr<const ModelDescription>> Target::CreateContext(
    const ContextRequest& request, const std::shared_ptr<ModelSource>& source) {
  using Result = Expected<std::shared_ptr<const ModelDescription>>;
  return link_.Ask(
      [&](Connection& connection) -> Result {
        ContextRecord record;
        record.source = source;
        record.flags = request.flags;
        record.sram_limit = request.sram_limit;
        uint32_t duplicate_of = request.duplicate_of;
        if (duplicate_of != 0) {
          const auto original = record_.contexts.find(duplicate_of);
          if (original == record_.contexts.end()) {
            return Error{Code::kNotFound, "the context to duplicate is gone"};
          }
          record.source = original->second.source;
          // Lost there: the model by its hash is all that is left to ask for.
          if (original->second.lost) duplicate_of = 0;
        }
        if (request.weights_of != 0 && source->owner() == nullptr) {
          const auto owner = record_.contexts.find(request.weights_of);
          if (owner == record_.contexts.end()) {
            return Error{Code::kNotFound,
                         "the context whose weights are to be shared is gone"};
          }
          source->ShareWeightsOf(owner->second.source);
        }
        // For a rebuild, and for models that are to share its weights.
        record.source = record_.KeptAlready(record.source);
        if (!connection.welcome().keeps_models) {
          if (Expected<void> kept = record.source->KeepBytes(); !kept.ok()) {
            return std::move(kept).error();
          }
        }
        Expected<ModelDescription> model =
            CreateOn(connection, request.number, record, duplicate_of);
        if (!model.ok()) return std::move(model).error();
        // Parts of it may be asked for.
        if (!model->custom_operators.empty()) {
          if (Expected<void> kept = record.source->KeepBytes(); !kept.ok()) {
            return std::move(kept).error();
          }
        }
        // Before another thread's rebuild can meet them.
        record.source->ForgetBytes();
        record_.contexts[request.number] = std::move(record);
        return std::make_shared<const ModelDescription>(*std::move(model));
      },
      SessionLink::Suspect::kYes);
}

Expected<ContextOrigin> Target::OriginOf(uint32_t context) {
  return AskOf(
      context,
      [](Connection&, ContextRecord* record) -> Expected<ContextOrigin> {
        if (record == nullptr) {
          return Error{Code::kNotFound, "the context is gone"};
        }
        return ContextOrigin{record->source, record->core_mask};
      });
}

Expected<void> Target::DestroyContext(uint32_t context) {
  return link_.GiveBack([&](Connection* connection) -> Expected<void> {
    // First: a rebuild must not bring it back.
    const bool lost = !record_.CheckContext(context).ok();
    record_.contexts.erase(context);
    if (connection != nullptr) connection->ring().ForgetCopies(context);
    Expected<void> done;
    if (!lost && connection != nullptr) {
      wire::DestroyContext destroy{};
      destroy.context = context;
      done = Done(Send(*connection, wire::Verb::kDestroyContext, destroy));
    }
    // Of a daemon that is there it gets its answers.
    runs_.Forget(context, connection == nullptr || connection->broken());
    return done;
  });
}

Expected<void> Target::SetCoreMask(uint32_t context, uint32_t core_mask) {
  return AskOf(context, [&](Connection& connection, ContextRecord* record) {
    wire::SetCoreMask request{};
    request.context = context;
    request.core_mask = core_mask;
    Expected<void> done =
        Done(Send(connection, wire::Verb::kSetCoreMask, request));
    if (done.ok() && record != nullptr) record->core_mask = core_mask;
    return done;
  });
}

Expected<std::shared_ptr<const ModelDescription>> Target::SetShapes(
    uint32_t context, const std::vector<InputShape>& shapes) {
  using Described = Expected<std::shared_ptr<const ModelDescription>>;
  return AskOf(
      context, [&](Connection& connection, ContextRecord* record) -> Described {
        Expected<ModelDescription> row =
            SetShapesOn(connection, context, shapes);
        if (!row.ok()) return std::move(row).error();
        if (record != nullptr) record->shapes = shapes;
        return std::make_shared<const ModelDescription>(*std::move(row));
      });
}

Expected<void> Target::Bind(uint32_t context, Direction direction,
                            uint32_t index, const Binding& binding) {
  return AskOf(context, [&](Connection& connection, ContextRecord* record) {
    const PortKey port{binding.set, direction, index};
    Expected<void> done = BindOn(connection, context, port, binding);
    if (done.ok() && record != nullptr) {
      runs_.KeepBinding(context, port, *record);
      record->bindings[port] = binding;
      if (direction == Direction::kInput) record->frames.erase(port);
    }
    return done;
  });
}

Expected<void> Target::BindFrame(uint32_t context, uint32_t index,
                                 const FrameBinding& frame) {
  return AskOf(context, [&](Connection& connection, ContextRecord* record) {
    Expected<void> done = BindFrameOn(connection, context, index, frame);
    if (done.ok() && record != nullptr) {
      const PortKey port{frame.set, Direction::kInput, index};
      runs_.KeepBinding(context, port, *record);
      record->frames[port] = frame;
      record->bindings.erase(port);
    }
    return done;
  });
}

Expected<void> Target::SetQueue(uint32_t context, const QueuePolicy& policy) {
  return AskOf(context, [&](Connection& connection, ContextRecord* record) {
    Expected<void> done = SetQueueOn(connection, context, policy);
    if (done.ok() && record != nullptr) record->queue = policy;
    return done;
  });
}

Expected<void> Target::SetInternalMemory(uint32_t context,
                                         const MemoryRange& memory) {
  return AskOf(context, [&](Connection& connection, ContextRecord* record) {
    Expected<void> done = SetMemoryOn(
        connection, wire::Verb::kSetInternalMemory, context, memory);
    if (done.ok() && record != nullptr) record->internal = memory;
    return done;
  });
}

// Not remembered: the weights are in the program's memory, whatever becomes of
// the daemon.
Expected<void> Target::SetWeightMemory(uint32_t context,
                                       const MemoryRange& memory) {
  return AskOf(context, [&](Connection& connection, ContextRecord*) {
    return SetMemoryOn(connection, wire::Verb::kSetWeightMemory, context,
                       memory);
  });
}

Expected<wire::Admission> Target::Admit(const wire::Admit& request) {
  return link_.Ask([&](Connection& connection) {
    auto answer =
        SendFor<wire::Admission>(connection, wire::Verb::kAdmit, request);
    ContextRecord* const record = record_.FindContext(request.context);
    if (!answer.ok() || record == nullptr) return answer;
    if (request.rate_mhz == 0) {
      record->stream.reset();
    } else if (request.reserve && answer->fits) {
      record->stream = request;
    }
    return answer;
  });
}

}  // namespace rknnd::client
