// The engine's half on the loop: its session, what is made in it for models and
// taken apart again, and its end.

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/blocked_signals.h"
#include "base/status/status.h"
#include "daemon/transport/grpc/inference/engine.h"

namespace rknnd::transport {
namespace {

// Whatever a context or buffer cannot be made for, the model is not there.
absl::Status NotLoaded(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return absl::UnavailableError(absl::StrCat(
      "the model is not loaded any more: ", std::string(status.message())));
}

// A limit of the session's, which what nobody uses may be in the way of.
bool IsFull(const absl::Status& status) {
  return absl::IsResourceExhausted(status);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Engine>> Engine::Create(
    const EngineOptions& options) {
  std::shared_ptr<Engine> engine(new Engine(options));
  core::SessionPeer peer;
  peer.comm = "inference";
  peer.pid = getpid();
  peer.uid = geteuid();
  RKNND_ASSIGN_OR_RETURN(engine->session_,
                         options.service->OpenSession(
                             std::move(peer), engine->completions_, nullptr));
  engine->gate_ = engine->session_->gate();
  engine->device_cores_ = options.service->device_info().cores;
  engine->lanes_.emplace(engine->session_, engine->device_cores_,
                         options.has_region);
  const base::BlockedSignals blocked;
  engine->thread_ = std::thread([raw = engine.get()] { raw->RunThread(); });
  return engine;
}

Engine::~Engine() {
  if (thread_.joinable()) Stop();
}

bool Engine::PostToLoop(std::function<void()> task) {
  base::MutexLock lock(loop_mutex_);
  if (closed_) return false;
  options_.loop->Post([weak = weak_from_this(), task = std::move(task)] {
    const auto self = weak.lock();
    if (self != nullptr && self->session_ != nullptr) task();
  });
  return true;
}

void Engine::LookAt(const core::ModelId& id, bool again) {
  lanes_->Look(id, [this, id, again](
                       absl::StatusOr<std::shared_ptr<const ModelView>> view) {
    if (!again && IsFull(view.status()) && Sweep(/*all=*/true)) {
      return LookAt(id, true);
    }
    auto openers = std::make_shared<std::vector<ViewCallback>>();
    {
      base::MutexLock lock(mutex_);
      Model& model = models_[id];
      openers->swap(model.openers);
      if (view.ok()) {
        model.view = *view;
        model.rows.resize((*view)->rows.size());
      } else if (model.view == nullptr) {
        models_.erase(id);
      }
    }
    SweepLater();
    const auto tell = [openers, view] {
      for (const ViewCallback& opener : *openers) opener(view);
    };
    if (!Post(tell)) tell();
  });
}

void Engine::Grow(const Growth& growth) {
  lanes_->Make(
      growth.model, growth.row, growth.number,
      [this, growth](absl::StatusOr<std::unique_ptr<Lane>> made) {
        if (!growth.again && IsFull(made.status()) && Sweep(/*all=*/true)) {
          Growth retry = growth;
          retry.again = true;
          return Grow(retry);
        }
        std::vector<InferenceRunPtr> refused;
        {
          base::MutexLock lock(mutex_);
          const auto found = models_.find(growth.model->id);
          if (found == models_.end()) return;
          Row& row = found->second.rows[growth.row];
          row.growing = false;
          if (made.ok()) {
            (*made)->row = growth.row;
            row.lanes.push_back(*std::move(made));
          } else if (row.lanes.empty()) {
            refused = row.waiting.TakeAll();
            waiting_ -= static_cast<uint32_t>(refused.size());
            // Perhaps it can be looked at, or had, another time.
            found->second.forgotten = true;
          } else {
            row.full = true;  // those that are there must do
          }
        }
        for (const InferenceRunPtr& run : refused) {
          Refuse(run, NotLoaded(made.status()));
        }
        SweepLater();
        Post([this, growth] { Dispatch(growth.model, growth.row); });
      });
}

void Engine::Rebind(const Start& start) {
  InferenceRunPtr run;
  {
    base::MutexLock lock(mutex_);
    run = start.lane->run;
  }
  if (run == nullptr) return FreeLane(start);
  const absl::Status bound =
      lanes_->Bind(*start.lane, run->bindings, run->regions);
  const auto next = [this, start, bound] {
    if (bound.ok()) return FillAndSubmit(start);
    EndRun(start, bound);
  };
  if (!Post(next)) EndRun(start, bound);
}

void Engine::Forget(const core::ModelId& id) {
  {
    base::MutexLock lock(mutex_);
    const auto found = models_.find(id);
    if (found == models_.end()) return;
    found->second.forgotten = true;
  }
  PostToLoop([this] { Sweep(); });
}

void Engine::OnRegionGone(uint64_t region) {
  PostToLoop([this, region] { lanes_->DropRegion(region); });
}

void Engine::SweepLater() {
  if (sweep_timer_ != 0) return;
  sweep_timer_ =
      options_.loop->RunAfter(options_.idle, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->sweep_timer_ = 0;
        if (self->session_ != nullptr) self->Sweep();
      });
}

bool Engine::Sweep(bool all) {
  std::vector<core::ModelId> unused;
  std::vector<std::vector<Row>> dropped;
  bool some_left = false;
  {
    base::MutexLock lock(mutex_);
    const base::Nanoseconds now = options_.clock->Now();
    for (auto model = models_.begin(); model != models_.end();) {
      bool busy = model->second.view == nullptr;
      for (const Row& row : model->second.rows) {
        busy = busy || row.growing || !row.waiting.empty();
        for (const auto& lane : row.lanes) busy = busy || lane->taken;
      }
      const bool old = all || model->second.forgotten ||
                       now - model->second.used >= options_.idle;
      if (busy || !old) {
        some_left = true;
        ++model;
        continue;
      }
      unused.push_back(model->first);
      dropped.push_back(std::move(model->second.rows));
      model = models_.erase(model);
    }
  }
  for (const core::ModelId& id : unused) lanes_->Drop(id);
  if (some_left) SweepLater();
  return !unused.empty();
}

void Engine::SetDraining(bool draining) {
  base::MutexLock lock(mutex_);
  draining_ = draining;
}

void Engine::Stop() {
  // 1. Nothing new, here or on the loop.
  {
    base::MutexLock lock(loop_mutex_);
    closed_ = true;
  }
  std::vector<std::function<void()>> tasks;
  std::vector<InferenceRunPtr> runs;
  std::vector<ViewCallback> openers;
  {
    base::MutexLock lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    tasks.swap(tasks_);
  }
  if (sweep_timer_ != 0) options_.loop->CancelTimer(sweep_timer_);
  // 2. The engine's thread ends what it is at.
  completions_->Wake();
  if (thread_.joinable()) thread_.join();
  // 3. Jobs that wait in core vanish; one that runs ends into memory that is
  // the session's still.
  options_.service->CloseSession(session_->id());
  session_ = nullptr;
  // 4. What had been handed to the thread, and whoever waits for an answer.
  for (const auto& task : tasks) task();
  {
    base::MutexLock lock(mutex_);
    for (auto& [id, model] : models_) {
      for (ViewCallback& opener : model.openers) {
        openers.push_back(std::move(opener));
      }
      model.openers.clear();
      for (Row& row : model.rows) {
        for (InferenceRunPtr& run : row.waiting.TakeAll()) {
          runs.push_back(std::move(run));
        }
        for (const auto& lane : row.lanes) {
          if (lane->run != nullptr) runs.push_back(std::move(lane->run));
        }
      }
    }
    waiting_ = 0;
  }
  const absl::Status stopped =
      absl::UnavailableError("the daemon stops: ask again in a moment");
  for (const ViewCallback& opener : openers) opener(stopped);
  for (const InferenceRunPtr& run : runs) Refuse(run, stopped);
}

}  // namespace rknnd::transport
