#include "daemon/transport/session/translate_admission.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace rknnd::transport {

absl::StatusOr<core::AdmissionRequest> ToAdmissionRequest(
    const wire::Admit& message) {
  if (message.priority > static_cast<uint32_t>(core::Priority::kLow)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "priority '", message.priority, "' of a stream of context '",
        message.context, "' is no priority"));
  }
  core::AdmissionRequest request;
  request.context = message.context;
  std::copy(std::begin(message.model), std::end(message.model),
            request.model.begin());
  request.rate_mhz = message.rate_mhz;
  request.priority = static_cast<core::Priority>(message.priority);
  request.core_mask = message.core_mask;
  request.reserve = message.reserve;
  request.streams = message.streams == 0 ? 1 : message.streams;
  return request;
}

wire::Admission ToAdmission(const core::Admission& admission) {
  wire::Admission out{};
  out.fits = admission.fits;
  out.rate_mhz = admission.rate_mhz;
  out.run_ns = static_cast<uint64_t>(admission.run);
  out.measured = admission.measured;
  out.load_ppm = admission.load_ppm;
  wire::SetText(out.reason, admission.reason);
  return out;
}

}  // namespace rknnd::transport
