// What the inferences of each served name and version cost, as ModelStatistics
// tells it. Since the start of the daemon.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_STATISTICS_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_STATISTICS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "daemon/transport/grpc/inference/inference_run.h"

namespace rknnd::transport {

// Thread: any.
class Statistics {
 public:
  struct Sum {
    uint64_t count = 0;
    base::Nanoseconds time = 0;
    void Add(base::Nanoseconds one) {
      ++count;
      time += one;
    }
  };
  struct Entry {
    std::string name, version;
    uint64_t last_ms = 0;  // since 1970, of the last inference that began
    Sum success, fail, queue, input, run, output;
  };

  // `parts` make at most `total`.
  void Count(const std::string& name, const std::string& version,
             const RunParts& parts, base::Nanoseconds total, bool success);
  // Empty: of all names, of all versions.
  [[nodiscard]] std::vector<Entry> List(const std::string& name,
                                        const std::string& version) const;

 private:
  static constexpr size_t kMostEntries = 4096;

  mutable base::Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Entry> entries_
      RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_STATISTICS_H_
