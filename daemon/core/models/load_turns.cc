// The order of loads. Called by the registry on the loop; payers are tenants,
// whom the kernel or an operator named.

#include "daemon/core/models/load_turns.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "daemon/core/accounts/virtual_time.h"

namespace rknnd::core {
namespace {

// Hashing, parsing and packing: a hundred megabytes a second, and what comes
// with any model.
constexpr base::Nanoseconds kEachLoad = 5 * base::kMillisecond;
constexpr base::Nanoseconds kEachByte = 10;
constexpr base::Nanoseconds kLongest = 60 * base::kSecond;

uint64_t VirtualTime(base::Nanoseconds time, uint32_t weight) {
  constexpr uint64_t kScale = 100;  // the usual weight
  return static_cast<uint64_t>(std::max<base::Nanoseconds>(time, 0)) * kScale /
         std::max(1U, weight);
}

}  // namespace

base::Nanoseconds ExpectedLoad(uint64_t bytes) {
  const auto most = static_cast<uint64_t>(kLongest / kEachByte);
  return kEachLoad +
         static_cast<base::Nanoseconds>(std::min(bytes, most)) * kEachByte;
}

class LoadTurns::Work {
 public:
  base::Nanoseconds expected = 0;
  std::function<void()> run;
  std::function<void(End)> ended;
  bool begun = false;  // or dropped
  std::set<std::string> payers;
  std::vector<std::weak_ptr<const void>> askers;
  bool always_wanted = false;
  std::string paid_by;  // once it has begun

  [[nodiscard]] bool IsWanted() const {
    return always_wanted ||
           std::any_of(askers.begin(), askers.end(),
                       [](const auto& asker) { return !asker.expired(); });
  }
};

std::shared_ptr<LoadTurns> LoadTurns::Create(base::Executor* loop,
                                             base::Executor* loader,
                                             const base::Clock* clock) {
  return std::shared_ptr<LoadTurns>(new LoadTurns(loop, loader, clock));
}

std::shared_ptr<LoadTurns::Work> LoadTurns::Add(
    const LoadPayer& payer, base::Nanoseconds expected,
    std::function<void()> run, std::function<void(End)> ended) {
  auto work = std::make_shared<Work>();
  work->expected = expected;
  work->run = std::move(run);
  work->ended = std::move(ended);
  if (stopped_) return work;
  ++waiting_;
  Queue(work, payer);
  BeginNext();
  return work;
}

void LoadTurns::Join(const std::shared_ptr<Work>& work,
                     const LoadPayer& payer) {
  if (stopped_ || work == nullptr || work->begun) return;
  Queue(work, payer);
}

void LoadTurns::Queue(const std::shared_ptr<Work>& work,
                      const LoadPayer& payer) {
  if (payer.asker.has_value()) {
    work->askers.push_back(*payer.asker);
  } else {
    work->always_wanted = true;
  }
  if (!work->payers.insert(payer.name).second) return;
  const auto [found, is_new] = accounts_.try_emplace(payer.name);
  Account& account = found->second;
  account.weight = payer.weight;
  if (account.loads.empty()) {
    if (is_new || IsEarlier(account.time, level_)) account.time = level_;
    account.order = next_order_++;
  }
  account.loads.push_back(work);
}

LoadTurns::Accounts::iterator LoadTurns::Next() {
  auto next = accounts_.end();
  uint64_t least = 0;
  for (auto one = accounts_.begin(); one != accounts_.end();) {
    Account& account = one->second;
    // Those that had another payer's turn, and those that nobody waits for.
    while (!account.loads.empty()) {
      const std::shared_ptr<Work>& oldest = account.loads.front();
      if (!oldest->begun) {
        if (oldest->IsWanted()) break;
        Drop(oldest);
      }
      account.loads.pop_front();
    }
    if (account.loads.empty()) {
      // Nothing is forgotten that would count.
      const bool counts = IsEarlier(level_, account.time);
      one = counts ? std::next(one) : accounts_.erase(one);
      continue;
    }
    const uint64_t with =
        account.time +
        VirtualTime(account.loads.front()->expected, account.weight);
    if (next == accounts_.end() || IsEarlier(with, least) ||
        (with == least && account.order < next->second.order)) {
      next = one;
      least = with;
    }
    ++one;
  }
  return next;
}

void LoadTurns::Drop(const std::shared_ptr<Work>& work) {
  work->begun = true;
  --waiting_;
  work->run = nullptr;
  loop_->Post([self = shared_from_this(), work] {
    if (self->stopped_) return;
    std::exchange(work->ended, nullptr)(End::kUnwanted);
  });
}

void LoadTurns::BeginNext() {
  if (busy_ || stopped_) return;
  const auto next = Next();
  if (next == accounts_.end()) return;
  Account& account = next->second;
  const std::shared_ptr<Work> work = std::move(account.loads.front());
  account.loads.pop_front();
  if (IsEarlier(level_, account.time)) level_ = account.time;
  work->begun = true;
  work->paid_by = next->first;
  --waiting_;
  busy_ = true;
  loader_->Post([self = shared_from_this(), work] {
    const base::Nanoseconds begun = self->clock_->Now();
    work->run();
    const base::Nanoseconds took = self->clock_->Now() - begun;
    self->loop_->Post([self, work, took] { self->OnEnded(work, took); });
  });
}

void LoadTurns::OnEnded(const std::shared_ptr<Work>& work,
                        base::Nanoseconds took) {
  busy_ = false;
  if (stopped_) return;
  if (const auto paid = accounts_.find(work->paid_by);
      paid != accounts_.end()) {
    paid->second.time += VirtualTime(took, paid->second.weight);
    // Who was served stands behind its equals.
    paid->second.order = next_order_++;
  }
  work->run = nullptr;
  // Before the next one is chosen: whoever hears of it may add more.
  std::exchange(work->ended, nullptr)(End::kRan);
  BeginNext();
}

void LoadTurns::Stop() {
  stopped_ = true;
  accounts_.clear();
  waiting_ = 0;
}

}  // namespace rknnd::core
