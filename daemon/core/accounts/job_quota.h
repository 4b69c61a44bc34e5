// The jobs that all sessions of one tenant have in flight, and may have at most
// ('queue' of its limits). Made by the service with a tenant; each session's
// gate is a member of one.

#ifndef DAEMON_CORE_ACCOUNTS_JOB_QUOTA_H_
#define DAEMON_CORE_ACCOUNTS_JOB_QUOTA_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "base/posix/mutex.h"

namespace rknnd::core {

// Thread: any. Its lock is a leaf, and taken for refusals and by those who join
// or leave, not for jobs.
class JobQuota : public std::enable_shared_from_this<JobQuota> {
 public:
  // One session's part of it. Takes and gives back without allocating.
  class Member {
   public:
    Member(std::shared_ptr<JobQuota> quota, std::string holder);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    // One more job; false when there are as many as there may be. `replaces`:
    // the caller is about to end another one for it, so that it may be the one
    // beyond the limit until then.
    [[nodiscard]] bool Take(bool replaces);
    // Of one that was taken.
    void GiveBack();
    // Why Take said no: the limit, and who has how many.
    [[nodiscard]] absl::Status Refusal() const;

   private:
    friend class JobQuota;
    const std::shared_ptr<JobQuota> quota_;
    const std::string holder_;
    std::atomic<uint32_t> jobs_{0};
  };

  // `tenant`: its name in messages.
  static std::shared_ptr<JobQuota> Create(std::string tenant);

  std::unique_ptr<Member> Join(std::string holder);
  // From now on; 0: none. `name`: the key to raise. What is in flight stays.
  void SetLimit(uint32_t limit, std::string name);

  [[nodiscard]] uint32_t jobs() const { return jobs_.load(); }

 private:
  explicit JobQuota(std::string tenant) : tenant_(std::move(tenant)) {}

  const std::string tenant_;
  std::atomic<uint32_t> jobs_{0};
  std::atomic<uint32_t> limit_{0};

  mutable base::Mutex mutex_;
  std::string limit_name_ RKNND_GUARDED_BY(mutex_);
  std::set<const Member*> members_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_ACCOUNTS_JOB_QUOTA_H_
