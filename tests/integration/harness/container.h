// Containers without a container engine: a root folder that holds a program and
// the libraries it is linked to and nothing else, and a command that runs the
// program there in namespaces of its own (user, mount, pid, net, ipc, uts).

#ifndef TESTS_INTEGRATION_HARNESS_CONTAINER_H_
#define TESTS_INTEGRATION_HARNESS_CONTAINER_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace rknnd::integration {

// Copies the program and what ldd lists for it to the same paths below `root`.
// Fails the test when that cannot be done.
void MakeMinimalRoot(const std::string& root, const std::string& program);

struct ContainerOptions {
  std::string root;
  std::string program;  // as a path in it
  // Folders or files of the host by their path inside; made there before.
  // Mounted read-only.
  std::vector<std::pair<std::string, std::string>> mounts = {};
  // What is run before the namespaces are made: setpriv, say.
  std::vector<std::string> as = {};
};

// The command of a container. Its own process is the child of the one that this
// starts; both end together.
std::vector<std::string> ContainerCommand(const ContainerOptions& options);

// The container's process as the host numbers it.
pid_t ContainerPid(pid_t command);

// Empty, or why this machine makes no such containers.
std::string WhyNoContainers(const std::vector<std::string>& as = {});

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_CONTAINER_H_
