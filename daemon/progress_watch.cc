// See the header.

#include "daemon/progress_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd {

void ProgressWatch::Add(std::string name, std::function<Look()> look,
                        base::Nanoseconds limit) {
  Part part;
  part.name = std::move(name);
  part.look = std::move(look);
  part.limit = std::max(limit, limit_);
  parts_.push_back(std::move(part));
}

std::string ProgressWatch::Check() {
  const base::Nanoseconds now = clock_->Now();
  const base::Nanoseconds passed = looked_ == 0 ? 0 : now - looked_;
  looked_ = now;
  // Nobody looked: were we there at all?
  const bool missed = passed >= limit_;
  std::string standing;
  for (Part& part : parts_) {
    const Look look = part.look();
    const bool same = part.busy && look.busy && part.steps == look.steps;
    part.busy = look.busy;
    part.steps = look.steps;
    part.stood = same && !missed ? part.stood + passed : 0;
    if (part.stood < part.limit || !part.busy) continue;
    absl::StrAppend(&standing, standing.empty() ? "" : "; ", part.name,
                    " has stood still for ",
                    static_cast<double>(part.stood) / base::kSecond, " s");
  }
  return standing;
}

}  // namespace rknnd
