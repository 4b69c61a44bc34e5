// What rknnd-k8s has to say, as lines on stderr: the journal gets their
// priority, a container's log the words alone. Called by all of k8s/; its peers
// (the kubelet, rknnd) are root's, so that nobody can flood it.

#ifndef K8S_LOG_H_
#define K8S_LOG_H_

#include <string_view>

namespace rknnd::k8s {

// Numbers of syslog.
enum class Severity { kError = 3, kWarning = 4, kInfo = 6 };

// Thread: any.
void Log(Severity severity, std::string_view text);

}  // namespace rknnd::k8s

#endif  // K8S_LOG_H_
