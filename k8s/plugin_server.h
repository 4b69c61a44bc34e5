// The service v1beta1.DevicePlugin on a Unix socket in the kubelet's folder:
// turns calls into questions to the plugin and its answers into replies. gRPC's
// threads wait for nothing: a call is posted to the loop and finished from
// there. Made and destroyed by the plugin on the loop. Its peers may write in
// the kubelet's folder, that is, are root; their calls have bounds all the
// same.

#ifndef K8S_PLUGIN_SERVER_H_
#define K8S_PLUGIN_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/event_loop.h"

namespace rknnd::k8s {

struct Device {
  std::string id;
  bool healthy = false;
  friend bool operator==(const Device&, const Device&) = default;
};

// What a container gets with its devices.
struct Grant {
  std::string share;        // for people: the first of its devices
  std::string host_folder;  // to be mounted as /run/rknnd
};

// Thread: loop.
class PluginServer {
 public:
  using Granted = std::function<void(absl::StatusOr<std::vector<Grant>>)>;
  // Device ids of each container; answered once, at once or later.
  using Allocate =
      std::function<void(std::vector<std::vector<std::string>>, Granted)>;

  // Serves at `path` when it returns. What lies there is replaced.
  static absl::StatusOr<std::unique_ptr<PluginServer>> Start(
      const std::string& path, base::EventLoop* loop, Allocate allocate);
  // Ends all calls; the socket's name goes, if it is still this one's.
  ~PluginServer();
  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;

  // To all who watch, and to those who will. Nothing is sent before the first.
  void Publish(const std::vector<Device>& devices);

  // Whether its name leads to it: a kubelet that starts clears its folder.
  [[nodiscard]] bool is_reachable() const;

 private:
  class Impl;
  explicit PluginServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rknnd::k8s

#endif  // K8S_PLUGIN_SERVER_H_
