// The machine this daemon runs on, for operators: what the transports ask of a
// Board, put together. Files are read on the pager's thread, never on the loop.

#ifndef DAEMON_BOARD_BOARD_H_
#define DAEMON_BOARD_BOARD_H_

#include <memory>
#include <string>
#include <vector>

#include "base/posix/event_loop.h"
#include "daemon/board/checks.h"
#include "daemon/board/clocks.h"
#include "daemon/board/files.h"
#include "daemon/board/log_tail.h"
#include "daemon/core/service.h"
#include "daemon/transport/session/board.h"
#include "daemon/transport/session/own_session.h"

namespace rknnd::board {

struct BoardOptions {
  std::string root;    // "" or where a test keeps its /sys, /proc and /dev
  std::string record;  // of pinned clocks, over a crash; empty: none
  std::string version;
  std::string heaps;  // as Heaps::Describe
  // All below outlive it.
  LogTail* log = nullptr;
  core::Service* service = nullptr;
  core::WorkerWaker* waker = nullptr;
  base::Executor* loop = nullptr;
  base::Executor* pager = nullptr;
  core::TimerQueue* timers = nullptr;
};

// Thread: loop. Destroyed when the pager has ended: pinned clocks are put back
// then, whoever still holds a pin.
class BoardImpl final : public transport::Board {
 public:
  // Puts back, soon, what a daemon that crashed had pinned.
  explicit BoardImpl(const BoardOptions& options);
  ~BoardImpl() override;

  void Diagnose(FindingsCallback done) override;
  void ReadClocks(ClocksCallback done) override;
  void PinClocks(PinCallback done) override;
  std::unique_ptr<transport::LogFollower> FollowLog(uint32_t level,
                                                    uint32_t recent,
                                                    LineCallback line) override;
  uint32_t SetLogLevel(uint32_t level) override;

 private:
  class Pin;
  // What the pager's tasks use; they may come after this has gone, and then
  // do nothing that would not have been undone.
  struct Shared;

  void LookAround();
  void OnChecked(Findings findings);
  void OnTested(Findings findings);
  [[nodiscard]] DaemonFacts Here() const;
  void Log(const std::vector<std::string>& complaints);

  const BoardOptions options_;
  const std::shared_ptr<Shared> shared_;
  // One look at a time: who asks meanwhile gets the same answer.
  std::vector<FindingsCallback> asking_;
  Findings checked_;
  std::shared_ptr<class SelfTest> self_test_;
  // Posts that come after the end find nothing.
  const std::shared_ptr<BoardImpl*> self_;
};

}  // namespace rknnd::board

#endif  // DAEMON_BOARD_BOARD_H_
