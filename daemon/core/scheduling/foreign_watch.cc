#include "daemon/core/scheduling/foreign_watch.h"

#include <utility>

namespace rknnd::core {

void ForeignWatch::Look(std::function<void()> done) {
  const bool fresh = looked_ && clock_->Now() - at_ < kFresh;
  if (finder_ == nullptr || !finder_->worthwhile() || fresh) return done();
  waiting_.push_back(std::move(done));
  if (waiting_.size() > 1) return;  // somebody looks already
  pager_->Post([finder = finder_, loop = loop_, weak = weak_from_this()] {
    loop->Post([found = finder->Find(), weak] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->users_ = found;
      self->looked_ = true;
      self->at_ = self->clock_->Now();
      for (const auto& told : std::exchange(self->waiting_, {})) told();
    });
  });
}

}  // namespace rknnd::core
