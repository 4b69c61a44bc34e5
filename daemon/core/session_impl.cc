// What a client's control messages do. The transport has checked that they are
// messages; every number, size, fd and text in them is still the client's word.

#include "daemon/core/session_impl.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/memfd.h"
#include "daemon/core/shape_rows.h"

namespace rknnd::core {
namespace {

// Uploads of one session that may wait for the loader. Each holds an fd and a
// whole model; a client with more threads than this asks again.
constexpr uint32_t kUploads = 64;
// A MODEL.yml is a page; the transport's datagram is 64 KiB.
constexpr size_t kOptionsBytes = size_t{64} << 10;
constexpr size_t kNameBytes = 255;
constexpr uint32_t kLogDebug = 4;  // RKNN_LOG_LEVEL's
constexpr uint32_t kLogWarning = 1;

std::string Holder(SessionId id, const SessionPeer& peer) {
  return absl::StrCat("session ", id, " (pid ", peer.pid, " '", peer.comm,
                      "')");
}

bool IsControl(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' &&
          c != '\r') ||
         c == 0x7f;
}

// The cores whose arenas jobs of `model` work in: a gang that shares each layer
// has that of its lowest core, one that shares the slices of a batch all.
uint32_t ArenasOf(const CoreChoice& choice, const LoadedModel& model) {
  const auto& rows = model.info().programs;
  if (!choice.gang ||
      std::any_of(rows.begin(), rows.end(),
                  [](const auto& row) { return row.batch > 1; })) {
    return choice.cores;
  }
  return uint32_t{1} << std::countr_zero(choice.cores);
}

absl::Status NoContext(uint32_t number) {
  return absl::NotFoundError(
      absl::StrCat("context ", number, " does not exist in this session"));
}

}  // namespace

SessionImpl::SessionImpl(SessionId id, SessionPeer peer,
                         std::shared_ptr<const ServiceParts> parts,
                         std::shared_ptr<CompletionSink> completions,
                         std::shared_ptr<LogSink> log)
    : id_(id),
      peer_(std::move(peer)),
      parts_(std::move(parts)),
      log_(std::move(log)),
      account_(parts_->ledger->Open(Holder(id_, peer_), "memory",
                                    parts_->limits.memory)),
      gate_(std::make_shared<JobGateImpl>(parts_->runner,
                                          std::move(completions))),
      buffers_(parts_->device, parts_->heaps, account_, parts_->limits) {}

void SessionImpl::End() {
  if (ended_) return;
  ended_ = true;
  gate_->End();
  pending_.clear();
  contexts_.clear();
  buffers_.Clear();
}

// ---- contexts ---------------------------------------------------------------

void SessionImpl::CreateContext(const ContextRequest& request,
                                ContextCallback done) {
  absl::Status valid = CheckNewContext(request.number);
  valid.Update(ParseFlags(request.flags).status());
  valid.Update(
      ResolveCoreMask(request.core_mask, parts_->device->info()).status());
  if (!valid.ok()) {
    done(valid);
    return;
  }
  if (request.duplicate_of != 0) {
    // Not NOT_FOUND: that would mean "upload the model".
    const Context* origin = FindContext(request.duplicate_of);
    if (origin == nullptr) {
      done(absl::InvalidArgumentError(
          absl::StrCat("context ", request.duplicate_of,
                       " cannot be duplicated: it does not exist in this "
                       "session")));
      return;
    }
    done(AddContext(request, origin->use.Duplicate()));
    return;
  }

  const uint64_t token = next_token_++;
  pending_[request.number] = token;
  parts_->models->Use(
      request.model, [weak = weak_from_this(), request, token,
                      done = std::move(done)](absl::StatusOr<ModelUse> use) {
        const auto self = weak.lock();
        if (self == nullptr || self->ended_) return;
        const auto pending = self->pending_.find(request.number);
        if (pending == self->pending_.end() || pending->second != token) {
          done(absl::CancelledError(
              absl::StrCat("context ", request.number,
                           " was destroyed while its model was loaded")));
          return;
        }
        self->pending_.erase(pending);
        if (!use.ok()) {
          done(use.status());
          return;
        }
        use->CountLoad();
        done(self->AddContext(request, *std::move(use)));
      });
}

absl::StatusOr<const driver::ModelInfo*> SessionImpl::AddContext(
    const ContextRequest& request, ModelUse use) {
  // Both were found to be good before the model was loaded.
  ContextTraits traits = *ParseFlags(request.flags);
  const CoreChoice cores =
      *ResolveCoreMask(request.core_mask, parts_->device->info());
  traits.number = request.number;
  traits.session = id_;
  const std::shared_ptr<const LoadedModel> model = use.model();
  if (!traits.info_only && !model->info().runnable.ok()) {
    return model->info().runnable;
  }
  const uint64_t internal_size = model->internal_size();
  std::shared_ptr<Arena> own_arena;
  if (traits.info_only || internal_size == 0) {
    // Needs no internal memory.
  } else if (parts_->vendor_sharing) {
    auto arena = Arena::Create(parts_->device, parts_->heaps,
                               *parts_->internal_memory, internal_size);
    if (!arena.ok()) return arena.status();
    own_arena = *std::move(arena);
  } else if (absl::Status reached = Reach(use, ArenasOf(cores, *model));
             !reached.ok()) {
    return reached;
  }

  Context context;
  context.use = std::move(use);
  context.run =
      std::make_shared<RunContext>(traits, model, std::move(own_arena));
  context.bindings = BindingSet::Empty(model);
  context.core_mask = request.core_mask;
  if (traits.sram && !traits.info_only && parts_->sram != nullptr) {
    // For the largest shape, as internal memory is.
    const driver::ModelInfo& info = model->info();
    context.sram = parts_->sram->Take(info.programs[info.largest].sram.used);
  }
  gate_->Add(context.run, context.bindings, cores);
  contexts_[request.number] = std::move(context);
  return &model->info();
}

absl::Status SessionImpl::Reach(ModelUse& use, uint32_t cores) const {
  const uint32_t before = use.reach();
  if ((before | cores) == before) return absl::OkStatus();
  use.set_reach(before | cores);
  absl::Status fitted = parts_->FitArenas();
  if (!fitted.ok()) {
    use.set_reach(before);
    (void)parts_->FitArenas();
  }
  return fitted;
}

absl::Status SessionImpl::DestroyContext(uint32_t context) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  if (pending_.erase(context) != 0) return absl::OkStatus();
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return NoContext(context);
  gate_->Remove(context);
  contexts_.erase(found);
  return absl::OkStatus();
}

absl::Status SessionImpl::SetCoreMask(uint32_t context, uint32_t core_mask) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return NoContext(context);
  const driver::DeviceInfo& device = parts_->device->info();
  auto cores = ResolveCoreMask(core_mask, device);
  if (!cores.ok()) return cores.status();
  if ((device.limits & driver::kNoCoreMask) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("core mask ", core_mask, ": the runtime of ", device.soc,
                     ", which has one core, takes none"));
  }
  Context& changed = found->second;
  if (!parts_->vendor_sharing && !changed.run->traits().info_only &&
      changed.run->model()->internal_size() != 0) {
    absl::Status reached =
        Reach(changed.use, ArenasOf(*cores, *changed.run->model()));
    if (!reached.ok()) return reached;
  }
  if (device.cores <= 1 && core_mask > 1 && log_ != nullptr) {
    log_->Log(kLogDebug, absl::StrCat("core mask ", core_mask, " ignored, ",
                                      device.soc, " has one core"));
  }
  changed.core_mask = core_mask;
  gate_->SetCores(context, *cores);
  return absl::OkStatus();
}

absl::StatusOr<ShapeChoice> SessionImpl::SetShapes(
    uint32_t context, const std::vector<InputShape>& shapes) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return NoContext(context);
  Context& changed = found->second;
  const LoadedModel& model = *changed.run->model();
  const auto row = FindRow(model, shapes);
  if (!row.ok()) return row.status();
  if (!changed.bindings->chosen() || changed.bindings->row() != *row) {
    changed.bindings = changed.bindings->ForRow(*row);
    gate_->SetBindings(context, changed.bindings);
  }
  return ShapeChoice{&model.info(), *row};
}

absl::Status SessionImpl::Bind(const BindRequest& request) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  const auto found = contexts_.find(request.context);
  if (found == contexts_.end()) return NoContext(request.context);
  Context& context = found->second;
  if (context.run->traits().info_only) {
    return absl::FailedPreconditionError(absl::StrCat(
        "context ", request.context,
        " was made with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY: memory cannot be "
        "bound to it"));
  }
  std::shared_ptr<Buffer> buffer;
  if (request.buffer != 0) {
    auto bound = buffers_.Find(request.buffer);
    if (!bound.ok()) return bound.status();
    buffer = *std::move(bound);
  }
  auto bindings = context.bindings->With(request, std::move(buffer));
  if (!bindings.ok()) return bindings.status();
  context.bindings = *std::move(bindings);
  gate_->SetBindings(request.context, context.bindings);
  return absl::OkStatus();
}

// ---- models -----------------------------------------------------------------

void SessionImpl::UploadModel(ModelUpload upload, StatusCallback done) {
  upload.name.resize(std::min(upload.name.size(), kNameBytes));
  std::replace_if(upload.name.begin(), upload.name.end(), IsControl, '?');
  const auto size = CheckUpload(upload);
  if (!size.ok()) {
    done(size.status());
    return;
  }
  auto charge = account_->TryCharge(MemoryKind::kOther, *size);
  if (!charge.ok()) {
    done(charge.status());
    return;
  }
  ++uploads_;
  const std::string name = upload.name;
  parts_->models->Upload(
      std::move(upload), *size, *std::move(charge),
      [weak = std::weak_ptr<LogSink>(log_), name](const absl::Status& status) {
        if (const auto log = weak.lock()) {
          log->Log(kLogWarning,
                   absl::StrCat("model '", name,
                                "' is not kept for the daemon's restart: ",
                                std::string(status.message())));
        }
      },
      [weak = weak_from_this(),
       done = std::move(done)](const absl::Status& status) {
        const auto self = weak.lock();
        if (self == nullptr || self->ended_) return;
        --self->uploads_;
        done(status);
      });
}

absl::StatusOr<uint64_t> SessionImpl::CheckUpload(
    const ModelUpload& upload) const {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  if (parts_->draining) {
    return absl::UnavailableError(
        "the daemon is draining and takes no new models");
  }
  if (uploads_ >= kUploads) {
    return absl::ResourceExhaustedError(
        absl::StrCat(account_->holder(), " has ", uploads_,
                     " models to load already: wait until one is loaded"));
  }
  // Options follow the bytes in the hash. As text they cannot pass for the end
  // of somebody else's model.
  if (upload.options.size() > kOptionsBytes ||
      std::any_of(upload.options.begin(), upload.options.end(), IsControl)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", upload.name,
                     "': options are a text of at "
                     "most ",
                     kOptionsBytes, " bytes"));
  }
  if (!base::HasSeals(upload.bytes.get(), base::Seals::kImmutable)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model '", upload.name,
        "' did not come in a memfd on tmpfs sealed against shrink, grow and "
        "write"));
  }
  struct stat status {};
  if (fstat(upload.bytes.get(), &status) != 0 || status.st_size <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", upload.name, "' is empty (0 bytes)"));
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > parts_->limits.model_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("model '", upload.name, "' has ", size,
                     " bytes, limit 'model_bytes' "
                     "is ",
                     parts_->limits.model_bytes));
  }
  return size;
}

// ---- buffers ----------------------------------------------------------------

absl::StatusOr<BufferInfo> SessionImpl::AllocateBuffer(uint32_t buffer,
                                                       uint64_t size,
                                                       uint32_t flags) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  return buffers_.Allocate(buffer, size, flags);
}

absl::StatusOr<BufferInfo> SessionImpl::ImportBuffer(uint32_t buffer,
                                                     base::UniqueFd fd,
                                                     uint64_t expected_size) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  return buffers_.Import(buffer, std::move(fd), expected_size);
}

absl::Status SessionImpl::ReleaseBuffer(uint32_t buffer) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  return buffers_.Release(buffer);
}

absl::Status SessionImpl::SyncBuffer(uint32_t buffer, driver::CacheSide side) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  const auto found = buffers_.Find(buffer);
  if (!found.ok()) return found.status();
  (*found)->memory()->Synchronize(side);
  return absl::OkStatus();
}

// ---- questions --------------------------------------------------------------

absl::StatusOr<MemorySize> SessionImpl::GetMemorySize(uint32_t context) const {
  const Context* found = FindContext(context);
  if (found == nullptr) return NoContext(context);
  const LoadedModel& model = *found->run->model();
  MemorySize size;
  size.weight = model.info().weight_size;
  size.internal = model.internal_size();
  // What the process holds, and what this context uses of the board's.
  size.dma_total = account_->held().total() + size.weight + size.internal;
  size.sram_total = parts_->device->info().sram_total;
  size.sram_free =
      parts_->sram == nullptr ? size.sram_total : parts_->sram->free();
  return size;
}

// ---- reports ----------------------------------------------------------------

SessionReport SessionImpl::Report() const {
  SessionReport report;
  report.id = id_;
  report.peer = peer_;
  report.contexts = context_count();
  report.buffers = buffer_count();
  report.jobs = gate_->jobs();
  report.npu_us = static_cast<uint64_t>(gate_->npu_time()) / 1000;
  report.queue_us = static_cast<uint64_t>(gate_->queue_time()) / 1000;
  report.run_us = static_cast<uint64_t>(gate_->run_time()) / 1000;
  report.memory = account_->held().total();
  return report;
}

void SessionImpl::AppendContexts(std::vector<ContextReport>* reports) const {
  for (const auto& [number, context] : contexts_) {
    ContextReport report;
    report.id = number;
    report.session = id_;
    report.model = context.run->model()->id;
    report.core_mask = context.core_mask;
    report.priority = context.run->traits().priority;
    report.jobs = context.run->jobs();
    const CopiedBytes client = gate_->ClientCopies(number);
    report.copied = context.run->conversions();
    report.copied.to_device_inputs_set = client.to_device_inputs_set;
    report.copied.from_device_outputs_get = client.from_device_outputs_get;
    reports->push_back(report);
  }
}

void SessionImpl::AppendBuffers(std::vector<BufferReport>* reports) const {
  for (const auto& [number, buffer] : buffers_.all()) {
    BufferReport report;
    report.id = number;
    report.session = id_;
    report.size = buffer->size();
    report.heap = buffer->heap();
    report.imported = buffer->imported();
    for (const auto& [unused, context] : contexts_) {
      report.bindings += context.bindings->Count(buffer.get());
    }
    reports->push_back(std::move(report));
  }
}

uint32_t SessionImpl::context_count() const {
  return static_cast<uint32_t>(contexts_.size());
}

uint32_t SessionImpl::buffer_count() const {
  return static_cast<uint32_t>(buffers_.all().size());
}

uint64_t SessionImpl::UnsharedModelBytes() const {
  uint64_t bytes = 0;
  for (const auto& [number, context] : contexts_) {
    const LoadedModel& model = *context.run->model();
    if (!model.info().runnable.ok()) continue;
    bytes += model.info().weight_size;
    // One that only answers queries never asks for internal memory.
    if (!context.run->traits().info_only) bytes += model.internal_size();
  }
  return bytes;
}

// ---- checks -----------------------------------------------------------------

absl::Status SessionImpl::RequireOpen() const {
  if (!ended_) return absl::OkStatus();
  return absl::FailedPreconditionError("the session has ended");
}

absl::Status SessionImpl::CheckNewContext(uint32_t number) const {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  if (parts_->draining) {
    return absl::UnavailableError(
        "the daemon is draining and takes no new contexts");
  }
  if (number == 0) {
    return absl::InvalidArgumentError("a context's number cannot be 0");
  }
  if (contexts_.contains(number) || pending_.contains(number)) {
    return absl::AlreadyExistsError(
        absl::StrCat("context ", number, " exists already: destroy it first"));
  }
  const size_t count = contexts_.size() + pending_.size();
  if (count >= parts_->limits.contexts) {
    return absl::ResourceExhaustedError(absl::StrCat(
        account_->holder(), " holds ", count,
        " contexts, its limit 'contexts' is ", parts_->limits.contexts,
        ": it makes contexts without rknn_destroy? Reuse them, or raise the "
        "limit"));
  }
  return absl::OkStatus();
}

const Context* SessionImpl::FindContext(uint32_t number) const {
  const auto found = contexts_.find(number);
  return found == contexts_.end() ? nullptr : &found->second;
}

}  // namespace rknnd::core
