// See the header: nothing in a request is trusted.

#include "daemon/transport/session/requests.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"
#include "daemon/transport/session/event_log.h"
#include "daemon/transport/session/ring/fences.h"
#include "daemon/transport/session/translate.h"
#include "daemon/transport/session/translate_admission.h"
#include "daemon/transport/session/translate_profile.h"
#include "proto/wire/codec.h"
#include "proto/wire/features.h"

namespace rknnd::transport {
namespace {

// Verbs from here on change things for other sessions.
constexpr uint16_t kFirstAdminVerb = 100;
constexpr uint16_t kFirstEventVerb = 200;
// Who keeps all the traces that it is given holds no more by that than what a
// session may have of buffers: one takes up to 16 MB.
constexpr uint32_t kMostTraces = 64;

absl::Status RequireNumber(const char* what, uint32_t number) {
  if (number != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the number of a ", what, " is 0"));
}

// What a buffer that was made, or not, is answered with; its fd only where it
// has one for the client.
core::Session::BufferCallback AnswerWithBuffer(const ReplyCallback& reply) {
  return [reply](absl::StatusOr<core::BufferInfo> buffer) {
    if (!buffer.ok()) return reply(Failure(buffer.status()));
    wire::Buffer answer{};
    answer.size = buffer->size;
    wire::SetText(answer.heap, buffer->heap);
    std::vector<base::UniqueFd> fds;
    if (buffer->fd.valid()) fds.push_back(std::move(buffer->fd));
    reply(Answer(answer, std::move(fds)));
  };
}

// Runs `handle` on the decoded request and answers with what it returns.
template <class Message, class Handle>
Reply With(const wire::Frame& request, Handle handle) {
  const auto message = Decoded<Message>(request);
  if (!message.ok()) return Failure(message.status());
  return handle(*message);
}

}  // namespace

void Requests::Handle(wire::Frame request, const ReplyCallback& reply) {
  const auto verb = static_cast<uint16_t>(request.verb);
  if (verb >= kFirstAdminVerb && verb < kFirstEventVerb && !admin_) {
    return reply(Failure(absl::PermissionDeniedError(
        absl::StrCat("'", VerbName(request.verb),
                     "' changes things for others: it is for operators, by "
                     "admin.sock or with a token of that role"))));
  }
  switch (request.verb) {
    case wire::Verb::kHello:
      return reply(Failure(absl::FailedPreconditionError(
          "'Hello' is said once, at the start of a connection")));
    case wire::Verb::kCreateContext:
      return CreateContext(request, reply);
    case wire::Verb::kUploadModel:
      return UploadModel(std::move(request), reply);
    case wire::Verb::kDestroyContext:
      return reply(With<wire::DestroyContext>(request, [&](const auto& m) {
        return Done(session_->DestroyContext(m.context));
      }));
    case wire::Verb::kSetCoreMask:
      return SetCoreMask(request, reply);
    case wire::Verb::kSetShapes:
      return reply(SetShapes(request));
    case wire::Verb::kSetInternalMemory:
    case wire::Verb::kSetWeightMemory:
      return SetMemory(request, reply);
    case wire::Verb::kBind:
      return reply(With<wire::Bind>(request, [&](const auto& m) {
        const auto bind = ToBindRequest(m);
        if (!bind.ok()) return Failure(bind.status());
        return Done(session_->Bind(*bind));
      }));
    case wire::Verb::kBindFrame:
      return reply(With<wire::BindFrame>(request, [&](const auto& m) {
        const auto frame = ToFrameRequest(m);
        if (!frame.ok()) return Failure(frame.status());
        return Done(session_->BindFrame(*frame));
      }));
    case wire::Verb::kImportPhysical:
      return ImportPhysical(request, reply);
    case wire::Verb::kAllocateBuffer:
      return AllocateBuffer(request, reply);
    case wire::Verb::kImportBuffer:
      return ImportBuffer(std::move(request), reply);
    case wire::Verb::kReleaseBuffer:
      return reply(With<wire::ReleaseBuffer>(request, [&](const auto& m) {
        return Done(session_->ReleaseBuffer(m.buffer));
      }));
    case wire::Verb::kBufferKey:
      return reply(BufferKey(request));
    case wire::Verb::kMemorySize:
      return reply(MemorySize(request));
    case wire::Verb::kPerfDetail:
      return reply(PerfDetail(request));
    case wire::Verb::kDump:
      return reply(Dump(request));
    case wire::Verb::kReport:
      return Report(request, reply);
    case wire::Verb::kTrace:
      return Trace(request, reply);
    case wire::Verb::kSyncBuffer:
      return reply(SyncBuffer(request));
    case wire::Verb::kDrain:
      return Drain(reply);
    case wire::Verb::kUndoDrain:
      return reply(Done(service_->UndoDrain()));
    case wire::Verb::kSetFault:
      return SetFault(request, reply);
    case wire::Verb::kListFaults:
      return reply(ListFaults());
    case wire::Verb::kClearFault:
      return ClearFault(request, reply);
    case wire::Verb::kRegisterFence:
      return reply(RegisterFence(std::move(request)));
    case wire::Verb::kReleaseFence:
      return reply(With<wire::ReleaseFence>(request, [&](const auto& m) {
        return Done(session_->ReleaseFence(m.fence));
      }));
    case wire::Verb::kSetQueue:
      return reply(With<wire::SetQueue>(request, [&](const auto& m) {
        const auto queue = ToQueueRequest(m);
        if (!queue.ok()) return Failure(queue.status());
        return Done(session_->SetQueue(*queue));
      }));
    case wire::Verb::kAdmit:
      return reply(With<wire::Admit>(request, [&](const auto& m) {
        const auto asked = ToAdmissionRequest(m);
        if (!asked.ok()) return Failure(asked.status());
        const auto answer = session_->Admit(*asked);
        return answer.ok() ? Answer(ToAdmission(*answer))
                           : Failure(answer.status());
      }));
    case wire::Verb::kLease:
      return Lease(request, reply);
    case wire::Verb::kDoctor:
    case wire::Verb::kClocks:
    case wire::Verb::kFollowLogs:
    case wire::Verb::kQuarantine:
    case wire::Verb::kReset:
    case wire::Verb::kSetLogLevel:
    case wire::Verb::kPinClocks:
      return board_.Handle(request, reply);
    case wire::Verb::kOpenShareSocket:
      return reply(share_sockets_.Open(std::move(request)));
    case wire::Verb::kCloseShareSocket:
      return reply(share_sockets_.Close(request));
    case wire::Verb::kLogEvent:
    case wire::Verb::kLogLine:
      break;
  }
  reply(Failure(absl::UnimplementedError(absl::StrCat(
      "'", VerbName(request.verb), "' is unknown to this daemon"))));
}

void Requests::CreateContext(const wire::Frame& request,
                             const ReplyCallback& reply) {
  const auto message = Decoded<wire::CreateContext>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  if (auto status = RequireNumber("context", message->context); !status.ok()) {
    return reply(Failure(std::move(status)));
  }
  core::ContextRequest context;
  context.number = message->context;
  std::copy(std::begin(message->model), std::end(message->model),
            context.model.begin());
  context.flags = message->flags;
  context.core_mask = message->core_mask;
  context.duplicate_of = message->duplicate_of;
  context.sram_limit = uint64_t{message->sram_limit} * 1024;
  session_->CreateContext(
      context, [reply](absl::StatusOr<const driver::ModelInfo*> model) {
        if (!model.ok()) return reply(Failure(model.status()));
        const auto info = ToContextInfo(**model);
        reply(info.ok() ? Answer(*info) : Failure(info.status()));
      });
}

void Requests::UploadModel(wire::Frame request, const ReplyCallback& reply) {
  auto message = Decoded<wire::UploadModel>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  const std::string name = Printable(message->name);
  if (request.fds.empty()) {
    return reply(Failure(absl::InvalidArgumentError(
        absl::StrCat("model '", name, "' came without its bytes' memfd"))));
  }
  if (!base::HasSeals(request.fds[0].get(), base::Seals::kImmutable)) {
    return reply(Failure(absl::InvalidArgumentError(absl::StrCat(
        "model '", name,
        "': its bytes must come in a memfd on tmpfs that is sealed against "
        "shrinking, growing and writing"))));
  }
  core::ModelUpload upload;
  upload.id = message->model;
  upload.name = name;
  upload.options = std::move(message->options);
  upload.bytes = std::move(request.fds[0]);
  if (message->has_weights_of) {
    if (request.fds.size() < 2) {
      return reply(Failure(absl::InvalidArgumentError(absl::StrCat(
          "model '", name,
          "' came without the memfd of the model whose weights it shares"))));
    }
    upload.weights_of = std::move(request.fds[1]);
    upload.weights_of_options = std::move(message->weights_of_options);
  }
  session_->UploadModel(std::move(upload), [reply](absl::Status status) {
    reply(Done(std::move(status)));
  });
}

Reply Requests::SetShapes(const wire::Frame& request) {
  const auto message = Decoded<wire::SetShapes>(request);
  if (!message.ok()) return Failure(message.status());
  const auto shapes = ToInputShapes(*message);
  if (!shapes.ok()) return Failure(shapes.status());
  const auto chosen = session_->SetShapes(message->context, *shapes);
  if (!chosen.ok()) return Failure(chosen.status());
  return Answer(ToContextInfo(*chosen));
}

void Requests::SetMemory(const wire::Frame& request,
                         const ReplyCallback& reply) {
  const auto message = Decoded<wire::SetMemory>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  const core::MemoryRequest memory{message->context, message->buffer,
                                   message->offset, message->size};
  if (request.verb == wire::Verb::kSetInternalMemory) {
    return reply(Done(session_->SetInternalMemory(memory)));
  }
  session_->SetWeightMemory(
      memory, [reply](absl::Status status) { reply(Done(std::move(status))); });
}

void Requests::SetCoreMask(const wire::Frame& request,
                           const ReplyCallback& reply) {
  const auto message = Decoded<wire::SetCoreMask>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  session_->SetCoreMask(
      message->context, message->core_mask,
      [reply](absl::Status status) { reply(Done(std::move(status))); });
}

void Requests::AllocateBuffer(const wire::Frame& request,
                              const ReplyCallback& reply) {
  const auto message = Decoded<wire::AllocateBuffer>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  if (auto status = RequireNumber("buffer", message->buffer); !status.ok()) {
    return reply(Failure(std::move(status)));
  }
  static_assert(wire::kBufferDma32 == core::kBufferDma32 &&
                wire::kBufferContiguous == core::kBufferContiguous);
  session_->AllocateBuffer(message->buffer, message->size, message->flags,
                           AnswerWithBuffer(reply));
}

void Requests::ImportBuffer(wire::Frame request, const ReplyCallback& reply) {
  const auto message = Decoded<wire::ImportBuffer>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  if (auto status = RequireNumber("buffer", message->buffer); !status.ok()) {
    return reply(Failure(std::move(status)));
  }
  if (request.fds.empty()) {
    return reply(Failure(absl::InvalidArgumentError(
        absl::StrCat("buffer '", message->buffer, "' came without its fd"))));
  }
  session_->ImportBuffer(message->buffer, std::move(request.fds[0]),
                         message->size, AnswerWithBuffer(reply));
}

void Requests::ImportPhysical(const wire::Frame& request,
                              const ReplyCallback& reply) {
  const auto message = Decoded<wire::ImportPhysical>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  if (auto status = RequireNumber("buffer", message->buffer); !status.ok()) {
    return reply(Failure(std::move(status)));
  }
  session_->ImportPhysical(message->buffer, {message->address, message->size},
                           AnswerWithBuffer(reply));
}

Reply Requests::BufferKey(const wire::Frame& request) {
  const auto message = Decoded<wire::BufferKeyRequest>(request);
  if (!message.ok()) return Failure(message.status());
  if (!session_->peer().address.empty()) {
    return Failure(absl::UnimplementedError(
        "a session from another machine has no memory that a request could "
        "name by a key: send the tensors"));
  }
  const auto key = session_->GetBufferKey(message->buffer);
  if (!key.ok()) return Failure(key.status());
  wire::BufferKey answer{};
  static_assert(sizeof(answer.key) == sizeof(key->key));
  std::copy(key->key.begin(), key->key.end(), std::begin(answer.key));
  answer.size = key->size;
  return Answer(answer);
}

Reply Requests::MemorySize(const wire::Frame& request) {
  const auto message = Decoded<wire::MemorySizeRequest>(request);
  if (!message.ok()) return Failure(message.status());
  const auto size = session_->GetMemorySize(message->context);
  if (!size.ok()) return Failure(size.status());
  return Answer(wire::MemorySize{size->weight, size->internal, size->dma_total,
                                 size->sram_total, size->sram_free});
}

Reply Requests::PerfDetail(const wire::Frame& request) {
  const auto message = Decoded<wire::PerfDetailRequest>(request);
  if (!message.ok()) return Failure(message.status());
  if (message->kind == rknnd_v1_PerfKind_PERF_KERNELS) {
    const auto layers = session_->contexts().ModelLayers(message->context);
    if (!layers.ok()) return Failure(layers.status());
    return Answer(wire::PerfDetail{{}, ToLayerReports(*layers)});
  }
  auto text = message->kind == rknnd_v1_PerfKind_PERF_MODEL
                  ? session_->contexts().ModelDetail(message->context)
                  : session_->contexts().PerfDetail(message->context);
  if (!text.ok()) return Failure(text.status());
  wire::PerfDetail detail;
  detail.text = *std::move(text);
  if (message->with_layers) {
    const auto layers = session_->contexts().PerfLayers(message->context);
    if (!layers.ok()) return Failure(layers.status());
    detail.layers = ToLayerReports(*layers);
  }
  return Answer(detail);
}

Reply Requests::Dump(const wire::Frame& request) {
  const auto message = Decoded<wire::DumpRequest>(request);
  if (!message.ok()) return Failure(message.status());
  if (!message->take) return Done(session_->ArmDump(message->context));
  auto report = session_->contexts().TakeDump(message->context);
  if (!report.ok()) return Failure(report.status());
  std::vector<base::UniqueFd> fds;
  fds.push_back(std::move(report->dump.bytes));
  return Answer(ToDumpReply(*report), std::move(fds));
}

void Requests::Report(const wire::Frame& request, const ReplyCallback& reply) {
  const auto message = Decoded<wire::ReportRequest>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  const auto answer = [reply, service = service_, kind = message->kind] {
    const auto report = MakeReport(*service, kind);
    reply(report.ok() ? Answer(*report) : Failure(report.status()));
  };
  if (message->kind != rknnd_v1_ReportKind_REPORT_STATUS) return answer();
  service_->FindForeignUsers(answer);
}

void Requests::Lease(const wire::Frame& request, const ReplyCallback& reply) {
  const auto message = Decoded<wire::LeaseRequest>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  service_->Lease(
      session_->id(), message->cores, Printable(message->command),
      [reply](absl::Status status) { reply(Done(std::move(status))); });
}

void Requests::Trace(const wire::Frame& request, const ReplyCallback& reply) {
  const auto message = Decoded<wire::TraceRequest>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  if (*tracing_) {
    return reply(Failure(absl::ResourceExhaustedError(
        "a trace: this connection waits for one already")));
  }
  if (traces_ == kMostTraces) {
    return reply(Failure(absl::ResourceExhaustedError(
        absl::StrCat("a trace: this connection has had ", kMostTraces,
                     " of them, connect again"))));
  }
  ++traces_;
  *tracing_ = true;
  const base::Nanoseconds since = static_cast<base::Nanoseconds>(
      std::min<uint64_t>(message->since_ns, INT64_MAX));
  service_->TakeTrace(since, [reply, tracing = tracing_](
                                 absl::StatusOr<core::Service::Trace> trace) {
    *tracing = false;
    if (!trace.ok()) return reply(Failure(trace.status()));
    std::vector<base::UniqueFd> fds;
    fds.push_back(std::move(trace->text));
    Reply answer = Answer(wire::Trace{trace->size, trace->jobs, trace->lost},
                          std::move(fds));
    answer.uncharged = trace->size;
    reply(std::move(answer));
  });
}

Reply Requests::SyncBuffer(const wire::Frame& request) {
  const auto message = Decoded<wire::SyncBuffer>(request);
  if (!message.ok()) return Failure(message.status());
  if (!message->to_device && !message->from_device) {
    return Failure(absl::InvalidArgumentError(absl::StrCat(
        "buffer ", message->buffer, " is to be synchronised in no direction")));
  }
  const auto side = !message->from_device ? driver::CacheSide::kToDevice
                    : !message->to_device ? driver::CacheSide::kFromDevice
                                          : driver::CacheSide::kBoth;
  return Done(session_->SyncBuffer(message->buffer, side));
}

Reply Requests::RegisterFence(wire::Frame request) {
  const auto message = Decoded<wire::RegisterFence>(request);
  if (!message.ok()) return Failure(message.status());
  if (auto status = RequireNumber("fence", message->fence); !status.ok()) {
    return Failure(std::move(status));
  }
  if (request.fds.empty()) {
    return Failure(absl::InvalidArgumentError(
        absl::StrCat("fence ", message->fence, " came without its fd")));
  }
  if (auto status = CheckFence(message->fence, message->out,
                               request.fds[0].get(), doorbell_);
      !status.ok()) {
    return Failure(std::move(status));
  }
  return Done(session_->RegisterFence(
      {message->fence, message->out, std::move(request.fds[0]), notices_}));
}

void Requests::SetFault(const wire::Frame& request,
                        const ReplyCallback& reply) {
  const auto faults = service_->faults();
  if (!faults.ok()) return reply(Failure(faults.status()));
  const auto message = Decoded<wire::Fault>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  const auto fault = ToFault(*message);
  if (!fault.ok()) return reply(Failure(fault.status()));
  service_->SetFault(*fault, [reply](absl::StatusOr<driver::FaultReport> set) {
    reply(set.ok() ? Answer(ToFaultReport(*set)) : Failure(set.status()));
  });
}

Reply Requests::ListFaults() {
  const auto faults = service_->faults();
  if (!faults.ok()) return Failure(faults.status());
  wire::FaultList list;
  for (const driver::FaultReport& fault : (*faults)->List()) {
    list.faults.push_back(ToFaultReport(fault));
  }
  return Answer(list);
}

void Requests::ClearFault(const wire::Frame& request,
                          const ReplyCallback& reply) {
  const auto faults = service_->faults();
  if (!faults.ok()) return reply(Failure(faults.status()));
  const auto message = Decoded<wire::ClearFault>(request);
  if (!message.ok()) return reply(Failure(message.status()));
  service_->ClearFault(message->id, [reply](absl::Status status) {
    reply(Done(std::move(status)));
  });
}

void Requests::Drain(const ReplyCallback& reply) {
  service_->BeginDrain(
      core::Drain::Reason::kOperator,
      [reply, service = service_](const absl::Status& status) {
        if (!status.ok()) return reply(Failure(status));
        wire::DrainReply left;
        for (const core::SessionReport& session : service->Sessions()) {
          left.sessions.push_back(ToSessionReport(session));
        }
        reply(Answer(left));
      });
}

}  // namespace rknnd::transport
