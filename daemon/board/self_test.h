// Runs a tiny known model on each core, one after the other, and compares the
// answers: what shows a core that a driver lost, or that hangs. By the same way
// as any client's jobs, at the lowest priority, so that nobody is disturbed;
// what does not get its turn within a few seconds is a finding by itself.

#ifndef DAEMON_BOARD_SELF_TEST_H_
#define DAEMON_BOARD_SELF_TEST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "daemon/board/checks.h"
#include "daemon/core/service.h"
#include "daemon/transport/session/own_session.h"

namespace rknnd::board {

// Thread: loop.
class SelfTest final : public std::enable_shared_from_this<SelfTest> {
 public:
  // So long a core has to begin the test's run.
  static constexpr base::Nanoseconds kTurn = 3 * base::kSecond;
  // And so long for all of it, with a core that never answers.
  static constexpr base::Nanoseconds kPatience = 15 * base::kSecond;

  // All outlive it. `done` is called once, later.
  SelfTest(const transport::OwnSession::Parts& parts, core::TimerQueue* timers,
           std::function<void(Findings)> done);
  ~SelfTest();

  void Start();

 private:
  // Begins with the next core, or ends.
  void NextCore();
  void RunOn(uint32_t core);
  void OnLoaded(uint32_t core, const core::ModelId& model,
                const absl::Status& status);
  void OnPrepared(uint32_t core, const absl::Status& status);
  void OnAnswer(uint32_t core, const core::JobCompletion& completion);
  void OnFailure(uint32_t core, const absl::Status& status, bool begun);
  // No core can be tested, and why.
  void Skip(const absl::Status& status);
  void Note(uint32_t core, transport::Finding::Level level, std::string text,
            std::string remedy);
  void End();

  const transport::OwnSession::Parts parts_;
  core::TimerQueue* const timers_;
  std::function<void(Findings)> done_;
  uint64_t timer_ = 0;
  std::shared_ptr<transport::OwnSession> session_;
  uint32_t core_ = 0;         // the next one
  uint64_t jobs_before_ = 0;  // of the core that is tested
  Findings findings_;
};

}  // namespace rknnd::board

#endif  // DAEMON_BOARD_SELF_TEST_H_
