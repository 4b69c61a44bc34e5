// Streams of frames that a session's program plans, and what of the NPU's time
// is kept for them. Called on the loop with a client's numbers.

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/core/accounts/share.h"
#include "daemon/core/scheduling/admission.h"
#include "daemon/core/sessions/session.h"

namespace rknnd::core {

absl::StatusOr<Admission> Session::Admit(const AdmissionRequest& request) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  if (request.streams < 1 || request.streams > kMostStreams) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.streams, " streams were asked for, 1 to ",
                     kMostStreams, " are possible at once"));
  }
  if (request.reserve && (request.streams != 1 || request.context == 0)) {
    return absl::InvalidArgumentError(
        "room is kept for the frames of one context: name it, and one stream");
  }
  Stream asked;
  asked.priority = UnderCeiling(request.priority, share_->policy().ceiling);
  asked.rate_mhz = request.rate_mhz;
  asked.count = request.streams;
  std::shared_ptr<const LoadedModel> model;
  uint32_t row = 0;
  uint32_t mask = request.core_mask;
  Context* found = nullptr;
  if (request.context != 0) {
    RKNND_ASSIGN_OR_RETURN(found, contexts_.Get(request.context));
    const Context& context = *found;
    model = context.run->model();
    row = RowOf(context);
    if (mask == 0) mask = context.core_mask;
    // No more than its jobs will have.
    asked.priority =
        UnderCeiling(asked.priority, context.run->traits().priority);
    if (request.reserve && context.run->traits().info_only) {
      return absl::FailedPreconditionError(absl::StrCat(
          "context ", request.context,
          " was made with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY and will not run: "
          "no room is kept for it"));
    }
  } else {
    model = parts_->models->Resident(request.model);
    if (model == nullptr) {
      return absl::NotFoundError(
          "that model is not loaded: make a context of it first");
    }
    row = model->info().largest;
  }
  auto cores = ResolveCoreMask(mask, parts_->device->info());
  if (!cores.ok()) return cores.status();
  // A context's own may be of a time when more was allowed.
  if (request.context == 0 || request.core_mask != 0) {
    RKNND_RETURN_IF_ERROR(rights_.Check(*cores, mask));
    if ((cores->cores & ~rights_.cores()) != 0) {
      cores->cores = tenant_->CoreInTurn(rights_.cores());
    }
  }
  asked.model = model->name;
  asked.cores = *cores;

  // What never ran here under this name may have run for others.
  std::shared_ptr<const LoadedModel> runs = parts_->models->Resident(model->id);
  const RunEstimate estimate =
      EstimateRun(runs == nullptr ? *model : *runs, row, asked.cores);
  asked.run = estimate.run;
  Admission answer;
  if (asked.run > 0) {
    answer = PlanStream(parts_->sessions->StreamsBut(id_, request.context),
                        asked, parts_->board());
    answer.measured = estimate.measured;
  } else {
    answer.reason = absl::StrCat(
        "model '", model->name,
        "' has never run here, and no timing model tells how long it takes: "
        "run it once, and ask again");
  }
  if (found == nullptr) return answer;
  if (request.rate_mhz == 0) {
    found->stream.reset();
  } else if (request.reserve && answer.fits) {
    found->stream = {request.rate_mhz, asked.priority, request.core_mask};
  }
  return answer;
}

}  // namespace rknnd::core
