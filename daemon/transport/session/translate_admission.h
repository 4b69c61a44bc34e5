// Streams that are planned, between messages and core's words. Called on the
// loop; a message's values were checked by nobody.

#ifndef DAEMON_TRANSPORT_SESSION_TRANSLATE_ADMISSION_H_
#define DAEMON_TRANSPORT_SESSION_TRANSLATE_ADMISSION_H_

#include "absl/status/statusor.h"
#include "daemon/core/terms/types.h"
#include "proto/wire/codec.h"

namespace rknnd::transport {

// INVALID_ARGUMENT for a number that names no priority.
absl::StatusOr<core::AdmissionRequest> ToAdmissionRequest(
    const wire::Admit& message);
wire::Admission ToAdmission(const core::Admission& admission);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_TRANSLATE_ADMISSION_H_
