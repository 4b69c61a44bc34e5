// See the header.

#include "k8s/plugin.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "k8s/log.h"

namespace rknnd::k8s {
namespace {

constexpr char kKubeletSocket[] = "kubelet.sock";
constexpr base::Nanoseconds kFirstDelay = base::kSecond;
constexpr base::Nanoseconds kLongestDelay = 30 * base::kSecond;

}  // namespace

Plugin::Plugin(PluginOptions options)
    : options_(std::move(options)),
      shares_(options_.shares),
      health_(absl::UnavailableError("rknnd has not been asked yet")),
      register_delay_(kFirstDelay),
      self_(std::make_shared<Plugin*>(this)) {}

Plugin::~Plugin() {
  *self_ = nullptr;
  // 1. No call comes in. 2. Nobody is asked. 3. Sockets go with allocations_;
  // folders stay, for the next life.
  server_.reset();
  registering_.reset();
  link_.reset();
  folder_.reset();
  for (const base::EventLoop::TimerId timer : {grace_timer_, register_timer_}) {
    if (timer != 0) options_.loop->CancelTimer(timer);
  }
}

std::string Plugin::kubelet_socket() const {
  return absl::StrCat(options_.kubelet_dir, "/", kKubeletSocket);
}

std::string Plugin::endpoint() const {
  std::string name = options_.resource;
  std::replace(name.begin(), name.end(), '/', '-');
  return name + ".sock";
}

absl::Status Plugin::Start() {
  RKNND_RETURN_IF_ERROR(CheckResourceName(options_.resource));
  RKNND_ASSIGN_OR_RETURN(allocations_, Allocations::Open(options_.socket_dir));
  RKNND_ASSIGN_OR_RETURN(
      folder_, FolderWatch::Start(
                   options_.kubelet_dir, options_.loop,
                   [this](const std::string& name) { OnFolderChanged(name); }));
  RKNND_RETURN_IF_ERROR(Serve());
  DaemonLink::Options link;
  link.socket = absl::StrCat(options_.socket_dir, "/admin.sock");
  link.loop = options_.loop;
  link.interval = options_.interval;
  link.up = [this](const Capacity& capacity) { OnDaemonUp(capacity); };
  link.health = [this](const absl::Status& status) { OnHealth(status); };
  link_.emplace(std::move(link));
  link_->Start();
  // With a delay of 0 the first answer of rknnd may be in the first list.
  RegisterSoon(0);
  return absl::OkStatus();
}

// ---- the kubelet ------------------------------------------------------------

absl::Status Plugin::Serve() {
  server_.reset();
  RKNND_ASSIGN_OR_RETURN(
      server_,
      PluginServer::Start(
          absl::StrCat(options_.kubelet_dir, "/", endpoint()), options_.loop,
          [this, self = self_](auto containers, auto granted) {
            if (*self == nullptr) {
              return granted(absl::UnavailableError("rknnd-k8s ends"));
            }
            Allocate(containers, granted);
          }));
  // The list there is, even where it is empty: a kubelet waits for the first.
  server_->Publish(published_);
  return absl::OkStatus();
}

void Plugin::OnFolderChanged(const std::string& name) {
  // Names that others made are others' business. "": events were lost.
  if (!name.empty() && name != kKubeletSocket && name != endpoint()) return;
  // A kubelet that starts removes all sockets and makes its own anew. What this
  // program makes itself comes here too, and finds all as it should be.
  const bool is_there = access(kubelet_socket().c_str(), F_OK) == 0;
  if (name == kKubeletSocket) {
    registered_ = false;
    registering_.reset();  // it was another one that was asked
    register_delay_ = kFirstDelay;
  }
  if (is_there && (!registered_ || !server_ || !server_->is_reachable())) {
    RegisterSoon(0);
  }
}

void Plugin::RegisterSoon(base::Nanoseconds delay) {
  if (register_timer_ != 0) options_.loop->CancelTimer(register_timer_);
  register_timer_ = options_.loop->RunAfter(delay, [this] {
    register_timer_ = 0;
    RegisterNow();
  });
}

void Plugin::RegisterNow() {
  if (registering_ != nullptr) return;
  if (access(kubelet_socket().c_str(), F_OK) != 0) {
    Log(Severity::kInfo, absl::StrCat("no kubelet at '", kubelet_socket(),
                                      "' yet: waiting for it"));
    return Tell();
  }
  if (server_ == nullptr || !server_->is_reachable()) {
    if (const absl::Status served = Serve(); !served.ok()) {
      return OnRegistered(served);
    }
    registered_ = false;
  }
  if (registered_) return;
  registering_ =
      RegisterCall::Start({kubelet_socket(), endpoint(), options_.resource},
                          options_.loop, [this](const absl::Status& status) {
                            registering_.reset();
                            OnRegistered(status);
                          });
}

void Plugin::OnRegistered(const absl::Status& status) {
  registered_ = status.ok();
  if (status.ok()) {
    register_delay_ = kFirstDelay;
    Log(Severity::kInfo,
        absl::StrCat("registered '", options_.resource, "' with the kubelet"));
  } else {
    Log(Severity::kError,
        absl::StrCat("cannot register '", options_.resource,
                     "' with the kubelet: ", std::string(status.message()),
                     "; trying again in ", register_delay_ / base::kSecond,
                     " s"));
    RegisterSoon(register_delay_);
    register_delay_ = std::min(register_delay_ * 2, kLongestDelay);
  }
  Tell();
}

// ---- rknnd ------------------------------------------------------------------

void Plugin::OnDaemonUp(const Capacity& capacity) {
  capacity_ = capacity;
  if (shares_ == 0) shares_ = DefaultShares(capacity.cores);
  for (const std::string& name : std::exchange(to_close_, {}))
    CloseShareSocket(name);
  for (const auto& [name, allocation] : allocations_->all()) {
    OpenShareSocket(allocation, [name = name](const absl::Status& status) {
      if (status.ok()) return;
      Log(Severity::kError, absl::StrCat("rknnd does not serve '", name,
                                         "': ", std::string(status.message())));
    });
  }
}

void Plugin::OnHealth(const absl::Status& status) {
  const bool lost = !link_->is_up();
  if (!lost && grace_timer_ != 0) {
    options_.loop->CancelTimer(std::exchange(grace_timer_, 0));
  }
  // What rknnd says of itself holds at once; its silence, after a while.
  if (!lost || !health_.ok()) return SetHealth(status);
  if (grace_timer_ != 0) return;
  grace_timer_ = options_.loop->RunAfter(options_.grace, [this, status] {
    grace_timer_ = 0;
    SetHealth(status);
  });
}

void Plugin::SetHealth(const absl::Status& status) {
  const bool changed = status != health_;
  health_ = status;
  if (changed && status.ok()) Log(Severity::kInfo, "rknnd is well");
  if (changed && !status.ok()) {
    Log(Severity::kError,
        absl::StrCat("shares are unhealthy: ", std::string(status.message())));
  }
  Publish();
  if (changed) Tell();
}

void Plugin::Publish() {
  std::vector<Device> devices;
  for (uint32_t share = 0; share < shares_; ++share) {
    devices.push_back({ShareId(share), health_.ok()});
  }
  if (devices == published_) return;
  published_ = std::move(devices);
  if (server_ != nullptr) server_->Publish(published_);
}

void Plugin::Tell() {
  if (options_.tell == nullptr) return;
  options_.tell(absl::StrCat(
      published_.size(), " shares of ", options_.resource, ", ",
      registered_ ? "registered" : "waiting for the kubelet",
      "; rknnd: ", health_.ok() ? "well" : std::string(health_.message())));
}

// ---- containers -------------------------------------------------------------

void Plugin::Allocate(const std::vector<std::vector<std::string>>& containers,
                      const PluginServer::Granted& granted) {
  // All or none: what is asked for is looked at before any is made.
  std::vector<std::vector<uint32_t>> asked;
  std::set<uint32_t> all;
  for (const std::vector<std::string>& ids : containers) {
    auto shares = ParseShareIds(ids, shares_);
    if (!shares.ok()) return granted(shares.status());
    for (const uint32_t share : *shares) {
      if (!all.insert(share).second) {
        return granted(absl::InvalidArgumentError(absl::StrCat(
            "share '", ShareId(share), "' is asked for by two containers")));
      }
    }
    asked.push_back(*std::move(shares));
  }
  std::vector<Grant> grants;
  std::vector<const Allocation*> made;
  for (const std::vector<uint32_t>& shares : asked) {
    std::vector<std::string> ended;
    auto allocation = allocations_->Make(shares, &ended);
    for (const std::string& name : ended) CloseShareSocket(name);
    if (!allocation.ok()) {
      Log(Severity::kError,
          absl::StrCat("an allocation failed: ",
                       std::string(allocation.status().message())));
      return granted(allocation.status());
    }
    grants.push_back({(*allocation)->name, (*allocation)->folder});
    made.push_back(*allocation);
  }
  struct Waiting {
    size_t left = 0;
    std::vector<Grant> grants;
    PluginServer::Granted granted;
    absl::Status status;
  };
  const auto waiting = std::make_shared<Waiting>();
  waiting->left = made.size() + 1;
  waiting->grants = std::move(grants);
  waiting->granted = granted;
  const auto done = [waiting](const absl::Status& status) {
    // A daemon that is away for a moment finds the share socket when it is
    // back, and the container's first call waits for it in the socket's queue.
    if (!status.ok() && !absl::IsUnavailable(status)) waiting->status = status;
    if (--waiting->left > 0) return;
    if (!waiting->status.ok()) return waiting->granted(waiting->status);
    waiting->granted(std::move(waiting->grants));
  };
  for (const Allocation* allocation : made) {
    Log(Severity::kInfo,
        absl::StrCat("'", allocation->name, "' is given away with ",
                     allocation->shares.size(), " of ", shares_, " shares"));
    OpenShareSocket(*allocation, done);
  }
  done(absl::OkStatus());
}

void Plugin::OpenShareSocket(const Allocation& allocation,
                             const DaemonLink::Done& done) {
  link_->OpenShareSocket(
      ShareSocketFor(allocation.name,
                     static_cast<uint32_t>(allocation.shares.size()), shares_,
                     capacity_),
      allocation.listener.get(), done);
}

void Plugin::CloseShareSocket(const std::string& name) {
  link_->CloseShareSocket(name, [this, name](const absl::Status& status) {
    if (absl::IsUnavailable(status)) {
      to_close_.insert(name);
    } else if (!status.ok()) {
      Log(Severity::kWarning,
          absl::StrCat("rknnd does not close '", name,
                       "': ", std::string(status.message())));
    }
  });
}

}  // namespace rknnd::k8s
