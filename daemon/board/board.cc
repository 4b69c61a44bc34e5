// See the header.

#include "daemon/board/board.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/board/npu_figures.h"
#include "daemon/board/self_test.h"
#include "proto/wire/frame.h"

namespace rknnd::board {
namespace {

using transport::BoardClock;
using transport::Severity;

uint64_t LimitOf(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) {
    return 0;
  }
  return limit.rlim_cur;
}

}  // namespace

// Used by one thread at a time: the pager, and when that has ended the loop.
struct BoardImpl::Shared {
  Shared(const std::string& root, std::string record)
      : files(root), clocks(&files, std::move(record)) {}
  const Files files;
  Clocks clocks;
};

class BoardImpl::Pin final : public transport::ClockPin {
 public:
  Pin(std::shared_ptr<BoardImpl*> board) : board_(std::move(board)) {}
  ~Pin() override {
    // Without a board they have been put back.
    BoardImpl* const board = *board_;
    if (board == nullptr) return;
    board->options_.pager->Post(
        [shared = board->shared_, self = board_, loop = board->options_.loop] {
          loop->Post([self, complaints = shared->clocks.Unpin()] {
            if (*self != nullptr) (*self)->Log(complaints);
          });
        });
  }

 private:
  const std::shared_ptr<BoardImpl*> board_;
};

BoardImpl::BoardImpl(const BoardOptions& options)
    : options_(options),
      shared_(std::make_shared<Shared>(options.root, options.record)),
      self_(std::make_shared<BoardImpl*>(this)) {
  options_.pager->Post([shared = shared_, self = self_, loop = options_.loop] {
    loop->Post([self, complaints = shared->clocks.Recover()] {
      if (*self != nullptr) (*self)->Log(complaints);
    });
  });
}

BoardImpl::~BoardImpl() {
  *self_ = nullptr;
  self_test_.reset();
  for (const std::string& complaint : shared_->clocks.UnpinAll()) {
    options_.log->Write(Severity::kWarning, complaint);
  }
}

void BoardImpl::Log(const std::vector<std::string>& complaints) {
  for (const std::string& complaint : complaints) {
    options_.log->Write(Severity::kWarning, complaint);
  }
}

// ---- doctor -----------------------------------------------------------------

void BoardImpl::Diagnose(FindingsCallback done) {
  asking_.push_back(std::move(done));
  if (asking_.size() > 1) return;
  options_.service->FindForeignUsers([self = self_] {
    if (*self != nullptr) (*self)->LookAround();
  });
}

DaemonFacts BoardImpl::Here() const {
  DaemonFacts here;
  here.version = options_.version;
  here.protocol = wire::kProtocolCurrent;
  here.device = options_.service->device_info();
  here.heaps = options_.heaps;
  here.foreign_users = options_.service->Status().foreign_users;
  here.slow_models = options_.service->SlowModels();
  here.open_files = LimitOf(RLIMIT_NOFILE);
  here.locked_bytes = LimitOf(RLIMIT_MEMLOCK);
  here.root = geteuid() == 0;
  return here;
}

void BoardImpl::LookAround() {
  options_.pager->Post(
      [shared = shared_, here = Here(), self = self_, loop = options_.loop] {
        Findings findings;
        const NpuDriver npu = FindDriver(shared->files);
        CheckVersions(here, &findings);
        CheckDriver(shared->files, here, npu, &findings);
        CheckSram(shared->files, here, npu, &findings);
        CheckClocks(shared->clocks.Read(), &findings);
        CheckNpu(shared->files, &findings);
        CheckInterrupts(shared->files, &findings);
        CheckMemory(shared->files, here, npu, &findings);
        CheckLimits(shared->files, here, &findings);
        CheckModels(here, &findings);
        CheckNeighbours(shared->files, here, &findings);
        loop->Post([self, findings = std::move(findings)]() mutable {
          if (*self != nullptr) (*self)->OnChecked(std::move(findings));
        });
      });
}

void BoardImpl::OnChecked(Findings findings) {
  checked_ = std::move(findings);
  self_test_ = std::make_shared<SelfTest>(
      transport::OwnSession::Parts{options_.service, options_.waker,
                                   options_.loop},
      options_.timers, [self = self_](Findings tested) {
        if (*self != nullptr) (*self)->OnTested(std::move(tested));
      });
  self_test_->Start();
}

void BoardImpl::OnTested(Findings findings) {
  checked_.insert(checked_.end(), std::make_move_iterator(findings.begin()),
                  std::make_move_iterator(findings.end()));
  // It is in the middle of its last call.
  options_.loop->Post([ended = std::move(self_test_)] {});
  const Findings all = std::exchange(checked_, {});
  for (const FindingsCallback& done : std::exchange(asking_, {})) done(all);
}

// ---- clocks -----------------------------------------------------------------

void BoardImpl::ReadClocks(ClocksCallback done) {
  options_.pager->Post([shared = shared_, self = self_, done = std::move(done),
                        loop = options_.loop] {
    transport::BoardState state = {shared->clocks.Read(),
                                   Describe(ReadNpuFigures(shared->files))};
    loop->Post([self, done, state = std::move(state)] {
      if (*self != nullptr) done(state);
    });
  });
}

void BoardImpl::PinClocks(PinCallback done) {
  options_.pager->Post([shared = shared_, self = self_, done = std::move(done),
                        loop = options_.loop] {
    const auto pinned = shared->clocks.Pin();
    loop->Post([self, done, pinned, clocks = shared->clocks.Read()] {
      if (*self == nullptr) return;
      if (!pinned.ok()) return done(pinned.status(), clocks);
      (*self)->Log(*pinned);
      done(std::make_shared<Pin>(self), clocks);
    });
  });
}

// ---- log --------------------------------------------------------------------

std::unique_ptr<transport::LogFollower> BoardImpl::FollowLog(
    uint32_t level, uint32_t recent, LineCallback line) {
  return options_.log->Follow(options_.loop, level, recent, std::move(line));
}

uint32_t BoardImpl::SetLogLevel(uint32_t level) {
  return options_.log->SetLevel(level);
}

}  // namespace rknnd::board
