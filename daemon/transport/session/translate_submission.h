// What a client asks of a run, by the ring or over a network, in core's words.
// Called with a copy that the client cannot change any more.

#ifndef DAEMON_TRANSPORT_SESSION_TRANSLATE_SUBMISSION_H_
#define DAEMON_TRANSPORT_SESSION_TRANSLATE_SUBMISSION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/terms/types.h"
#include "proto/wire/ring.h"

namespace rknnd::transport {

// FAILED_PRECONDITION: nothing can be answered to this; its client breaks the
// protocol and is to be disconnected. Thread: any.
absl::Status CheckSlot(const wire::Submission& entry);
// Not OK: what the entry is answered with. Thread: any.
absl::StatusOr<core::JobSubmission> ToJob(const wire::Submission& entry);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_TRANSLATE_SUBMISSION_H_
