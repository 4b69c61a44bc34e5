#include "daemon/transport/grpc/request_turns.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"

namespace rknnd::transport {
namespace {

// What a request holds beside its message and its answer.
constexpr uint64_t kRequestBytes = 4096;
// Turns that are given before those who got them are told.
constexpr size_t kTurns = 16;
// Who is refused comes again after so long; a crowd that has gone away keeps
// nobody from coming longer than the second.
constexpr base::Nanoseconds kSoonest = 50 * base::kMillisecond;
constexpr base::Nanoseconds kLatest = 30 * base::kSecond;
// Answers between two who come again: those who were answered ask again, too,
// and turning somebody away costs time in which others are served.
constexpr base::Nanoseconds kAnswersBetween = 4;
// Until it is known how long an answer takes.
constexpr base::Nanoseconds kPerAnswer = 10 * base::kMillisecond;
// What may be begun at once is answered within so many times the time that its
// answers need, and within these bounds, or does not count any more.
constexpr base::Nanoseconds kPatience = 2;
constexpr base::Nanoseconds kShortestWindow = 50 * base::kMillisecond;
constexpr base::Nanoseconds kLongestWindow = base::kSecond;
// While calls wait: for those that do not wait for the end of another.
constexpr base::Nanoseconds kLookForTurns = 20 * base::kMillisecond;

}  // namespace

RequestTurns::RequestTurns(RequestBudget* budget, uint32_t waiting,
                           base::EventLoop* loop, const base::Clock* clock)
    : budget_(budget),
      loop_(loop),
      clock_(clock),
      queue_(waiting, clock),
      rate_since_(clock->Now()),
      per_answer_(kPerAnswer) {
  budget_->set_on_room([this] { OnRoom(); });
}

RequestTurns::~RequestTurns() {
  budget_->set_on_room(nullptr);
  if (look_again_ != 0) loop_->CancelTimer(look_again_);
}

RequestBudget::Room RequestTurns::Try(const std::string& account,
                                      uint64_t message,
                                      RequestBudget::Hold* hold) {
  constexpr auto kAtOnce = static_cast<base::Nanoseconds>(RequestPace::kAtOnce);
  return budget_->TryTake(
      account, kRequestBytes,
      message != 0 ? message : budget_->ExpectedBytes(account), hold,
      {clock_->Now(), std::clamp(kPatience * kAtOnce * per_answer_,
                                 kShortestWindow, kLongestWindow)});
}

void RequestTurns::Ask(const Asker& asker, uint64_t message, Place* place,
                       Told told) {
  RequestBudget::Hold hold;
  std::vector<News> news;
  {
    base::MutexLock lock(mutex_);
    // Nobody passes those who wait; where these wait for room of their own
    // account, the loop sees it.
    const RequestBudget::Room room = queue_.size() == 0
                                         ? Try(asker.account, message, &hold)
                                         : RequestBudget::Room::kNone;
    if (room == RequestBudget::Room::kYes) {
      news.emplace_back(std::move(told), std::move(hold));
    } else if (budget_->IsTooMuch(kRequestBytes, message)) {
      news.emplace_back(
          std::move(told),
          absl::ResourceExhaustedError(absl::StrCat(
              "a request of ", message,
              " bytes is more than a peer may have (grpc.memory)")));
    } else {
      const TurnQueue::Entered entered =
          queue_.Add(asker.account, asker.connection, asker.deadline);
      place->ticket_ = entered.ticket;
      waiting_[entered.ticket] = {asker.account, message, std::move(told)};
      if (entered.displaced.has_value()) {
        news.push_back(TellLater(
            *entered.displaced,
            absl::ResourceExhaustedError(absl::StrCat(
                queue_.size(),
                " requests wait for their turn (grpc.requests), and '",
                queue_.LargestAccount(), "' has most of them"))));
      }
      somebody_waits_ = true;
    }
  }
  OnRoom();
  for (auto& [tell, what] : news) tell(std::move(what));
}

bool RequestTurns::Withdraw(const Place& place) {
  base::MutexLock lock(mutex_);
  if (!queue_.Remove(place.ticket_)) return false;
  waiting_.erase(place.ticket_);
  somebody_waits_ = queue_.size() != 0;
  return true;
}

RequestTurns::News RequestTurns::TellLater(
    TurnQueue::Ticket ticket, absl::StatusOr<RequestBudget::Hold> what) {
  const auto found = waiting_.find(ticket);
  News news{std::move(found->second.told), std::move(what)};
  waiting_.erase(found);
  return news;
}

void RequestTurns::OnRoom() {
  if (!somebody_waits_) return;
  {
    base::MutexLock lock(mutex_);
    if (std::exchange(posted_, true)) return;
  }
  loop_->Post([this] { GiveTurns(); });
}

void RequestTurns::GiveTurns() {
  for (;;) {
    std::vector<News> news;
    {
      base::MutexLock lock(mutex_);
      posted_ = false;
      for (const TurnQueue::Ticket late : queue_.TakeLate(LeastNeeded())) {
        news.push_back(TellLater(
            late, absl::DeadlineExceededError(
                      "the request waited for its turn until it could not be "
                      "answered before its deadline")));
      }
      while (news.size() < kTurns) {
        RequestBudget::Hold hold;
        const auto ticket = queue_.TakeNext(
            [&](TurnQueue::Ticket next) { return HasRoom(next, &hold); });
        if (!ticket.has_value()) break;
        news.push_back(TellLater(*ticket, std::move(hold)));
      }
      somebody_waits_ = queue_.size() != 0;
    }
    if (news.empty()) break;
    for (auto& [tell, what] : news) tell(std::move(what));
  }
  LookAgain();
}

void RequestTurns::LookAgain() {
  if (!somebody_waits_ || look_again_ != 0) return;
  look_again_ = loop_->RunAfter(kLookForTurns, [this] {
    look_again_ = 0;
    GiveTurns();
  });
}

TurnQueue::Answer RequestTurns::HasRoom(TurnQueue::Ticket next,
                                        RequestBudget::Hold* hold) {
  const Waiting& waiting = waiting_.find(next)->second;
  switch (Try(waiting.account, waiting.message, hold)) {
    case RequestBudget::Room::kYes:
      return TurnQueue::Answer::kGoes;
    case RequestBudget::Room::kNotForPeer:
      return TurnQueue::Answer::kAccountMustWait;
    case RequestBudget::Room::kNone:
      break;
  }
  return TurnQueue::Answer::kAllMustWait;
}

base::Nanoseconds RequestTurns::LeastNeeded() const {
  // Where nothing runs, nothing tells how long it would take now.
  if (answers_ < took_.size() || budget_->usage().requests == 0) return 0;
  return *std::min_element(took_.begin(), took_.end());
}

void RequestTurns::NoteAnswer(base::Nanoseconds took) {
  base::MutexLock lock(mutex_);
  took_[answers_++ % took_.size()] = took;
  ++rate_answers_;
  const base::Nanoseconds since = clock_->Now() - rate_since_;
  if (since < base::kSecond) return;
  // After a pause it would be the pause.
  if (since < kLatest) {
    per_answer_ = since / static_cast<base::Nanoseconds>(rate_answers_);
  }
  rate_answers_ = 0;
  rate_since_ += since;
}

base::Nanoseconds RequestTurns::ComeAgain() {
  base::MutexLock lock(mutex_);
  const base::Nanoseconds now = clock_->Now();
  // Half of those who wait: the queue is not to run empty meanwhile.
  const base::Nanoseconds queue =
      per_answer_ * static_cast<base::Nanoseconds>(queue_.size() / 2);
  next_return_ = std::max({next_return_ + kAnswersBetween * per_answer_,
                           now + queue, now + kSoonest});
  // From half of it on again, so that they do not all come at the end.
  if (next_return_ > now + kLatest) next_return_ = now + kLatest / 2;
  return next_return_ - now;
}

size_t RequestTurns::waiting() const {
  base::MutexLock lock(mutex_);
  return queue_.size();
}

}  // namespace rknnd::transport
