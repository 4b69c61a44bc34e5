// The calls of rknnd.v1.Debug with one request and one answer, and the service
// that all of them are methods of. What they ask is answered by the same core
// and board that answer the verbs of the session socket.

#include "daemon/transport/grpc/debug/debug_endpoint.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/reports/perf_report.h"
#include "daemon/core/terms/utf8.h"
#include "daemon/transport/grpc/authenticator.h"
#include "daemon/transport/grpc/debug/debug_call.h"
#include "daemon/transport/grpc/debug/debug_model.h"
#include "daemon/transport/grpc/debug/debug_streams.h"
#include "daemon/transport/session/board.h"
#include "rknnd/v1/debug.grpc.pb.h"

namespace rknnd::transport {
namespace {

constexpr uint32_t kHighestLevel = 5;  // of RKNN_LOG_LEVEL

absl::Status NoBoard() {
  return absl::UnimplementedError(
      "this daemon does not answer for the machine it runs on");
}

void ToClock(const BoardClock& clock, v1::DebugClock* out) {
  out->set_name(clock.name);
  out->set_hz(clock.hz);
  out->set_min_hz(clock.min_hz);
  out->set_max_hz(clock.max_hz);
  out->set_governor(clock.governor);
  out->set_pinned(clock.pinned);
}

void ToLayer(const core::LayerRow& row, v1::DebugLayer* out) {
  const driver::LayerInfo& layer = *row.layer;
  out->set_type(core::Utf8(layer.type));
  out->set_name(core::Utf8(core::FullName(layer)));
  out->set_data_type(layer.data_type);
  out->set_input_shape(core::ShapesText(layer.input_shape));
  out->set_output_shape(core::ShapesText(layer.output_shape));
  out->set_on_cpu(layer.on_cpu);
  out->set_ddr_cycles(layer.ddr_cycles);
  out->set_npu_cycles(layer.npu_cycles);
  out->set_time_ns(
      static_cast<uint64_t>(std::max<base::Nanoseconds>(row.time, 0)));
  out->set_tasks(row.tasks);
  out->set_rw_bytes(layer.ddr_read);
  out->set_kernel(layer.kernel);
  out->set_is_slow(layer.is_slow);
}

// One request and one answer, both gRPC's until the call has gone.
template <class Request, class Reply>
class Unary final : public grpc::ServerUnaryReactor, public DebugCall {
 public:
  Unary(std::shared_ptr<DebugCalls> calls, grpc::CallbackServerContext* context,
        const Request* asked, Reply* answer)
      : DebugCall(std::move(calls)),
        request(*asked),
        reply(*answer),
        context_(context) {}

  void OnCancel() override { Cancelled(); }
  void OnDone() override { Gone(); }

  const Request& request;
  Reply& reply;

 private:
  void Conclude(const absl::Status& status) override {
    Finish({static_cast<grpc::StatusCode>(status.raw_code()),
            std::string(status.message())});
  }
  void Cut() override { context_->TryCancel(); }

  grpc::CallbackServerContext* const context_;
};

// ---- what the calls do, on the loop
// ------------------------------------------

using StatusCall = Unary<v1::DebugStatusRequest, v1::DebugStatus>;
void Answer(StatusCall& call) {
  const core::StatusReport status = call.calls().daemon.service->Status();
  v1::DebugStatus& out = call.reply;
  out.set_daemon_version(call.calls().daemon.version);
  out.set_soc(status.device.soc);
  out.set_cores(status.device.cores);
  out.set_driver_version(status.device.driver);
  out.set_runtime_version(status.device.runtime);
  out.set_device(status.device.kind);
  out.set_uptime_ns(static_cast<uint64_t>(status.uptime));
  out.set_sessions(status.sessions);
  out.set_models(status.models);
  out.set_jobs_queued(status.jobs_queued);
  out.set_jobs_running(status.jobs_running);
  out.set_jobs_done(status.jobs_done);
  out.set_jobs_failed(status.jobs_failed);
  out.set_resets(status.resets);
  out.set_sram_total(status.device.sram_total);
  out.set_sram_free(status.sram_free);
  call.End(absl::OkStatus());
}

// Opens a session for the call; null when it was ended instead.
template <class Call>
DebugModel* OpenModel(Call& call) {
  auto model = DebugModel::Open(call.calls().parts(), call.session_peer());
  if (!model.ok()) {
    call.End(model.status());
    return nullptr;
  }
  DebugModel* const opened = (*model).get();
  call.Hold(*std::move(model));
  return opened;
}

using PerfCall = Unary<v1::DebugPerfRequest, v1::DebugPerfReply>;
void EndPerf(PerfCall& call, DebugModel* model) {
  for (const uint64_t run : model->run_ns()) call.reply.add_run_ns(run);
  for (const uint64_t queue : model->queue_ns()) call.reply.add_queue_ns(queue);
  if (call.request.layers()) {
    const auto rows =
        model->session().contexts().PerfLayers(OwnSession::kContext);
    if (!rows.ok()) return call.End(rows.status());
    for (const core::LayerRow& row : *rows) {
      ToLayer(row, call.reply.add_layers());
    }
    auto text = model->session().contexts().PerfDetail(OwnSession::kContext);
    if (text.ok()) call.reply.set_text(core::Utf8(*std::move(text)));
  }
  Board* const board = call.calls().daemon.board;
  if (board == nullptr) return call.End(absl::OkStatus());
  // Before a pin goes: what the figures were taken at.
  board->ReadClocks([&call, self = call.shared_from_this()](
                        const absl::StatusOr<BoardState>& state) {
    if (call.ended()) return;
    if (state.ok()) {
      for (const BoardClock& clock : state->clocks) {
        ToClock(clock, call.reply.add_clocks());
      }
    }
    call.End(absl::OkStatus());
  });
}

void Measure(PerfCall& call) {
  DebugModel* const model = OpenModel(call);
  if (model == nullptr) return;
  DebugModel::Wanted wanted;
  wanted.sha256 = call.request.sha256();
  wanted.core_mask = call.request.core_mask();
  wanted.inputs.assign(call.request.inputs().begin(),
                       call.request.inputs().end());
  wanted.layers = call.request.layers();
  // The model goes with the call, and with it all that it has not answered.
  model->Prepare(wanted, [&call, model](const absl::Status& prepared) {
    if (!prepared.ok()) return call.End(prepared);
    model->Run(call.request.runs(), [&call, model](const absl::Status& run) {
      run.ok() ? EndPerf(call, model) : call.End(run);
    });
  });
}

void Answer(PerfCall& call) {
  if (!call.request.fix_clocks()) return Measure(call);
  if (const absl::Status allowed =
          RequireOperator(call.peer(), "pinning the clocks");
      !allowed.ok()) {
    return call.End(allowed);
  }
  Board* const board = call.calls().daemon.board;
  if (board == nullptr) return call.End(NoBoard());
  board->PinClocks([&call, self = call.shared_from_this()](
                       absl::StatusOr<std::shared_ptr<ClockPin>> pin,
                       const std::vector<BoardClock>& /*clocks*/) {
    // The pin goes here where the caller has gone meanwhile.
    if (call.ended()) return;
    if (!pin.ok()) return call.End(pin.status());
    call.Hold(*std::move(pin));
    Measure(call);
  });
}

using MemoryCall = Unary<v1::DebugMemoryRequest, v1::DebugMemoryReply>;
void Answer(MemoryCall& call) {
  DebugModel* const model = OpenModel(call);
  if (model == nullptr) return;
  DebugModel::Wanted wanted;
  wanted.sha256 = call.request.sha256();
  model->Prepare(wanted, [&call, model](const absl::Status& prepared) {
    if (!prepared.ok()) return call.End(prepared);
    const auto size = model->session().GetMemorySize(OwnSession::kContext);
    if (!size.ok()) return call.End(size.status());
    call.reply.set_weight(size->weight);
    call.reply.set_internal(size->internal);
    call.reply.set_other(model->tensor_bytes());
    call.reply.set_total(size->weight + size->internal + model->tensor_bytes());
    auto text = model->session().contexts().ModelDetail(OwnSession::kContext);
    if (text.ok()) call.reply.set_text(core::Utf8(*std::move(text)));
    call.End(absl::OkStatus());
  });
}

using DoctorCall = Unary<v1::DebugDoctorRequest, v1::DebugDoctorReply>;
void Answer(DoctorCall& call) {
  Board* const board = call.calls().daemon.board;
  if (board == nullptr) return call.End(NoBoard());
  board->Diagnose([&call, self = call.shared_from_this()](
                      const std::vector<Finding>& findings) {
    if (call.ended()) return;
    for (const Finding& finding : findings) {
      v1::DebugFinding* const out = call.reply.add_findings();
      out->set_check(finding.check);
      out->set_severity(static_cast<uint32_t>(finding.level));
      out->set_text(core::Utf8(finding.text));
      out->set_remedy(core::Utf8(finding.remedy));
    }
    call.End(absl::OkStatus());
  });
}

using ClocksCall = Unary<v1::DebugClocksRequest, v1::DebugClocksReply>;
void Answer(ClocksCall& call) {
  Board* const board = call.calls().daemon.board;
  if (board == nullptr) return call.End(NoBoard());
  board->ReadClocks([&call, self = call.shared_from_this()](
                        const absl::StatusOr<BoardState>& state) {
    if (call.ended()) return;
    if (!state.ok()) return call.End(state.status());
    for (const BoardClock& clock : state->clocks) {
      ToClock(clock, call.reply.add_clocks());
    }
    call.reply.set_npu(core::Utf8(state->npu));
    call.End(absl::OkStatus());
  });
}

using LevelCall = Unary<v1::DebugSetLogLevelRequest, v1::DebugSetLogLevelReply>;
void Answer(LevelCall& call) {
  Board* const board = call.calls().daemon.board;
  if (board == nullptr) return call.End(NoBoard());
  call.reply.set_before(
      board->SetLogLevel(std::min(call.request.level(), kHighestLevel)));
  call.End(absl::OkStatus());
}

using ResetCall = Unary<v1::DebugResetRequest, v1::DebugResetReply>;
void Answer(ResetCall& call) {
  call.calls().daemon.service->ResetDevice(
      [&call, self = call.shared_from_this()](const absl::Status& status) {
        call.End(status);
      });
}

using DrainCall = Unary<v1::DebugDrainRequest, v1::DebugDrainReply>;
void Answer(DrainCall& call) {
  core::Service* const service = call.calls().daemon.service;
  service->BeginDrain(core::Drain::Reason::kOperator,
                      [&call, self = call.shared_from_this(),
                       service](const absl::Status& status) {
                        if (call.ended()) return;
                        if (status.ok())
                          call.reply.set_sessions(service->Status().sessions);
                        call.End(status);
                      });
}

using UndoDrainCall = Unary<v1::DebugUndoDrainRequest, v1::DebugUndoDrainReply>;
void Answer(UndoDrainCall& call) {
  call.End(call.calls().daemon.service->UndoDrain());
}

// ---- the service ------------------------------------------------------------

using Context = grpc::CallbackServerContext;

class DebugEndpoint final : public GrpcEndpoint,
                            private v1::Debug::CallbackService {
 public:
  explicit DebugEndpoint(const GrpcEnvironment& environment)
      : calls_(std::make_shared<DebugCalls>(environment)) {}

  grpc::Service& service() override { return *this; }
  void Stop() override { calls_->Stop(); }

 private:
  template <class Request, class Reply>
  grpc::ServerUnaryReactor* Start(Context* context, const Request* request,
                                  Reply* reply,
                                  const char* operators = nullptr) {
    const auto call = std::make_shared<Unary<Request, Reply>>(calls_, context,
                                                              request, reply);
    auto* const raw = call.get();
    if (call->Enter(calls_->daemon.authenticator->Admit(*context),
                    request->ByteSizeLong(), operators)) {
      call->OnLoop([raw] { Answer(*raw); });
    }
    return raw;
  }

  grpc::ServerUnaryReactor* Status(Context* context,
                                   const v1::DebugStatusRequest* request,
                                   v1::DebugStatus* reply) override {
    return Start(context, request, reply);
  }
  grpc::ServerReadReactor<v1::DebugPushModelRequest>* PushModel(
      Context* context, v1::DebugPushModelReply* reply) override {
    return StartPushModel(calls_, context, reply);
  }
  grpc::ServerUnaryReactor* Perf(Context* context,
                                 const v1::DebugPerfRequest* request,
                                 v1::DebugPerfReply* reply) override {
    return Start(context, request, reply);
  }
  grpc::ServerUnaryReactor* Memory(Context* context,
                                   const v1::DebugMemoryRequest* request,
                                   v1::DebugMemoryReply* reply) override {
    return Start(context, request, reply);
  }
  grpc::ServerWriteReactor<v1::DebugDumpReply>* Dump(
      Context* context, const v1::DebugDumpRequest* request) override {
    return StartDump(calls_, context, request);
  }
  grpc::ServerWriteReactor<v1::DebugLogLine>* Logs(
      Context* context, const v1::DebugLogsRequest* request) override {
    return StartLogs(calls_, context, request);
  }
  grpc::ServerUnaryReactor* Doctor(Context* context,
                                   const v1::DebugDoctorRequest* request,
                                   v1::DebugDoctorReply* reply) override {
    return Start(context, request, reply);
  }
  grpc::ServerUnaryReactor* Clocks(Context* context,
                                   const v1::DebugClocksRequest* request,
                                   v1::DebugClocksReply* reply) override {
    return Start(context, request, reply);
  }
  grpc::ServerUnaryReactor* SetLogLevel(
      Context* context, const v1::DebugSetLogLevelRequest* request,
      v1::DebugSetLogLevelReply* reply) override {
    return Start(context, request, reply, "setting the log level");
  }
  grpc::ServerUnaryReactor* Reset(Context* context,
                                  const v1::DebugResetRequest* request,
                                  v1::DebugResetReply* reply) override {
    return Start(context, request, reply, "resetting the NPU");
  }
  grpc::ServerUnaryReactor* Drain(Context* context,
                                  const v1::DebugDrainRequest* request,
                                  v1::DebugDrainReply* reply) override {
    return Start(context, request, reply, "draining the daemon");
  }
  grpc::ServerUnaryReactor* UndoDrain(Context* context,
                                      const v1::DebugUndoDrainRequest* request,
                                      v1::DebugUndoDrainReply* reply) override {
    return Start(context, request, reply, "undoing a drain");
  }

  const std::shared_ptr<DebugCalls> calls_;
};

}  // namespace

std::unique_ptr<GrpcEndpoint> MakeDebugEndpoint(
    const GrpcOptions& /*options*/, const GrpcEnvironment& environment) {
  return std::make_unique<DebugEndpoint>(environment);
}

}  // namespace rknnd::transport
