// rknnd-k8s put together: shares of one NPU for the pods of one node. Tells the
// kubelet how many there are and whether they are well, gives a container that
// gets some a folder with a socket (allocations.h), and tells rknnd what may
// come in there (daemon_link.h).
//
// Whatever is started again finds the others as they were: rknnd gets its share
// sockets anew, the kubelet is registered with anew, and after a restart of
// this program containers go on with the sockets they have.

#ifndef K8S_PLUGIN_H_
#define K8S_PLUGIN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "k8s/allocations.h"
#include "k8s/daemon_link.h"
#include "k8s/kubelet.h"
#include "k8s/plugin_server.h"
#include "k8s/shares.h"

namespace rknnd::k8s {

struct PluginOptions {
  std::string resource = "rknnd.io/npu-share";
  uint32_t shares = 0;  // 0: DefaultShares, once rknnd has been asked
  std::string kubelet_dir = "/var/lib/kubelet/device-plugins";
  std::string socket_dir = "/run/rknnd";
  // A daemon that is started again is no reason to take a node's shares away.
  base::Nanoseconds grace = 10 * base::kSecond;
  base::Nanoseconds interval = 5 * base::kSecond;  // DaemonLink's
  base::EventLoop* loop = nullptr;
  // A line about how it stands, for the service manager. May be null.
  std::function<void(const std::string&)> tell;
};

// Thread: loop, not within one of its own callbacks for the destructor.
class Plugin {
 public:
  explicit Plugin(PluginOptions options);
  ~Plugin();

  // Serves when it returns OK, and goes on until it is destroyed. A kubelet or
  // an rknnd that is not there yet is waited for.
  absl::Status Start();

 private:
  absl::Status Serve();
  void OnFolderChanged(const std::string& name);
  void RegisterSoon(base::Nanoseconds delay);
  void RegisterNow();
  void OnRegistered(const absl::Status& status);

  void OnDaemonUp(const Capacity& capacity);
  void OnHealth(const absl::Status& status);
  void SetHealth(const absl::Status& status);
  void Publish();
  void Tell();

  void Allocate(const std::vector<std::vector<std::string>>& containers,
                const PluginServer::Granted& granted);
  void OpenShareSocket(const Allocation& allocation,
                       const DaemonLink::Done& done);
  void CloseShareSocket(const std::string& name);

  [[nodiscard]] std::string kubelet_socket() const;
  [[nodiscard]] std::string endpoint() const;

  const PluginOptions options_;
  uint32_t shares_;
  Capacity capacity_;
  std::unique_ptr<Allocations> allocations_;
  std::unique_ptr<FolderWatch> folder_;
  std::optional<DaemonLink> link_;
  std::unique_ptr<PluginServer> server_;
  // Share sockets of allocations that ended while rknnd could not be told.
  std::set<std::string> to_close_;

  // Of rknnd; not OK before its first word.
  absl::Status health_;
  base::EventLoop::TimerId grace_timer_ = 0;
  std::vector<Device> published_;

  base::EventLoop::TimerId register_timer_ = 0;
  base::Nanoseconds register_delay_;
  std::unique_ptr<RegisterCall> registering_;  // null: nobody is asked
  bool registered_ = false;
  // What is called later finds out by it that this has gone.
  const std::shared_ptr<Plugin*> self_;
};

}  // namespace rknnd::k8s

#endif  // K8S_PLUGIN_H_
