// What a client's control messages do. The transport has checked that they are
// messages; every number, size, fd and text in them is still the client's word.

#include "daemon/core/sessions/session.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/core/contexts/shape_rows.h"
#include "daemon/core/sessions/context_sram.h"
#include "daemon/core/terms/events.h"

namespace rknnd::core {
namespace {

std::string Holder(SessionId id, const SessionPeer& peer) {
  return absl::StrCat("session ", id, " (pid ", peer.pid, " '", peer.comm,
                      "')");
}

absl::Status DestroyedEarly(uint32_t number) {
  return absl::CancelledError(absl::StrCat(
      "context ", number, " was destroyed while its model was loaded"));
}

}  // namespace

void Session::Warn(const std::string& text) const {
  if (log_ != nullptr) log_->Log(kLogWarning, text);
  if (parts_->log != nullptr) {
    parts_->log->LogEvent(kDaemonLogWarning,
                          absl::StrCat(account_->holder(), ": ", text),
                          FieldsOf(id_, peer_));
  }
}

Session::Session(SessionId id, SessionPeer peer,
                 std::shared_ptr<const ServiceParts> parts,
                 std::shared_ptr<Tenant> tenant, std::shared_ptr<Share> share,
                 std::shared_ptr<CompletionSink> completions,
                 std::shared_ptr<LogSink> log)
    : id_(id),
      peer_(std::move(peer)),
      parts_(std::move(parts)),
      tenant_(std::move(tenant)),
      share_(std::move(share)),
      log_(std::move(log)),
      account_(parts_->ledger->Open(Holder(id_, peer_), "memory",
                                    parts_->limits.memory, tenant_->account())),
      gate_(std::make_shared<JobGateImpl>(
          parts_->runner, std::move(completions), account_->holder(),
          tenant_->quota().Join(account_->holder()))),
      rights_(parts_->device->info(), tenant_, share_),
      uploads_(parts_, tenant_, account_, log_),
      turns_(parts_->paging()),
      buffers_(parts_->paging(), &turns_, account_, &parts_->limits,
               [this] {
                 RKNND_RETURN_IF_ERROR(
                     CheckTenant(kBufferLimit, CommonKind::kDescriptors));
                 return parts_->common->Check(*tenant_, CommonKind::kMappings);
               }),
      contexts_(parts_->device->info()) {
  buffers_.set_tell([this](const std::string& text) { Warn(text); });
  buffers_.set_sram(parts_->sram);
  buffers_.set_keys(parts_->keys);
}

void Session::End() {
  if (ended_) return;
  ended_ = true;
  presence_.End();
  abandoned_ = gate_->End();
  contexts_.Clear();
  buffers_.Clear();
  turns_.Clear();
}

void Session::TakeLimits() {
  account_->SetLimit(parts_->limits.memory, "memory");
}

// ---- contexts ---------------------------------------------------------------

void Session::CreateContext(const ContextRequest& request,
                            ContextCallback done) {
  absl::Status valid = CheckNewContext(request.number);
  valid.Update(ParseFlags(request.flags).status());
  const auto cores = ResolveCoreMask(request.core_mask, parts_->device->info());
  valid.Update(cores.status());
  if (valid.ok()) valid = rights_.Check(*cores, request.core_mask);
  if (!valid.ok()) {
    done(valid);
    return;
  }
  ModelId id = request.model;
  if (request.duplicate_of != 0) {
    // Not NOT_FOUND: that would mean "upload the model".
    const Context* origin = contexts_.Find(request.duplicate_of);
    if (origin == nullptr) {
      done(absl::InvalidArgumentError(
          absl::StrCat("context ", request.duplicate_of,
                       " cannot be duplicated: it does not exist in this "
                       "session")));
      return;
    }
    if (!origin->run->traits().info_only) {
      PrepareContext(request, contexts_.Expect(request.number),
                     origin->use.Duplicate(), std::move(done));
      return;
    }
    id = origin->run->model()->id;
  }

  const uint64_t token = contexts_.Expect(request.number);
  parts_->models->Use(
      id, payer(),
      [weak = weak_from_this(), request, token,
       done = std::move(done)](absl::StatusOr<ModelUse> use) {
        const auto self = weak.lock();
        if (self == nullptr || self->ended_) return;
        if (!self->contexts_.IsExpected(request.number, token)) {
          done(DestroyedEarly(request.number));
          return;
        }
        if (!use.ok()) {
          self->contexts_.TakeExpected(request.number, token);
          if (request.duplicate_of != 0 && absl::IsNotFound(use.status())) {
            // As above.
            done(absl::FailedPreconditionError(absl::StrCat(
                "context ", request.duplicate_of,
                " was made with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY and its "
                "model has gone: load it with rknn_init")));
            return;
          }
          done(use.status());
          return;
        }
        use->CountLoad();
        self->PrepareContext(request, token, *std::move(use), done);
      });
}

void Session::PrepareContext(const ContextRequest& asked, uint64_t token,
                             ModelUse use, ContextCallback done) {
  ContextRequest request = asked;
  request.core_mask = rights_.TakeMask(asked.core_mask);
  // Both were found to be good before the model was loaded.
  const ContextTraits traits = *ParseFlags(request.flags);
  const CoreChoice cores =
      *ResolveCoreMask(request.core_mask, parts_->device->info());
  const std::shared_ptr<const LoadedModel> model = use.model();
  const bool own = parts_->vendor_sharing;
  const ArenaNeed need{NeedsArena(traits, *model) ? ArenasOf(cores, *model) : 0,
                       model->internal_size()};
  // Jobs that may run on any of several cores can do so as soon as one of them
  // has room: the others get theirs behind the answer.
  CoreChoice begins = cores;
  ArenaNeed first = need;
  if (!own && !cores.gang && std::popcount(need.cores) > 1 &&
      !parts_->runner->arenas().Has(need)) {
    const uint32_t ours = need.cores & ~parts_->leases->lent();
    first.cores = begins.cores =
        uint32_t{1} << std::countr_zero(ours != 0 ? ours : need.cores);
  }
  // Copyable, as callbacks are.
  const auto kept = std::make_shared<ModelUse>(std::move(use));
  const auto finish =
      [weak = weak_from_this(), request, token, kept, first, own, cores, begins,
       done = std::move(done)](absl::StatusOr<std::shared_ptr<Arena>> arena) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        Arenas& arenas = self->parts_->runner->arenas();
        if (self->ended_) return arenas.Refit();
        if (!self->contexts_.TakeExpected(request.number, token)) {
          arenas.Refit();
          done(DestroyedEarly(request.number));
          return;
        }
        if (!arena.ok()) return done(arena.status());
        if (!own) kept->Reach(first.cores);
        done(self->AddContext(request, std::move(*kept), *std::move(arena),
                              begins));
        if (!(begins == cores)) self->WidenLater(request, cores);
      };
  if (!traits.info_only && !model->info().runnable.ok()) {
    finish(model->info().runnable);
  } else if (need.cores == 0) {
    finish(nullptr);
  } else if (own) {
    Arena::Make(parts_->paging(), *parts_->internal_memory, need.size, finish);
  } else {
    Arenas& arenas = parts_->runner->arenas();
    const absl::Status room =
        arenas.CheckRoom(need, *parts_->ledger, tenant_->name());
    if (!room.ok()) return finish(room);
    arenas.Fit(first, [finish](const absl::Status& fits) {
      if (fits.ok()) return finish(nullptr);
      finish(fits);
    });
  }
}

const driver::ModelInfo* Session::AddContext(const ContextRequest& request,
                                             ModelUse use,
                                             std::shared_ptr<Arena> own_arena,
                                             const CoreChoice& begins) {
  ContextTraits traits = *ParseFlags(request.flags);
  const CoreChoice cores =
      *ResolveCoreMask(request.core_mask, parts_->device->info());
  traits.number = request.number;
  traits.session = id_;
  traits.asked_priority = traits.priority;
  traits.priority =
      UnderCeiling(traits.asked_priority, share_->policy().ceiling);
  traits.share = share_;
  traits.pid = peer_.pid;
  traits.model_name =
      parts_->runner->policies().attribution->recorder().NameModel(
          use.model()->name);
  traits.user = peer_.uid;
  const std::shared_ptr<const LoadedModel> model =
      traits.info_only ? DescriptionOf(*use.model()) : use.model();
  Context context;
  if (!traits.info_only) context.use = std::move(use);
  context.run =
      std::make_shared<RunContext>(traits, model, std::move(own_arena));
  context.bindings =
      BindingSets(BindingSet::Empty(model, traits.internal_outside));
  context.core_mask = request.core_mask;
  context.sram =
      TakeSram(*parts_, {account_->holder(), log_.get(), request.sram_limit},
               traits, *model, ArenasOf(cores, *model));
  gate_->Add(context.run, context.bindings.snapshot(), begins);
  contexts_.Add(request.number, std::move(context));
  return &model->info();
}

absl::Status Session::DestroyContext(uint32_t context) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  if (!contexts_.IsTaken(context)) return contexts_.Get(context).status();
  if (contexts_.IsThere(context)) gate_->Remove(context);
  contexts_.Drop(context);
  return absl::OkStatus();
}

absl::StatusOr<ShapeChoice> Session::SetShapes(
    uint32_t context, const std::vector<InputShape>& shapes) {
  RKNND_ASSIGN_OR_RETURN(Context* const found, OpenContext(context));
  Context& changed = *found;
  const LoadedModel& model = *changed.run->model();
  const auto row = FindRow(model, shapes);
  if (!row.ok()) return row.status();
  const BindingSet& bindings = changed.bindings.first();
  if (!bindings.chosen() || bindings.row() != *row) {
    changed.bindings.ChooseRow(*row);
    gate_->SetBindings(context, changed.bindings.snapshot());
  }
  return ShapeChoice{&model.info(), *row};
}

absl::Status Session::Bind(const BindRequest& request) {
  RKNND_RETURN_IF_ERROR(RequireOpen());
  RKNND_ASSIGN_OR_RETURN(Context* const found,
                         contexts_.GetForBinding(request.context));
  Context& context = *found;
  std::shared_ptr<Buffer> buffer;
  if (request.buffer != 0) {
    auto bound = buffers_.Find(request.buffer);
    if (!bound.ok()) return bound.status();
    buffer = *std::move(bound);
  }
  RKNND_RETURN_IF_ERROR(context.bindings.Bind(request, std::move(buffer)));
  gate_->SetBindings(request.context, context.bindings.snapshot());
  return absl::OkStatus();
}

// ---- buffers ----------------------------------------------------------------

void Session::AllocateBuffer(uint32_t buffer, uint64_t size, uint32_t flags,
                             BufferCallback done) {
  if (absl::Status open = RequireOpen(); !open.ok()) return done(open);
  buffers_.Allocate(buffer, size, flags, std::move(done));
}

void Session::ImportBuffer(uint32_t buffer, base::UniqueFd fd,
                           uint64_t expected_size, BufferCallback done) {
  if (absl::Status open = RequireOpen(); !open.ok()) return done(open);
  buffers_.Import(buffer, std::move(fd), expected_size, std::move(done));
}

void Session::ImportPhysical(uint32_t buffer, const PhysicalRange& range,
                             BufferCallback done) {
  if (absl::Status open = RequireOpen(); !open.ok()) return done(open);
  // A window is given to a user of this machine; a pod's uids are of its own
  // choosing.
  if (peer_.allocation != nullptr) {
    return done(absl::PermissionDeniedError(absl::StrCat(
        "memory by its address is not for share '", peer_.allocation->name,
        "': it is for users that rknnd's configuration names")));
  }
  static const driver::PhysicalMemory kNone;
  const auto place = (parts_->physical == nullptr ? kNone : *parts_->physical)
                         .Find(peer_.uid, range.address, range.size);
  if (!place.ok()) return done(place.status());
  auto fd = base::Duplicate(place->fd);
  if (!fd.ok()) return done(base::ToStatus(fd.error()));
  buffers_.ImportPhysical(buffer, *std::move(fd), range, place->identity,
                          std::move(done));
}

absl::Status Session::ReleaseBuffer(uint32_t buffer) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  return buffers_.Release(buffer);
}

absl::Status Session::SyncBuffer(uint32_t buffer, driver::CacheSide side) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  const auto found = buffers_.Find(buffer);
  if (!found.ok()) return found.status();
  (*found)->memory()->Synchronize(side);
  return absl::OkStatus();
}

// ---- checks -----------------------------------------------------------------

absl::Status Session::RequireOpen() const {
  if (!ended_) return absl::OkStatus();
  return absl::FailedPreconditionError("the session has ended");
}

absl::StatusOr<Context*> Session::OpenContext(uint32_t number) {
  RKNND_RETURN_IF_ERROR(RequireOpen());
  return contexts_.Get(number);
}

LoadPayer Session::payer() const {
  return {tenant_->name(), share_->policy().weight, presence_.token()};
}

void Session::UploadModel(ModelUpload upload, StatusCallback done) {
  if (absl::Status open = RequireOpen(); !open.ok()) return done(open);
  uploads_.Upload(std::move(upload), payer(), presence_, std::move(done));
}

uint64_t Session::descriptors_taken() const {
  // Its socket, process, ring, doorbell and what it is told by.
  constexpr uint64_t kOfASession = 8;
  constexpr uint64_t kOfAnUpload = 2;
  // Its memory; a driver that it is attached to has a dma-buf once more.
  constexpr uint64_t kOfABuffer = 2;
  return kOfASession + kOfAnUpload * uploads_.count() +
         kOfABuffer * buffers_.live() + gate_->fences().size();
}

absl::Status Session::CheckTenant(const CountLimit& limit,
                                  CommonKind kind) const {
  RKNND_RETURN_IF_ERROR(parts_->sessions->CheckTenant(*tenant_, limit));
  return parts_->common->Check(*tenant_, kind);
}

absl::Status Session::CheckNewContext(uint32_t number) const {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  if (parts_->drain.refuses()) {
    return absl::UnavailableError(
        "the daemon is draining and takes no new contexts");
  }
  if (number == 0) {
    return absl::InvalidArgumentError("a context's number cannot be 0");
  }
  if (contexts_.IsTaken(number)) {
    return absl::AlreadyExistsError(
        absl::StrCat("context ", number, " exists already: destroy it first"));
  }
  const uint32_t count = contexts_.taken();
  if (count >= parts_->limits.contexts) {
    return absl::ResourceExhaustedError(absl::StrCat(
        account_->holder(), " holds ", count,
        " contexts, its limit 'contexts' is ", parts_->limits.contexts,
        ": it makes contexts without rknn_destroy? Reuse them, or raise the "
        "limit"));
  }
  RKNND_RETURN_IF_ERROR(CheckTenant(kContextLimit, CommonKind::kContexts));
  // Its model may have to be loaded.
  return parts_->common->Check(*tenant_, CommonKind::kMappings);
}

}  // namespace rknnd::core
