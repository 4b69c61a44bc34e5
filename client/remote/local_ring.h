// The daemon's end of a submission ring (proto/wire/ring.h), made by a bridge
// for the client library of the same process: entries are taken out, answers
// stored. The other end is trusted with its own ring; an entry is copied before
// it is looked at all the same.

#ifndef CLIENT_REMOTE_LOCAL_RING_H_
#define CLIENT_REMOTE_LOCAL_RING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "proto/wire/ring.h"

namespace rknnd::client {

// What a completion says.
struct RunAnswer {
  base::Code code = base::Code::kOk;
  std::string text;  // empty on success
  uint64_t queue_ns = 0;
  uint64_t run_ns = 0;
  uint64_t total_ns = 0;
  uint32_t core = 0;
  uint32_t drops = 0;
  uint32_t count = 0;
};

// Thread: bridge.
class LocalRing {
 public:
  static base::Expected<std::unique_ptr<LocalRing>> Create();

  [[nodiscard]] int memory_fd() const { return memory_.get(); }
  [[nodiscard]] int doorbell_fd() const { return doorbell_.get(); }

  // The doorbell was seen; before the entries are taken.
  void ClearDoorbell() const;
  // The next entry that was written, which is not in the ring any more.
  std::optional<wire::Submission> Take();
  // Stores the answer and wakes who waits for it.
  void Complete(const wire::Submission& job, const RunAnswer& answer);

 private:
  LocalRing(base::UniqueFd memory, base::UniqueFd doorbell,
            base::Mapping mapping);

  const base::UniqueFd memory_, doorbell_;
  const base::Mapping mapping_;
  wire::Ring* const ring_;
  uint32_t head_ = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_REMOTE_LOCAL_RING_H_
