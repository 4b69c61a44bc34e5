#include "daemon/transport/grpc/relay/inbound_memory.h"

#include <algorithm>
#include <utility>

namespace rknnd::transport {

InboundMemory::Account::Account(InboundMemory* memory, std::string host)
    : memory_(memory), host_(std::move(host)) {
  memory_->accounts_.insert(this);
}

InboundMemory::Account::~Account() {
  GiveBack(held_);
  memory_->accounts_.erase(this);
}

bool InboundMemory::Account::Take(uint64_t bytes) {
  const uint64_t before = pooled();
  held_ += bytes;
  if (pooled() - before > memory_->pool_ - memory_->used_) {
    held_ -= bytes;
    return false;
  }
  memory_->Change(*this, before);
  return true;
}

void InboundMemory::Account::GiveBack(uint64_t bytes) {
  const uint64_t before = pooled();
  held_ -= bytes;
  memory_->Change(*this, before);
}

void InboundMemory::Change(const Account& account, uint64_t before) {
  const uint64_t now = account.pooled();
  if (now == before) return;
  used_ = used_ - before + now;
  uint64_t& of_host = of_host_[account.host_];
  of_host = of_host - before + now;
  if (of_host == 0) of_host_.erase(account.host_);
}

const InboundMemory::Account* InboundMemory::Greatest() const {
  const auto host = std::max_element(
      of_host_.begin(), of_host_.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (host == of_host_.end()) return nullptr;
  const Account* greatest = nullptr;
  for (const Account* account : accounts_) {
    if (account->host_ != host->first) continue;
    if (greatest == nullptr || account->pooled() > greatest->pooled()) {
      greatest = account;
    }
  }
  return greatest;
}

}  // namespace rknnd::transport
