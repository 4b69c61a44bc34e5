// The protocol's calls but ModelInfer and ModelStreamInfer (infer_calls.cc):
// who calls, and which part knows the answer. On gRPC's threads; what takes
// time ends elsewhere.

#include "daemon/transport/grpc/inference/inference_endpoint.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/core/terms/utf8.h"
#include "daemon/transport/grpc/authenticator.h"
#include "daemon/transport/grpc/inference/call_status.h"
#include "daemon/transport/grpc/inference/descriptions.h"
#include "daemon/transport/grpc/inference/engine.h"
#include "daemon/transport/grpc/inference/infer_calls.h"
#include "daemon/transport/grpc/inference/model_directory.h"
#include "daemon/transport/grpc/inference/open_calls.h"
#include "daemon/transport/grpc/inference/regions.h"
#include "daemon/transport/grpc/inference/repository.h"
#include "daemon/transport/grpc/inference/statistics.h"
#include "inference/open_inference.grpc.pb.h"

namespace rknnd::transport {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using inference::GRPCInferenceService;

// The two that carry tensors come as bytes.
using Base = GRPCInferenceService::WithGenericMethod_ModelInfer<
    GRPCInferenceService::WithGenericMethod_ModelStreamInfer<
        GRPCInferenceService::CallbackService>>;

class InferenceEndpoint final : public GrpcEndpoint, public Base {
 public:
  InferenceEndpoint(const GrpcEnvironment& environment,
                    std::unique_ptr<Repository> repository,
                    std::unique_ptr<Regions> regions,
                    std::shared_ptr<Engine> engine)
      : environment_(environment),
        soc_(environment.service->device_info().soc),
        repository_(std::move(repository)),
        regions_(std::move(regions)),
        engine_(std::move(engine)),
        directory_(std::make_shared<ModelDirectory>(
            ModelDirectory::Parts{repository_.get(), environment.service,
                                  environment.loop, environment.clock,
                                  [this](std::function<void()> task) {
                                    return engine_->Post(std::move(task));
                                  }})),
        calls_(MakeInferCalls(
            {environment_,
             {engine_.get(), directory_.get(), regions_.get(), &statistics_,
              environment.clock, environment.failures, environment.overload},
             &open_})) {
    regions_->set_gone(
        [this](uint64_t region) { engine_->OnRegionGone(region); });
  }

  // ---- GrpcEndpoint ----

  grpc::Service& service() override { return *this; }
  grpc::CallbackGenericService* generic() override { return calls_.get(); }
  void SetDraining(bool draining) override {
    draining_ = draining;
    engine_->SetDraining(draining);
  }
  void Stop() override {
    draining_ = true;
    // Names first: what is found goes on to the engine. Then all that runs is
    // answered, and what has not begun ends.
    repository_->Stop();
    directory_->Stop();
    regions_->Stop();
    engine_->Stop();
    open_.EndAll();
  }

  // ---- server ----

  ServerUnaryReactor* ServerLive(
      CallbackServerContext* context,
      const inference::ServerLiveRequest* /*request*/,
      inference::ServerLiveResponse* response) override {
    return Answer(context, [&](const GrpcPeer&) {
      response->set_live(true);
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* ServerReady(
      CallbackServerContext* context,
      const inference::ServerReadyRequest* /*request*/,
      inference::ServerReadyResponse* response) override {
    return Answer(context, [&](const GrpcPeer&) {
      response->set_ready(!draining_ && repository_->settled());
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* ServerMetadata(
      CallbackServerContext* context,
      const inference::ServerMetadataRequest* /*request*/,
      inference::ServerMetadataResponse* response) override {
    return Answer(context, [&](const GrpcPeer&) {
      DescribeServer(environment_.version, response);
      return absl::OkStatus();
    });
  }

  // ---- models ----

  ServerUnaryReactor* ModelReady(
      CallbackServerContext* context,
      const inference::ModelReadyRequest* request,
      inference::ModelReadyResponse* response) override {
    return AnswerLater(context, [&](ServerUnaryReactor* reactor) {
      const auto tell = [this, reactor, response](const absl::Status& there) {
        if (absl::IsNotFound(there) || absl::IsInvalidArgument(there)) {
          return reactor->Finish(ToGrpc(there));
        }
        response->set_ready(there.ok() && !draining_);
        reactor->Finish(grpc::Status::OK);
      };
      directory_->Find(request->name(), request->version(),
                       [this, tell](const absl::StatusOr<ServedModel>& found) {
                         if (!found.ok()) return tell(found.status());
                         // A hash is any model's until somebody looks.
                         engine_->Open(found->id, [tell](const auto& view) {
                           tell(view.status());
                         });
                       });
    });
  }

  ServerUnaryReactor* ModelMetadata(
      CallbackServerContext* context,
      const inference::ModelMetadataRequest* request,
      inference::ModelMetadataResponse* response) override {
    return WithModel(
        context, request->name(), request->version(),
        [this, response](const ServedModel& model, const ModelView& view) {
          DescribeModel(model, view, soc_, response);
        });
  }

  ServerUnaryReactor* ModelConfig(
      CallbackServerContext* context,
      const inference::ModelConfigRequest* request,
      inference::ModelConfigResponse* response) override {
    return WithModel(
        context, request->name(), request->version(),
        [response](const ServedModel& model, const ModelView& view) {
          DescribeConfig(model, view, response->mutable_config());
        });
  }

  ServerUnaryReactor* ModelStatistics(
      CallbackServerContext* context,
      const inference::ModelStatisticsRequest* request,
      inference::ModelStatisticsResponse* response) override {
    return AnswerLater(context, [&](ServerUnaryReactor* reactor) {
      const std::string& name = request->name();
      const std::string& version = request->version();
      if (name.empty()) {
        Tell(statistics_.List("", ""), response);
        return reactor->Finish(grpc::Status::OK);
      }
      directory_->Find(name, version,
                       [this, reactor, request,
                        response](absl::StatusOr<ServedModel> found) {
                         auto list = statistics_.List(request->name(),
                                                      request->version());
                         if (!found.ok() && list.empty()) {
                           return reactor->Finish(ToGrpc(found.status()));
                         }
                         if (list.empty()) {
                           // There, and never asked to run.
                           list.emplace_back();
                           list.back().name = found->name;
                           list.back().version = found->version;
                         }
                         Tell(list, response);
                         reactor->Finish(grpc::Status::OK);
                       });
    });
  }

  // ---- repository ----

  ServerUnaryReactor* RepositoryIndex(
      CallbackServerContext* context,
      const inference::RepositoryIndexRequest* request,
      inference::RepositoryIndexResponse* response) override {
    return AnswerLater(context, [&](ServerUnaryReactor* reactor) {
      directory_->List([reactor, request, response](
                           const std::vector<Repository::Entry>& entries) {
        for (const Repository::Entry& entry : entries) {
          if (request->ready() && entry.state != "READY") continue;
          auto* const model = response->add_models();
          model->set_name(entry.name);
          model->set_version(entry.version);
          model->set_state(entry.state);
          model->set_reason(core::Utf8(entry.reason));
        }
        reactor->Finish(grpc::Status::OK);
      });
    });
  }

  ServerUnaryReactor* RepositoryModelLoad(
      CallbackServerContext* context,
      const inference::RepositoryModelLoadRequest* request,
      inference::RepositoryModelLoadResponse* response) override {
    return AnswerLater(context, [&](ServerUnaryReactor* reactor) {
      Repository::LoadRequest load;
      absl::Status wrong = ReadLoad(*request, &load);
      if (wrong.ok() && draining_) {
        wrong = absl::UnavailableError(
            "the daemon is draining and loads no models");
      }
      if (!wrong.ok()) return reactor->Finish(ToGrpc(wrong));
      response->set_model_name(load.name);
      repository_->Load(std::move(load),
                        [reactor, response](const absl::Status& done) {
                          response->set_isloaded(done.ok());
                          reactor->Finish(ToGrpc(done));
                        });
    });
  }

  ServerUnaryReactor* RepositoryModelUnload(
      CallbackServerContext* context,
      const inference::RepositoryModelUnloadRequest* request,
      inference::RepositoryModelUnloadResponse* response) override {
    return AnswerLater(context, [&](ServerUnaryReactor* reactor) {
      const auto [repository, name] =
          NamesOf(request->repository_name(), request->model_name());
      response->set_model_name(name);
      // Looked up while it has a name.
      const auto model = repository_->Find(name, "");
      repository_->Unload(
          repository, name,
          [this, reactor, response, model](const absl::Status& done) {
            if (done.ok() && model.ok()) engine_->Forget(model->id);
            response->set_isunloaded(done.ok());
            reactor->Finish(ToGrpc(done));
          });
    });
  }

  // ---- shared memory ----

  ServerUnaryReactor* SystemSharedMemoryStatus(
      CallbackServerContext* context,
      const inference::SystemSharedMemoryStatusRequest* request,
      inference::SystemSharedMemoryStatusResponse* response) override {
    return Answer(context, [&](const GrpcPeer& peer) -> absl::Status {
      RKNND_ASSIGN_OR_RETURN(
          const std::vector<Regions::Status> regions,
          regions_->List(RegionSpace(peer), request->name()));
      for (const Regions::Status& region : regions) {
        auto& status = (*response->mutable_regions())[region.name];
        status.set_name(region.name);
        status.set_key(region.key);
        status.set_offset(region.offset);
        status.set_byte_size(region.size);
      }
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* SystemSharedMemoryRegister(
      CallbackServerContext* context,
      const inference::SystemSharedMemoryRegisterRequest* request,
      inference::SystemSharedMemoryRegisterResponse* /*response*/) override {
    return Answer(context, [&](const GrpcPeer& peer) {
      return regions_->Register(RegionSpace(peer), request->name(),
                                request->key(), request->offset(),
                                request->byte_size());
    });
  }

  ServerUnaryReactor* SystemSharedMemoryUnregister(
      CallbackServerContext* context,
      const inference::SystemSharedMemoryUnregisterRequest* request,
      inference::SystemSharedMemoryUnregisterResponse* /*response*/) override {
    return Answer(context, [&](const GrpcPeer& peer) {
      return regions_->Unregister(RegionSpace(peer), request->name());
    });
  }

  // Clients ask for all regions before they begin: there are none.
  ServerUnaryReactor* CudaSharedMemoryStatus(
      CallbackServerContext* context,
      const inference::CudaSharedMemoryStatusRequest* /*request*/,
      inference::CudaSharedMemoryStatusResponse* /*response*/) override {
    return Refuse(context, kNoGpu);
  }
  ServerUnaryReactor* CudaSharedMemoryRegister(
      CallbackServerContext* context,
      const inference::CudaSharedMemoryRegisterRequest* /*request*/,
      inference::CudaSharedMemoryRegisterResponse* /*response*/) override {
    return Refuse(context, kNoGpu);
  }
  ServerUnaryReactor* CudaSharedMemoryUnregister(
      CallbackServerContext* context,
      const inference::CudaSharedMemoryUnregisterRequest* /*request*/,
      inference::CudaSharedMemoryUnregisterResponse* /*response*/) override {
    return Refuse(context, kNoGpu);
  }

  // ---- what rknnctl has ----

  ServerUnaryReactor* TraceSetting(
      CallbackServerContext* context,
      const inference::TraceSettingRequest* /*request*/,
      inference::TraceSettingResponse* /*response*/) override {
    return Refuse(context,
                  "trace settings: the timeline of all jobs is always kept; "
                  "take it with 'rknnctl trace'");
  }
  ServerUnaryReactor* LogSettings(
      CallbackServerContext* context,
      const inference::LogSettingsRequest* /*request*/,
      inference::LogSettingsResponse* /*response*/) override {
    return Refuse(context,
                  "log settings: set the daemon's level with 'rknnctl logs "
                  "--set-level N'");
  }

 private:
  static constexpr char kNoGpu[] =
      "CUDA shared memory: this server has no GPU. Register a buffer of the "
      "NPU with SystemSharedMemoryRegister";

  // `work` makes the answer at once.
  template <class Work>
  ServerUnaryReactor* Answer(CallbackServerContext* context, Work work) {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    const auto peer = environment_.authenticator->Admit(*context);
    reactor->Finish(ToGrpc(peer.ok() ? work(*peer) : peer.status()));
    return reactor;
  }

  // `work` sees to it that the reactor is finished. Request and response stay
  // as long.
  template <class Work>
  ServerUnaryReactor* AnswerLater(CallbackServerContext* context, Work work) {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    const auto peer = environment_.authenticator->Admit(*context);
    if (peer.ok()) {
      work(reactor);
    } else {
      reactor->Finish(ToGrpc(peer.status()));
    }
    return reactor;
  }

  // `describe` is called with what the model is.
  template <class Describe>
  ServerUnaryReactor* WithModel(CallbackServerContext* context,
                                const std::string& name,
                                const std::string& version, Describe describe) {
    return AnswerLater(context, [&](ServerUnaryReactor* reactor) {
      directory_->Find(
          name, version,
          [this, reactor, describe](absl::StatusOr<ServedModel> model) {
            if (!model.ok()) return reactor->Finish(ToGrpc(model.status()));
            engine_->Open(
                model->id,
                [reactor, describe, model = *model](
                    absl::StatusOr<std::shared_ptr<const ModelView>> view) {
                  if (!view.ok()) return reactor->Finish(ToGrpc(view.status()));
                  describe(model, **view);
                  reactor->Finish(grpc::Status::OK);
                });
          });
    });
  }

  ServerUnaryReactor* Refuse(CallbackServerContext* context,
                             const char* message) {
    return Answer(context, [message](const GrpcPeer&) {
      return absl::UnimplementedError(message);
    });
  }

  static void Tell(const std::vector<Statistics::Entry>& list,
                   inference::ModelStatisticsResponse* response) {
    for (const Statistics::Entry& entry : list) {
      DescribeStatistics(entry, response->add_model_stats());
    }
  }

  // Of the two dialects: one has the model's name where the other has the
  // repository's.
  static std::pair<std::string, std::string> NamesOf(
      const std::string& first, const std::string& second) {
    if (second.empty()) return {"", first};
    return {first, second};
  }

  static absl::Status ReadLoad(
      const inference::RepositoryModelLoadRequest& request,
      Repository::LoadRequest* load) {
    constexpr char kFile[] = "file:";
    std::tie(load->repository, load->name) =
        NamesOf(request.repository_name(), request.model_name());
    using Value = inference::ModelRepositoryParameter;
    for (const auto& [name, value] : request.parameters()) {
      const Value::ParameterChoiceCase given = value.parameter_choice_case();
      if (name == "config") {
        if (given != Value::kStringParam) {
          return absl::InvalidArgumentError(
              "parameter 'config' must be the JSON of a ModelConfig, as "
              "string_param");
        }
        load->config = value.string_param();
      } else if (name.compare(0, sizeof kFile - 1, kFile) == 0) {
        if (given != Value::kBytesParam) {
          return absl::InvalidArgumentError(
              absl::StrCat("parameter '", name.substr(0, 100),
                           "' must be the file's bytes, as bytes_param"));
        }
        load->files.emplace_back(name.substr(sizeof kFile - 1),
                                 value.bytes_param());
      } else {
        return absl::InvalidArgumentError(absl::StrCat(
            "parameter '", name.substr(0, 100),
            "' of RepositoryModelLoad is unknown: there are 'config' and "
            "'file:<version>/<name>'"));
      }
    }
    return absl::OkStatus();
  }

  const GrpcEnvironment environment_;
  const std::string soc_;
  std::atomic<bool> draining_{false};
  Statistics statistics_;
  OpenCalls open_;
  const std::unique_ptr<Repository> repository_;
  const std::unique_ptr<Regions> regions_;
  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<ModelDirectory> directory_;
  const std::unique_ptr<grpc::CallbackGenericService> calls_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcEndpoint>> MakeInferenceEndpoint(
    const GrpcOptions& options, const GrpcEnvironment& environment) {
  RKNND_ASSIGN_OR_RETURN(std::unique_ptr<Repository> repository,
                         Repository::Create(options, environment));
  EngineOptions engine;
  engine.loop = environment.loop;
  engine.clock = environment.clock;
  engine.service = environment.service;
  engine.waker = environment.workers;
  engine.waiting = options.requests;
  // The engine ends before them.
  auto regions = std::make_unique<Regions>(environment.service);
  engine.has_region = [all = regions.get()](uint64_t region) {
    return all->Has(region);
  };
  RKNND_ASSIGN_OR_RETURN(std::shared_ptr<Engine> made, Engine::Create(engine));
  return std::make_unique<InferenceEndpoint>(
      environment, std::move(repository), std::move(regions), std::move(made));
}

}  // namespace rknnd::transport
