// A service under measurement: the daemon as systemd runs it, on the software
// NPU with an RK3588's times, and checking clients.

#ifndef BENCH_SERVICE_STAGE_H_
#define BENCH_SERVICE_STAGE_H_

#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "tests/torture/clients.h"
#include "tests/torture/observer.h"
#include "tests/torture/service_manager.h"

namespace rknnd::bench {

// Thread: one. Throws std::runtime_error.
class Stage {
 public:
  struct Options {
    std::string config;  // the text of rknnd.toml
    bool paced = false;  // jobs take the SoC's time
    bool cache = false;  // models are kept on disk
    base::Nanoseconds watchdog = 0;
  };
  explicit Stage(const Options& options);

  [[nodiscard]] const std::string& folder() const { return folder_.path(); }
  torture::ServiceManager& service() { return service_; }
  torture::Clients& clients() { return clients_; }

  // So many, that work in different ways on the networks in turn.
  void AddClients(int count, const std::vector<torture::NetworkFile>& networks,
                  base::Nanoseconds period);
  void StartClients();
  // Until all of them have had so many more answers than now.
  void AwaitAnswers(uint64_t more);
  // Until all have ended well, or so many of them have not.
  int EndClients();
  // What they had to tell, in words; empty where all was well.
  std::vector<std::string> TakeNotes();
  // Until clients hold nothing of the daemon's.
  void AwaitNothingHeld();

 private:
  base::TemporaryFolder folder_;
  torture::ServiceManager service_;
  torture::Clients clients_;
};

}  // namespace rknnd::bench

#endif  // BENCH_SERVICE_STAGE_H_
