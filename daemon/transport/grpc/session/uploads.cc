// See the header.

#include "daemon/transport/grpc/session/uploads.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"
#include "daemon/transport/session/translate.h"

namespace rknnd::transport {
namespace {

std::string NameOf(const RemoteFrame& request) {
  return absl::StrCat("'", VerbName(request.frame.verb), "' (request ",
                      request.frame.request, ")");
}

size_t Models(const RemoteFrame& request) {
  return request.attachments.size() - (request.body_attached ? 1 : 0);
}

}  // namespace

absl::Status Uploads::Check(const RemoteFrame& request) const {
  if (request.body_attached && request.attachments.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(request), " has no attachment to be its body"));
  }
  const size_t models = Models(request);
  const size_t most = request.frame.verb == wire::Verb::kUploadModel ? 2 : 0;
  if (models > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        NameOf(request), " came with ", models, " files, not ", most));
  }
  return absl::OkStatus();
}

Uploads::Step Uploads::Begin(RemoteFrame request, base::Nanoseconds now) {
  Step step;
  step.violation = Check(request);
  if (!step.violation.ok()) return step;
  base::MutexLock lock(mutex_);
  if (coming_.contains(request.frame.request)) {
    step.violation = absl::InvalidArgumentError(absl::StrCat(
        NameOf(request), " has the number of one whose chunks are coming"));
    return step;
  }
  if (request.attachments.empty()) {
    step.whole = Whole{std::move(request.frame), nullptr};
    return step;
  }
  for (size_t i = 0; i < request.attachments.size(); ++i) {
    const uint64_t size = request.attachments[i];
    const uint64_t most =
        i < Models(request) ? model_bytes_ : wire::kMaxMemfdBody;
    if (size <= most) continue;
    step.refused = Refuse(
        request,
        absl::ResourceExhaustedError(absl::StrCat(
            NameOf(request), " has ", size, " bytes attached, above ", most,
            i < Models(request) ? " (limit 'model_bytes')"
                                : ", which no body has")));
    return step;
  }
  if (coming_.size() == kMost) {
    step.refused = Refuse(request, absl::ResourceExhaustedError(absl::StrCat(
                                       NameOf(request), ": ", kMost,
                                       " uploads of this session are coming "
                                       "already, send them one by one")));
    return step;
  }
  Upload upload;
  upload.request = std::move(request);
  upload.last = now;
  upload.charge = std::make_shared<TransferCharge>(budget_);
  const absl::Status begun = Advance(upload);
  if (!begun.ok()) {
    step.refused = Refuse(upload.request, begun);
  } else if (upload.at == upload.request.attachments.size()) {
    step.whole = Whole{std::move(upload.request.frame), upload.charge};
  } else {
    coming_.emplace(upload.request.frame.request, std::move(upload));
  }
  return step;
}

Uploads::Step Uploads::Append(const RemoteChunk& chunk, base::Nanoseconds now) {
  Step step;
  base::MutexLock lock(mutex_);
  const auto found = coming_.find(chunk.request);
  if (found == coming_.end()) {
    if (chunk.request == 0 || std::find(refused_.begin(), refused_.end(),
                                        chunk.request) == refused_.end()) {
      step.violation = absl::InvalidArgumentError(absl::StrCat(
          "a chunk of request ", chunk.request, ", which has none to come"));
    }
    return step;
  }
  Upload& upload = found->second;
  upload.last = now;
  const uint64_t missing =
      upload.request.attachments[upload.at] - upload.arrived;
  if (chunk.size > missing || chunk.size == 0) {
    step.violation = absl::InvalidArgumentError(
        absl::StrCat(NameOf(upload.request), ": a chunk of ", chunk.size,
                     " bytes where ", missing, " are to come"));
    return step;
  }
  absl::Status kept = Keep(upload, chunk);
  if (kept.ok()) kept = Advance(upload);
  if (!kept.ok()) {
    step.refused = Refuse(upload.request, std::move(kept));
    coming_.erase(found);
  } else if (upload.at == upload.request.attachments.size()) {
    step.whole = Whole{std::move(upload.request.frame), upload.charge};
    coming_.erase(found);
  }
  return step;
}

std::vector<Uploads::Refused> Uploads::TakeStalled(base::Nanoseconds when) {
  std::vector<Refused> stalled;
  base::MutexLock lock(mutex_);
  for (auto one = coming_.begin(); one != coming_.end();) {
    const Upload& upload = one->second;
    if (upload.last >= when) {
      ++one;
      continue;
    }
    stalled.push_back(
        Refuse(upload.request,
               absl::DeadlineExceededError(absl::StrCat(
                   NameOf(upload.request), " has stopped at byte ",
                   upload.arrived, " of attachment ", upload.at + 1))));
    one = coming_.erase(one);
  }
  return stalled;
}

void Uploads::Clear() {
  Coming cleared;
  base::MutexLock lock(mutex_);
  cleared.swap(coming_);
}

Uploads::Refused Uploads::Refuse(const RemoteFrame& request, absl::Status why) {
  refused_[next_refused_] = request.frame.request;
  next_refused_ = (next_refused_ + 1) % refused_.size();
  return {request.frame.verb, request.frame.request, std::move(why)};
}

bool Uploads::IsBody(const Upload& upload) {
  return upload.request.body_attached &&
         upload.at + 1 == upload.request.attachments.size();
}

absl::Status Uploads::Advance(Upload& upload) {
  auto& fds = upload.request.frame.fds;
  while (upload.at < upload.request.attachments.size()) {
    if (!IsBody(upload) && fds.size() == upload.at) {
      RKNND_ASSIGN_OR_RETURN(
          base::UniqueFd fd,
          base::ToStatusOr(base::MakeGrowingMemfd("rknnd-model")));
      fds.push_back(std::move(fd));
    }
    if (upload.arrived < upload.request.attachments[upload.at]) break;
    if (!IsBody(upload)) {
      RKNND_RETURN_IF_ERROR(base::ToStatus(base::SealMemfd(fds.back().get())));
    }
    ++upload.at;
    upload.arrived = 0;
  }
  return absl::OkStatus();
}

absl::Status Uploads::Keep(Upload& upload, const RemoteChunk& chunk) {
  RKNND_RETURN_IF_ERROR(upload.charge->Grow(chunk.size));
  upload.arrived += chunk.size;
  wire::Frame& frame = upload.request.frame;
  for (const auto& piece : chunk.data) {
    if (IsBody(upload)) {
      frame.body.insert(frame.body.end(), piece.begin(), piece.end());
    } else {
      RKNND_RETURN_IF_ERROR(
          base::ToStatus(base::AppendToMemfd(frame.fds.back().get(), piece)));
    }
  }
  return absl::OkStatus();
}

}  // namespace rknnd::transport
