// Called by the scheduler under its lock, with contexts that have a queued job.

#include "daemon/core/scheduling/waiting_lines.h"

#include <utility>

#include "base/posix/hot_path.h"
#include "daemon/core/jobs/job.h"

namespace rknnd::core {

bool OlderContext::operator()(const RunContext* a, const RunContext* b) const {
  return a->queue.first->ticket < b->queue.first->ticket;
}

WaitingLines::WaitingLines(uint32_t cores, Share* nobody)
    : lanes_(cores), nobody_(nobody), counts_(lanes_.count()) {
  for (auto& orders : orders_) orders = std::vector<LineOrder>(lanes_.count());
}

RKNND_HOT_PATH Flow& WaitingLines::FlowOf(const RunContext& context) const {
  const ContextTraits& traits = context.traits();
  Share& share = traits.share == nullptr ? *nobody_ : *traits.share;
  return share.flows[static_cast<size_t>(traits.priority)];
}

RKNND_HOT_PATH Line& WaitingLines::LineOf(const RunContext& context) const {
  return FlowOf(context).lines[lanes_.Of(context.queue.first->cores)];
}

RKNND_HOT_PATH void WaitingLines::Insert(RunContext& context, uint64_t least,
                                         base::Nanoseconds now) {
  Line& line = LineOf(context);
  ++counts_[line.lane];
  if (line.contexts.empty()) {
    Flow& flow = *line.flow;
    if (IsEarlier(flow.time, least)) {
      Charge(flow, static_cast<int64_t>(least - flow.time));
    }
    // Who comes back stands behind those who stayed.
    if (flow.waiting++ == 0) flow.order = next_order_++;
    Join(flow);
    orders_[static_cast<size_t>(flow.priority)][line.lane].insert(
        std::move(line.place));
    line.since = now;
    Append(line);
  }
  line.contexts.insert(std::move(context.queue.place));
  context.queue.ready = true;
}

RKNND_HOT_PATH void WaitingLines::Remove(RunContext& context) {
  Line& line = LineOf(context);
  --counts_[line.lane];
  context.queue.place = line.contexts.extract(&context);
  context.queue.ready = false;
  if (!line.contexts.empty()) return;
  line.place =
      orders_[static_cast<size_t>(line.flow->priority)][line.lane].extract(
          &line);
  Unlink(line);
  --line.flow->waiting;
  Leave(*line.flow);
}

RKNND_HOT_PATH void WaitingLines::Join(Flow& flow) {
  if (flow.busy++ != 0) return;
  flow.weight.set_counted(true);
  if (flow.sharers != nullptr) ++*flow.sharers;
}

RKNND_HOT_PATH void WaitingLines::Leave(Flow& flow) {
  if (--flow.busy != 0) return;
  flow.weight.set_counted(false);
  if (flow.sharers != nullptr) --*flow.sharers;
}

RKNND_HOT_PATH void WaitingLines::Charge(Flow& flow, int64_t amount) {
  auto& orders = orders_[static_cast<size_t>(flow.priority)];
  for (Line& line : flow.lines) {
    if (line.contexts.empty()) continue;
    line.place = orders[line.lane].extract(&line);
  }
  flow.time += static_cast<uint64_t>(amount);
  flow.order = next_order_++;
  for (Line& line : flow.lines) {
    if (line.contexts.empty()) continue;
    orders[line.lane].insert(std::move(line.place));
  }
}

RKNND_HOT_PATH void WaitingLines::NoteTurn(Line& line, base::Nanoseconds now) {
  if (line.contexts.empty()) return;
  Unlink(line);
  line.since = now;
  Append(line);
}

void WaitingLines::Append(Line& line) {
  line.previous = last_;
  line.next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = &line;
  last_ = &line;
}

void WaitingLines::Unlink(Line& line) {
  (line.previous == nullptr ? first_ : line.previous->next) = line.next;
  (line.next == nullptr ? last_ : line.next->previous) = line.previous;
  line.previous = nullptr;
  line.next = nullptr;
}

}  // namespace rknnd::core
