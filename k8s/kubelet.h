// The kubelet, as its device plugins see it: a socket in a folder, to which one
// registers, and which is made anew when the kubelet starts again. Used by the
// plugin. The folder is root's.

#ifndef K8S_KUBELET_H_
#define K8S_KUBELET_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/event_loop.h"

namespace rknnd::k8s {

// Hears of files that are made or removed in a folder. Thread: loop.
class FolderWatch {
 public:
  // `changed` is called with the name of each.
  using Changed = std::function<void(const std::string& name)>;
  static absl::StatusOr<std::unique_ptr<FolderWatch>> Start(
      const std::string& folder, base::EventLoop* loop, Changed changed);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

 private:
  class Impl;
  explicit FolderWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Registration {
  std::string kubelet_socket;
  std::string endpoint;  // the plugin's socket, by its name in that folder
  std::string resource;
};

// Asks the kubelet to dial the plugin. Thread: loop.
class RegisterCall {
 public:
  // `done` is called once, on the loop and later: within a few seconds, or not
  // at all when this goes before.
  static std::unique_ptr<RegisterCall> Start(
      const Registration& registration, base::EventLoop* loop,
      std::function<void(absl::Status)> done);
  // Cancels it, and waits for gRPC to let go of it: that is at once.
  ~RegisterCall();
  RegisterCall(const RegisterCall&) = delete;
  RegisterCall& operator=(const RegisterCall&) = delete;

 private:
  class Impl;
  explicit RegisterCall(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rknnd::k8s

#endif  // K8S_KUBELET_H_
