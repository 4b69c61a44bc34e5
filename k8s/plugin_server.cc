// See the header. Order of the end: every call is finished, gRPC stops, the
// socket's name goes.

#include "k8s/plugin_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/posix/blocked_signals.h"
#include "base/posix/mutex.h"
#include "kubernetes/device_plugin.grpc.pb.h"

namespace rknnd::k8s {
namespace {

constexpr char kContainerFolder[] = "/run/rknnd";
constexpr char kTarget[] = "unix:/run/rknnd/session.sock";
constexpr char kAnnotation[] = "rknnd.io/share";

// A request for all the shares there may be takes some KiB; a kubelet has one
// connection and watches once.
constexpr int kMostRequestBytes = 256 << 10;
constexpr size_t kMostMemory = 16 << 20;
constexpr int kMostStreams = 16;
constexpr size_t kMostWatchers = 8;
// For answers that are on their way when the server ends.
constexpr std::chrono::seconds kLastAnswers{1};

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.raw_code()),
          std::string(status.message())};
}

void Fill(const Grant& grant, v1beta1::ContainerAllocateResponse* container) {
  (*container->mutable_envs())["RKNND_TARGET"] = kTarget;
  (*container->mutable_annotations())[kAnnotation] = grant.share;
  v1beta1::Mount* mount = container->add_mounts();
  mount->set_container_path(kContainerFolder);
  mount->set_host_path(grant.host_folder);
  // A socket can be connected to on it; names can be neither made nor removed.
  mount->set_read_only(true);
}

// Which file a name leads to.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileId&, const FileId&) = default;
};
std::optional<FileId> Look(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

// Calls that are not finished. Each is finished once: by its answer, or by the
// end of the server. Thread: any.
class OpenCalls {
 public:
  // False once the server ends.
  bool Add(grpc::ServerUnaryReactor* call) {
    const base::MutexLock lock(mutex_);
    if (ended_) return false;
    calls_.insert(call);
    return true;
  }
  // False for one that was finished; else it is the caller's to finish.
  bool Take(grpc::ServerUnaryReactor* call) {
    const base::MutexLock lock(mutex_);
    return calls_.erase(call) != 0;
  }
  void End() {
    std::set<grpc::ServerUnaryReactor*> calls;
    {
      const base::MutexLock lock(mutex_);
      ended_ = true;
      calls.swap(calls_);
    }
    for (grpc::ServerUnaryReactor* call : calls) {
      call->Finish({grpc::StatusCode::UNAVAILABLE, "rknnd-k8s ends"});
    }
  }

 private:
  base::Mutex mutex_;
  bool ended_ RKNND_GUARDED_BY(mutex_) = false;
  std::set<grpc::ServerUnaryReactor*> calls_ RKNND_GUARDED_BY(mutex_);
};

// The list of devices, and who watches it. Thread: any. A watcher's writes are
// begun under the lock, which gRPC never takes: its callbacks come on its own
// threads.
class Watchers {
 public:
  class Watcher final
      : public grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse> {
   public:
    explicit Watcher(std::shared_ptr<Watchers> all) : all_(std::move(all)) {
      all_->Add(this);
    }

    void OnWriteDone(bool ok) override { all_->Written(this, ok); }
    void OnCancel() override { all_->Cancelled(this); }
    void OnDone() override {
      all_->Remove(this);
      delete this;
    }

   private:
    friend class Watchers;
    // Under the lock of Watchers.
    void Send(const v1beta1::ListAndWatchResponse& list, uint64_t version) {
      sent_ = version;
      writing_ = true;
      message_ = list;
      StartWrite(&message_);
    }
    // Not while a message is on its way: then when that is written.
    void End(const grpc::Status& status) {
      if (finished_ || ending_.has_value()) return;
      ending_ = status;
      if (!writing_) FinishNow();
    }
    void FinishNow() {
      finished_ = true;
      Finish(*ending_);
    }

    const std::shared_ptr<Watchers> all_;
    v1beta1::ListAndWatchResponse message_;  // stays until it is written
    uint64_t sent_ = 0;
    bool writing_ = false, finished_ = false;
    std::optional<grpc::Status> ending_;
  };

  void Publish(const v1beta1::ListAndWatchResponse& list) {
    const base::MutexLock lock(mutex_);
    list_ = list;
    ++version_;
    for (Watcher* watcher : watchers_) Update(watcher);
  }
  void End() {
    const base::MutexLock lock(mutex_);
    ended_ = true;
    for (Watcher* watcher : watchers_) watcher->End(Ended());
  }

 private:
  static grpc::Status Ended() {
    return {grpc::StatusCode::UNAVAILABLE, "rknnd-k8s ends"};
  }

  void Add(Watcher* watcher) {
    const base::MutexLock lock(mutex_);
    if (ended_) return watcher->End(Ended());
    if (watchers_.size() >= kMostWatchers) {
      return watcher->End({grpc::StatusCode::RESOURCE_EXHAUSTED,
                           "too many calls of ListAndWatch at one time"});
    }
    watchers_.insert(watcher);
    Update(watcher);
  }
  void Update(Watcher* watcher) RKNND_REQUIRES(mutex_) {
    if (watcher->writing_ || watcher->ending_.has_value()) return;
    if (watcher->sent_ != version_) watcher->Send(list_, version_);
  }
  void Written(Watcher* watcher, bool ok) {
    const base::MutexLock lock(mutex_);
    watcher->writing_ = false;
    if (watcher->ending_.has_value()) return watcher->FinishNow();
    if (!ok) return watcher->End(grpc::Status::CANCELLED);
    Update(watcher);
  }
  void Cancelled(Watcher* watcher) {
    const base::MutexLock lock(mutex_);
    watcher->End(grpc::Status::CANCELLED);
  }
  void Remove(Watcher* watcher) {
    const base::MutexLock lock(mutex_);
    watchers_.erase(watcher);
  }

  base::Mutex mutex_;
  v1beta1::ListAndWatchResponse list_ RKNND_GUARDED_BY(mutex_);
  uint64_t version_ RKNND_GUARDED_BY(mutex_) = 0;  // 0: there is none yet
  std::set<Watcher*> watchers_ RKNND_GUARDED_BY(mutex_);
  bool ended_ RKNND_GUARDED_BY(mutex_) = false;
};

class Service final : public v1beta1::DevicePlugin::CallbackService {
 public:
  Service(base::EventLoop* loop, PluginServer::Allocate allocate)
      : loop_(loop),
        allocate_(
            std::make_shared<PluginServer::Allocate>(std::move(allocate))) {}

  void End() {
    watchers_->End();
    calls_->End();
  }
  Watchers& watchers() { return *watchers_; }

  grpc::ServerUnaryReactor* GetDevicePluginOptions(
      grpc::CallbackServerContext* context, const v1beta1::Empty* /*request*/,
      v1beta1::DevicePluginOptions* reply) override {
    reply->set_pre_start_required(false);
    reply->set_get_preferred_allocation_available(false);
    return Finished(context, grpc::Status::OK);
  }

  grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* ListAndWatch(
      grpc::CallbackServerContext* /*context*/,
      const v1beta1::Empty* /*request*/) override {
    return new Watchers::Watcher(watchers_);  // deletes itself when done
  }

  grpc::ServerUnaryReactor* GetPreferredAllocation(
      grpc::CallbackServerContext* context,
      const v1beta1::PreferredAllocationRequest* /*request*/,
      v1beta1::PreferredAllocationResponse* /*reply*/) override {
    return Finished(context,
                    {grpc::StatusCode::UNIMPLEMENTED,
                     "shares are all alike: none is preferred to others, as "
                     "GetDevicePluginOptions says"});
  }

  grpc::ServerUnaryReactor* PreStartContainer(
      grpc::CallbackServerContext* context,
      const v1beta1::PreStartContainerRequest* /*request*/,
      v1beta1::PreStartContainerResponse* /*reply*/) override {
    return Finished(context, grpc::Status::OK);  // nothing is to be done
  }

  grpc::ServerUnaryReactor* Allocate(
      grpc::CallbackServerContext* context,
      const v1beta1::AllocateRequest* request,
      v1beta1::AllocateResponse* reply) override {
    grpc::ServerUnaryReactor* const call = context->DefaultReactor();
    if (!calls_->Add(call)) {
      call->Finish({grpc::StatusCode::UNAVAILABLE, "rknnd-k8s ends"});
      return call;
    }
    std::vector<std::vector<std::string>> containers;
    for (const auto& container : request->container_requests()) {
      containers.emplace_back(container.devicesids().begin(),
                              container.devicesids().end());
    }
    loop_->Post([allocate = allocate_, calls = calls_, call, reply,
                 containers = std::move(containers)] {
      (*allocate)(containers,
                  [calls, call,
                   reply](const absl::StatusOr<std::vector<Grant>>& grants) {
                    if (!calls->Take(call)) return;
                    if (!grants.ok())
                      return call->Finish(ToGrpc(grants.status()));
                    for (const Grant& grant : *grants) {
                      Fill(grant, reply->add_container_responses());
                    }
                    call->Finish(grpc::Status::OK);
                  });
    });
    return call;
  }

 private:
  static grpc::ServerUnaryReactor* Finished(
      grpc::CallbackServerContext* context, const grpc::Status& status) {
    grpc::ServerUnaryReactor* const call = context->DefaultReactor();
    call->Finish(status);
    return call;
  }

  base::EventLoop* const loop_;
  // Shared with what is posted, which may run when this has gone.
  const std::shared_ptr<PluginServer::Allocate> allocate_;
  const std::shared_ptr<OpenCalls> calls_ = std::make_shared<OpenCalls>();
  const std::shared_ptr<Watchers> watchers_ = std::make_shared<Watchers>();
};

}  // namespace

class PluginServer::Impl {
 public:
  Impl(std::string path, base::EventLoop* loop, Allocate allocate)
      : path_(std::move(path)), service_(loop, std::move(allocate)) {}

  ~Impl() {
    service_.End();
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now() + kLastAnswers);
    }
    if (is_reachable()) unlink(path_.c_str());
  }

  absl::Status Start() {
    // gRPC's threads take no signals.
    const base::BlockedSignals blocked;
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota("rknnd-k8s");
    quota.Resize(kMostMemory);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMostRequestBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
    int port = 0;
    builder.AddListeningPort(absl::StrCat("unix:", path_),
                             grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return absl::UnavailableError(absl::StrCat(
          "cannot serve at '", path_,
          "': may it be written, and is its folder the kubelet's?"));
    }
    file_ = Look(path_);
    return absl::OkStatus();
  }

  void Publish(const std::vector<Device>& devices) {
    v1beta1::ListAndWatchResponse list;
    for (const Device& device : devices) {
      v1beta1::Device* added = list.add_devices();
      added->set_id(device.id);
      added->set_health(device.healthy ? "Healthy" : "Unhealthy");
    }
    service_.watchers().Publish(list);
  }

  [[nodiscard]] bool is_reachable() const {
    return file_.has_value() && Look(path_) == file_;
  }

 private:
  const std::string path_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<FileId> file_;
};

PluginServer::PluginServer(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
PluginServer::~PluginServer() = default;

absl::StatusOr<std::unique_ptr<PluginServer>> PluginServer::Start(
    const std::string& path, base::EventLoop* loop, Allocate allocate) {
  auto impl = std::make_unique<Impl>(path, loop, std::move(allocate));
  if (absl::Status started = impl->Start(); !started.ok()) return started;
  return std::unique_ptr<PluginServer>(new PluginServer(std::move(impl)));
}

void PluginServer::Publish(const std::vector<Device>& devices) {
  impl_->Publish(devices);
}

bool PluginServer::is_reachable() const { return impl_->is_reachable(); }

}  // namespace rknnd::k8s
