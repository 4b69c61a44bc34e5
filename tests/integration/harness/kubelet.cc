// See the header. One thread for each plugin that is listened to; gRPC's own
// for registrations.

#include "tests/integration/harness/kubelet.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "base/posix/mutex.h"
#include "kubernetes/device_plugin.grpc.pb.h"
#include "tests/integration/harness/patience.h"

namespace rknnd::integration {
namespace {

namespace fs = std::filesystem;

// A kubelet gives up on a plugin that cannot be dialled within this.
constexpr std::chrono::seconds kDial{10};

std::chrono::system_clock::time_point Deadline() {
  return std::chrono::system_clock::now() + std::chrono::nanoseconds(kPatience);
}

}  // namespace

class Kubelet::Impl final : public v1beta1::Registration::Service {
 public:
  explicit Impl(std::string folder) : folder_(std::move(folder)) {}
  ~Impl() override { Stop(); }

  void Start() {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      if (entry.is_socket()) fs::remove(entry.path());
    }
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + Socket(),
                             grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr) << "no kubelet at " << Socket();
  }

  void Stop() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    std::vector<std::thread> threads;
    {
      const base::MutexLock lock(mutex_);
      if (watch_ != nullptr) watch_->TryCancel();
      threads.swap(threads_);
    }
    for (std::thread& thread : threads) thread.join();
  }

  grpc::Status Register(grpc::ServerContext* /*context*/,
                        const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* /*reply*/) override {
    const base::MutexLock lock(mutex_);
    if (!refusal_.empty()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, refusal_};
    }
    ++registrations_;
    last_ = Plugin{request->version(), request->endpoint(),
                   request->resource_name(),
                   request->options().pre_start_required(),
                   request->options().get_preferred_allocation_available()};
    // As the real one: it dials after it has answered.
    threads_.emplace_back(
        [this, endpoint = request->endpoint()] { Listen(endpoint); });
    return grpc::Status::OK;
  }

  // The plugin's own thread.
  void Listen(const std::string& endpoint) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel = grpc::CreateCustomChannel(
        "unix:" + folder_ + "/" + endpoint, grpc::InsecureChannelCredentials(),
        arguments);
    if (!channel->WaitForConnected(std::chrono::system_clock::now() + kDial)) {
      return;
    }
    const auto context = std::make_shared<grpc::ClientContext>();
    std::shared_ptr<v1beta1::DevicePlugin::Stub> stub =
        v1beta1::DevicePlugin::NewStub(channel);
    {
      const base::MutexLock lock(mutex_);
      stub_ = stub;
      if (watch_ != nullptr) watch_->TryCancel();
      watch_ = context;
      devices_.clear();
    }
    const auto reader = stub->ListAndWatch(context.get(), v1beta1::Empty());
    v1beta1::ListAndWatchResponse list;
    while (reader->Read(&list)) {
      const base::MutexLock lock(mutex_);
      if (watch_ != context) continue;
      devices_.clear();
      for (const v1beta1::Device& device : list.devices()) {
        devices_[device.id()] = device.health();
      }
    }
    static_cast<void>(reader->Finish());
    const base::MutexLock lock(mutex_);
    if (watch_ == context) devices_.clear();
  }

  std::shared_ptr<v1beta1::DevicePlugin::Stub> AwaitStub() {
    std::shared_ptr<v1beta1::DevicePlugin::Stub> stub;
    EXPECT_TRUE(Eventually([&] {
      const base::MutexLock lock(mutex_);
      stub = stub_;
      return stub != nullptr;
    })) << "no plugin has registered";
    return stub;
  }

  [[nodiscard]] std::string Socket() const { return folder_ + "/kubelet.sock"; }

  const std::string folder_;
  std::unique_ptr<grpc::Server> server_;
  base::Mutex mutex_;
  std::string refusal_ RKNND_GUARDED_BY(mutex_);
  size_t registrations_ RKNND_GUARDED_BY(mutex_) = 0;
  Plugin last_ RKNND_GUARDED_BY(mutex_);
  std::map<std::string, std::string> devices_ RKNND_GUARDED_BY(mutex_);
  std::shared_ptr<v1beta1::DevicePlugin::Stub> stub_ RKNND_GUARDED_BY(mutex_);
  std::shared_ptr<grpc::ClientContext> watch_ RKNND_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ RKNND_GUARDED_BY(mutex_);
};

Kubelet::Kubelet(std::string folder)
    : impl_(std::make_shared<Impl>(std::move(folder))) {}
Kubelet::~Kubelet() = default;

void Kubelet::Start() { impl_->Start(); }
void Kubelet::Stop() { impl_->Stop(); }

void Kubelet::Refuse(const std::string& reason) {
  const base::MutexLock lock(impl_->mutex_);
  impl_->refusal_ = reason;
}

size_t Kubelet::registrations() const {
  const base::MutexLock lock(impl_->mutex_);
  return impl_->registrations_;
}

Kubelet::Plugin Kubelet::AwaitPlugin(size_t registrations) {
  EXPECT_TRUE(Eventually([&] {
    return this->registrations() >= registrations;
  })) << "no plugin has registered";
  const base::MutexLock lock(impl_->mutex_);
  return impl_->last_;
}

std::map<std::string, std::string> Kubelet::devices() const {
  const base::MutexLock lock(impl_->mutex_);
  return impl_->devices_;
}

size_t Kubelet::healthy() const {
  size_t healthy = 0;
  for (const auto& [id, health] : devices()) healthy += health == "Healthy";
  return healthy;
}

bool Kubelet::Await(size_t healthy, size_t all) {
  return Eventually(
      [&] { return devices().size() == all && this->healthy() == healthy; });
}

Kubelet::Allocated Kubelet::Allocate(
    const std::vector<std::vector<std::string>>& containers) {
  v1beta1::AllocateRequest request;
  for (const std::vector<std::string>& ids : containers) {
    auto* container = request.add_container_requests();
    for (const std::string& id : ids) container->add_devicesids(id);
  }
  const auto stub = impl_->AwaitStub();
  if (stub == nullptr) return {};
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  v1beta1::AllocateResponse reply;
  const grpc::Status status = stub->Allocate(&context, request, &reply);
  Allocated allocated;
  allocated.code = status.error_code();
  allocated.error = status.error_message();
  for (const auto& container : reply.container_responses()) {
    Container& added = allocated.containers.emplace_back();
    added.environment = {container.envs().begin(), container.envs().end()};
    added.annotations = {container.annotations().begin(),
                         container.annotations().end()};
    for (const v1beta1::Mount& mount : container.mounts()) {
      added.mounts.push_back(
          {mount.container_path(), mount.host_path(), mount.read_only()});
    }
    added.devices = static_cast<size_t>(container.devices_size());
  }
  return allocated;
}

int Kubelet::AskForPreference() {
  const auto stub = impl_->AwaitStub();
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  v1beta1::PreferredAllocationResponse reply;
  return stub->GetPreferredAllocation(&context, {}, &reply).error_code();
}

int Kubelet::PreStart() {
  const auto stub = impl_->AwaitStub();
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  v1beta1::PreStartContainerResponse reply;
  return stub->PreStartContainer(&context, {}, &reply).error_code();
}

int Kubelet::RefusedWatchers(int count) {
  const auto stub = impl_->AwaitStub();
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1beta1::ListAndWatchResponse>> reader;
  };
  std::vector<std::unique_ptr<Watch>> watches;
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    auto& watch = watches.emplace_back(std::make_unique<Watch>());
    watch->context.set_deadline(Deadline());
    watch->reader = stub->ListAndWatch(&watch->context, v1beta1::Empty());
    v1beta1::ListAndWatchResponse list;
    if (watch->reader->Read(&list)) continue;
    const grpc::Status status = watch->reader->Finish();
    refused += status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
    watches.pop_back();
  }
  for (const auto& watch : watches) watch->context.TryCancel();
  for (const auto& watch : watches) static_cast<void>(watch->reader->Finish());
  return refused;
}

}  // namespace rknnd::integration
