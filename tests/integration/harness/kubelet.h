// A kubelet as its device plugins see it: Registration on kubelet.sock, and for
// who registers a client of the plugin's own socket, by the real API. Keeps the
// devices that it was told of, gives them to containers, and can be stopped and
// started again as a real one is, which clears its folder of sockets.

#ifndef TESTS_INTEGRATION_HARNESS_KUBELET_H_
#define TESTS_INTEGRATION_HARNESS_KUBELET_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rknnd::integration {

// Thread: any, one at a time.
class Kubelet {
 public:
  // Does not start it.
  explicit Kubelet(std::string folder);
  ~Kubelet();
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;

  // Removes all sockets of its folder, then serves.
  void Start();
  // Its socket stays behind, as after a crash.
  void Stop();
  // Registrations are refused with this, "" accepts them again.
  void Refuse(const std::string& reason);

  struct Plugin {
    std::string version, endpoint, resource;
    bool pre_start_required = false, preferred_allocation = false;
  };
  // Registrations so far, over all lives.
  [[nodiscard]] size_t registrations() const;
  // The last one. Fails the test when there is none within its patience.
  Plugin AwaitPlugin(size_t registrations = 1);

  // Id to "Healthy" or "Unhealthy", as the last list of the plugin has them;
  // empty once its ListAndWatch has ended.
  [[nodiscard]] std::map<std::string, std::string> devices() const;
  [[nodiscard]] size_t healthy() const;
  // Waits for so many that are, and as many in all; false when they never come.
  bool Await(size_t healthy, size_t all);

  struct Container {
    std::map<std::string, std::string> environment, annotations;
    struct Mount {
      std::string container_path, host_path;
      bool read_only = false;
    };
    std::vector<Mount> mounts;
    size_t devices = 0;
  };
  struct Allocated {
    int code = -1;  // gRPC's
    std::string error;
    std::vector<Container> containers;
  };
  // A pod whose containers get these devices.
  Allocated Allocate(const std::vector<std::vector<std::string>>& containers);

  // The code of a call that no kubelet makes here.
  int AskForPreference();
  int PreStart();
  // Calls of ListAndWatch that are open at one time; how many were refused.
  int RefusedWatchers(int count);

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_KUBELET_H_
