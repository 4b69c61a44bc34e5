// Buffers of one session, by the numbers its client chose; they are valid in
// this session only. Called by the session with numbers, sizes and fds that
// nobody has checked yet.

#ifndef DAEMON_CORE_MEMORY_BUFFER_TABLE_H_
#define DAEMON_CORE_MEMORY_BUFFER_TABLE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/memory/buffer_keys.h"
#include "daemon/core/memory/paging.h"
#include "daemon/core/memory/sram.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"
#include "driver/memory/import.h"

namespace rknnd::core {

// Memory behind one fd. Lives as long as its number, a binding or a job needs
// it; the last of them may be a worker. Immutable. Thread: any.
class Buffer {
 public:
  struct Parts {
    Paging paging;
    std::shared_ptr<std::atomic<uint32_t>> live;
    Charge charge;
    PagedMemory memory;
    bool imported = false;
    bool read_only = false;  // the fd allows no writing: inputs only
    driver::MemoryIdentity identity;
    uint64_t origin = 0;  // of its first byte, in what has that identity
    SramLease sram;       // all of it, or nothing
  };
  explicit Buffer(Parts parts);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] driver::Memory* memory() const {
    return parts_.memory.memory.get();
  }
  [[nodiscard]] uint64_t size() const { return parts_.memory.size; }
  [[nodiscard]] const std::string& heap() const { return parts_.memory.heap; }
  [[nodiscard]] bool imported() const { return parts_.imported; }
  [[nodiscard]] bool read_only() const { return parts_.read_only; }
  [[nodiscard]] const driver::MemoryIdentity& identity() const {
    return parts_.identity;
  }
  [[nodiscard]] uint64_t origin() const { return parts_.origin; }

 private:
  Parts parts_;
};

// What a number is on its way through:
//
//              Allocate, Import
//                     |
//        small +------+------+ large
//              |             v
//              |          pending ---Release, failure---> free
//              v             | made, on the pager, in the session's turn
//            there <---------+
//              |
//              +---Release---> free
//
// Pending: taken, charged, and good for nothing yet but Release.
//
// A number may also be another session's buffer, adopted by its key: bound like
// one's own, neither copied nor charged again, and gone when its owner gives it
// up.
//
// Thread: loop. Callbacks are called at once or later; not after Clear().
// Import() takes the fd even when it fails.
class BufferTable {
 public:
  using Callback = std::function<void(absl::StatusOr<BufferInfo>)>;
  using Tell = std::function<void(const std::string&)>;
  // `turns`: the session's; it and `limits` outlive the table. `may_add`: says
  // why the session's user may have no further buffer.
  BufferTable(const Paging& paging, PagerTurns* turns,
              std::shared_ptr<Account> account, const SessionLimits* limits,
              std::function<absl::Status()> may_add = nullptr);
  ~BufferTable() { Clear(); }
  // Hears, once for each kind, that another heap served than was asked for.
  void set_tell(Tell tell) { tell_ = std::move(tell); }
  // For buffers that are to have SRAM. Without, none of them gets any.
  void set_sram(std::shared_ptr<Sram> sram) { sram_ = std::move(sram); }
  // For KeyOf and Adopt, which nobody calls without.
  void set_keys(std::shared_ptr<BufferKeys> keys) { keys_ = std::move(keys); }
  BufferTable(const BufferTable&) = delete;
  BufferTable& operator=(const BufferTable&) = delete;

  void Allocate(uint32_t number, uint64_t size, uint32_t flags, Callback done);
  void Import(uint32_t number, base::UniqueFd fd, uint64_t expected_size,
              Callback done);
  // Memory that the session's user may have: a range of what `fd`, a device or
  // the like, leads to.
  void ImportPhysical(uint32_t number, base::UniqueFd fd,
                      const PhysicalRange& range,
                      const driver::MemoryIdentity& identity, Callback done);
  // `gone`: the number has been taken away, by whomever, and nothing else here
  // is that memory. Not called after Clear().
  using Gone = std::function<void(const Buffer&)>;
  absl::StatusOr<BufferInfo> Adopt(uint32_t number, const BufferKey& key,
                                   Gone gone);
  absl::StatusOr<KeyedBuffer> KeyOf(uint32_t number);
  // Of a pending one: whoever waits for it is answered with CANCELLED.
  absl::Status Release(uint32_t number);
  void Clear();

  [[nodiscard]] absl::StatusOr<std::shared_ptr<Buffer>> Find(
      uint32_t number) const;
  // Its own.
  [[nodiscard]] const std::map<uint32_t, std::shared_ptr<Buffer>>& all() const {
    return buffers_;
  }
  // Those that exist, with or without a number, and those to come.
  [[nodiscard]] uint32_t live() const {
    return live_->load(std::memory_order_relaxed) +
           static_cast<uint32_t>(pending_.size() + adopted_.size());
  }

 private:
  // What becomes a buffer.
  struct Made {
    PagedMemory memory;
    base::UniqueFd for_client;  // invalid for imports
    bool imported = false, read_only = false;
    driver::MemoryIdentity identity;
    uint64_t origin = 0;  // where it starts in the fd
    bool try_sram = false;
  };
  using Work = std::function<absl::StatusOr<Made>()>;
  // Its `work` and `made` belong to the pager until that posts it back.
  struct Making {
    std::atomic<bool> cancelled{false};
    uint64_t turn = 0;
    Charge charge;
    Callback done;
    Work work;
    absl::StatusOr<Made> made = absl::CancelledError();
  };

  struct Adopted {
    std::shared_ptr<Buffer> buffer;
    uint64_t watch = 0;
    Gone gone;
  };
  // False: the number is none that was adopted.
  bool TakeAdopted(uint32_t number);

  [[nodiscard]] absl::Status CheckNew(uint32_t number) const;
  [[nodiscard]] absl::Status CheckSize(uint32_t number, uint64_t size) const;
  // OK with what makes an allocation or import, and `*charge` taken.
  absl::StatusOr<Work> PrepareAllocation(uint32_t number, uint64_t size,
                                         uint32_t flags, Charge* charge) const;
  absl::StatusOr<Work> PrepareImport(uint32_t number, base::UniqueFd fd,
                                     uint64_t expected_size,
                                     Charge* charge) const;
  // Attaches what has an fd already.
  [[nodiscard]] Work AttachWork(std::shared_ptr<Made> made) const;
  // Works here or on the pager, by the size charged.
  void Start(uint32_t number, Work work, Charge charge, Callback done);
  void Finish(uint32_t number, const std::shared_ptr<Making>& making);
  // Its number is free from now on.
  void Cancel(Making& making);
  absl::StatusOr<BufferInfo> Add(uint32_t number, Charge charge, Made made);
  void TellOnce(uint32_t number, uint32_t kind, const std::string& instead);
  // The pages of a buffer that asks for SRAM; its heap's name says so then.
  SramLease TakeSram(uint32_t number, PagedMemory* memory);

  const Paging paging_;
  PagerTurns* const turns_;
  const std::shared_ptr<Account> account_;
  const SessionLimits& limits_;  // as they are at the time
  const std::function<absl::Status()> may_add_;
  Tell tell_;
  std::shared_ptr<Sram> sram_;
  std::shared_ptr<BufferKeys> keys_;
  uint32_t told_ = 0;  // a bit for each kind
  // Buffers that exist, with or without a number: each is a mapping and an fd
  // of this process.
  const std::shared_ptr<std::atomic<uint32_t>> live_;
  std::map<uint32_t, std::shared_ptr<Buffer>> buffers_;
  std::map<uint32_t, std::shared_ptr<Making>> pending_;
  std::map<uint32_t, Adopted> adopted_;
  // For what the pager posts back: whether the table is still there.
  const std::shared_ptr<BufferTable*> self_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MEMORY_BUFFER_TABLE_H_
