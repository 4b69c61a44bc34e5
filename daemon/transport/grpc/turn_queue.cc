#include "daemon/transport/grpc/turn_queue.h"

namespace rknnd::transport {
namespace {

using ByTurn = std::map<uint64_t, std::string>;
using BySize = std::set<std::pair<size_t, uint64_t>>;

// An account and a connection are kept in the same way among their like: `all`
// by name, and those names by turn and by number of calls.
template <class Each>
Each& Grow(const std::string& name, uint64_t turn,
           std::map<std::string, Each>& all, ByTurn& by_turn, BySize& by_size) {
  Each& one = all[name];
  if (one.size == 0) {
    one.turn = turn;
    by_turn[turn] = name;
  }
  by_size.erase({one.size, one.turn});
  by_size.insert({++one.size, one.turn});
  return one;
}

// `turn`: its new one, behind all others; 0: it keeps what it has.
template <class Each>
void Shrink(const std::string& name, uint64_t turn,
            std::map<std::string, Each>& all, ByTurn& by_turn,
            BySize& by_size) {
  const auto found = all.find(name);
  Each& one = found->second;
  by_size.erase({one.size, one.turn});
  if (--one.size == 0) {
    by_turn.erase(one.turn);
    all.erase(found);
    return;
  }
  if (turn != 0) {
    by_turn.erase(one.turn);
    one.turn = turn;
    by_turn[turn] = name;
  }
  by_size.insert({one.size, one.turn});
}

// Of the largest `name`, unless others are larger.
template <class Each>
const std::string& Largest(const std::string& name,
                           const std::map<std::string, Each>& all,
                           const ByTurn& by_turn, const BySize& by_size) {
  const auto& [size, turn] = *by_size.rbegin();
  const auto own = all.find(name);
  if (own != all.end() && own->second.size == size) return own->first;
  return by_turn.find(turn)->second;
}

}  // namespace

TurnQueue::Entered TurnQueue::Add(const std::string& account,
                                  const std::string& connection,
                                  base::Nanoseconds deadline) {
  const Ticket ticket = ++last_;
  Account& group = Grow(account, ticket, accounts_, by_turn_, by_size_);
  Line& line =
      Grow(connection, ticket, group.lines, group.by_turn, group.by_size);
  line.tickets.insert(ticket);
  const Call& call = calls_[ticket] = {account, connection, deadline};
  by_deadline_.insert({deadline, ticket});
  Entered entered{ticket, std::nullopt};
  if (calls_.size() > most_) {
    entered.displaced = OneTooMany(call);
    Take(*entered.displaced, /*served=*/false);
  }
  return entered;
}

bool TurnQueue::Remove(Ticket ticket) {
  if (!calls_.contains(ticket)) return false;
  Take(ticket, /*served=*/false);
  return true;
}

std::vector<TurnQueue::Ticket> TurnQueue::TakeLate(base::Nanoseconds needed) {
  const base::Nanoseconds now = clock_->Now();
  std::vector<Ticket> late;
  while (!by_deadline_.empty() && by_deadline_.begin()->first != kNoDeadline &&
         by_deadline_.begin()->first - now <= needed) {
    late.push_back(by_deadline_.begin()->second);
    Take(late.back(), /*served=*/false);
  }
  return late;
}

std::optional<TurnQueue::Ticket> TurnQueue::TakeNext(
    const std::function<Answer(Ticket)>& ask) {
  for (const auto& [turn, name] : by_turn_) {
    const Account& account = accounts_.find(name)->second;
    const Line& line =
        account.lines.find(account.by_turn.begin()->second)->second;
    const Ticket ticket = *line.tickets.begin();
    const Answer answer = ask(ticket);
    if (answer == Answer::kAllMustWait) return std::nullopt;
    if (answer == Answer::kAccountMustWait) continue;
    Take(ticket, /*served=*/true);
    return ticket;
  }
  return std::nullopt;
}

std::string TurnQueue::LargestAccount() const {
  return by_size_.empty() ? ""
                          : by_turn_.find(by_size_.rbegin()->second)->second;
}

void TurnQueue::Take(Ticket ticket, bool served) {
  const auto found = calls_.find(ticket);
  const Call& call = found->second;
  const uint64_t turn = served ? ++last_ : 0;
  by_deadline_.erase({call.deadline, ticket});
  Account& account = accounts_.find(call.account)->second;
  account.lines.find(call.connection)->second.tickets.erase(ticket);
  Shrink(call.connection, turn, account.lines, account.by_turn,
         account.by_size);
  Shrink(call.account, turn, accounts_, by_turn_, by_size_);
  calls_.erase(found);
}

TurnQueue::Ticket TurnQueue::OneTooMany(const Call& came) const {
  const std::string& name =
      Largest(came.account, accounts_, by_turn_, by_size_);
  const Account& account = accounts_.find(name)->second;
  const std::string& line =
      Largest(came.connection, account.lines, account.by_turn, account.by_size);
  return *account.lines.find(line)->second.tickets.rbegin();
}

}  // namespace rknnd::transport
