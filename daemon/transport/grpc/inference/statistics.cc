#include "daemon/transport/grpc/inference/statistics.h"

#include <chrono>

namespace rknnd::transport {

void Statistics::Count(const std::string& name, const std::string& version,
                       const RunParts& parts, base::Nanoseconds total,
                       bool success) {
  const uint64_t now = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
  const base::MutexLock lock(mutex_);
  auto key = std::make_pair(name, version);
  // Only models that were found are counted; where somebody loads ever new
  // ones, others make room.
  if (entries_.size() >= kMostEntries && !entries_.contains(key)) {
    entries_.erase(entries_.begin());
  }
  Entry& entry = entries_[std::move(key)];
  entry.name = name;
  entry.version = version;
  entry.last_ms = now;
  if (!success) return entry.fail.Add(total);
  entry.success.Add(total);
  entry.queue.Add(parts.queue);
  entry.input.Add(parts.input);
  entry.run.Add(parts.run);
  entry.output.Add(parts.output);
}

std::vector<Statistics::Entry> Statistics::List(
    const std::string& name, const std::string& version) const {
  const base::MutexLock lock(mutex_);
  std::vector<Entry> list;
  for (const auto& [key, entry] : entries_) {
    if (!name.empty() && key.first != name) continue;
    if (!version.empty() && key.second != version) continue;
    list.push_back(entry);
  }
  return list;
}

}  // namespace rknnd::transport
