// Does what the schedule says to the daemon, the clients and what they stand
// on, and takes it back when its time is over.

#ifndef TESTS_TORTURE_TROUBLES_H_
#define TESTS_TORTURE_TROUBLES_H_

#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/clock.h"
#include "tests/torture/clients.h"
#include "tests/torture/findings.h"
#include "tests/torture/injection.h"
#include "tests/torture/judge.h"
#include "tests/torture/schedule.h"
#include "tests/torture/service_manager.h"
#include "tests/torture/small_disk.h"

namespace rknnd::torture {

// Thread: one. All that it is given is borrowed.
class Troubles {
 public:
  struct Scene {
    ServiceManager* service;
    Clients* clients;
    InjectionPage* daemon_page;
    InjectionPage* clients_page;
    SmallDisk* disk;
    Judge* judge;
    Findings* findings;
    std::string log_folder;  // for what hostile clients say
  };
  explicit Troubles(const Scene& scene) : scene_(scene) {}
  ~Troubles() { EndAll(); }
  Troubles(const Troubles&) = delete;
  Troubles& operator=(const Troubles&) = delete;

  void Begin(const Event& event);
  // Takes back what is over.
  void EndDue();
  void EndAll();
  // When EndDue has something to do; 0: nothing is under way.
  [[nodiscard]] base::Nanoseconds next_end() const {
    return ends_.empty() ? 0 : ends_.begin()->first;
  }

  [[nodiscard]] uint64_t done(EventKind kind) const {
    return done_.at(static_cast<size_t>(kind));
  }

 private:
  // One function for each kind that is more than a line; false: it could not be
  // done just now.
  bool RestartDaemon();
  bool StopClient(const Event& event);
  bool StopDaemon(const Event& event);
  bool SetFault(const std::string& kind, base::Nanoseconds length);
  bool FailCalls(const Event& event);
  bool TakeDescriptors(const Event& event);
  bool JumpClock(const Event& event);
  bool SendHostile(const Event& event);
  bool Do(const Event& event);

  void Later(base::Nanoseconds after, std::function<void()> end);
  [[nodiscard]] size_t ClientOf(const Event& event) const {
    return event.dice % scene_.clients->size();
  }

  const Scene scene_;
  const base::MonotonicClock clock_;
  std::multimap<base::Nanoseconds, std::function<void()>> ends_;
  std::vector<base::ChildProcess> helpers_;  // hostile clients, rknnctl
  std::array<uint64_t, kEventKinds> done_ = {};
  // Of the daemon that has few descriptors just now.
  struct FewDescriptors {
    int life = 0;
    int troubles = 0;  // that have not ended
    rlimit usual{};
  };
  FewDescriptors few_;
  int stopped_life_ = 0;  // of the daemon, while it is stopped
};

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_TROUBLES_H_
