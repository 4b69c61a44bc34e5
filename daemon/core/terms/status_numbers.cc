#include "daemon/core/terms/status_numbers.h"

#include <string_view>

namespace rknnd::core {
namespace {

template <auto kField>
uint64_t Field(const StatusReport& status) {
  return status.*kField;
}

constexpr StatusNumber kNumbers[] = {
    {"sessions", "Connected programs.", Field<&StatusReport::sessions>},
    {"models", "Loaded models.", Field<&StatusReport::models>},
    {"contexts", "Contexts of all sessions.", Field<&StatusReport::contexts>},
    {"buffers", "Buffers of all sessions.", Field<&StatusReport::buffers>},
    {"foreign_npu_users", "Programs that have the NPU open beside the daemon.",
     [](const StatusReport& status) {
       return uint64_t{status.foreign_users.size()};
     }},
    {"jobs_queued", "Jobs that wait for a core.",
     Field<&StatusReport::jobs_queued>},
    {"jobs_running", "Jobs on a core.", Field<&StatusReport::jobs_running>},
    {"jobs_done_total", "Jobs that succeeded.",
     Field<&StatusReport::jobs_done>},
    {"frames_dropped_total", "Frames dropped for newer ones or for their age.",
     Field<&StatusReport::jobs_dropped>},
    {"jobs_shared_total", "Jobs answered by another session's equal run.",
     Field<&StatusReport::jobs_shared>},
    {"jobs_hung_total", "Jobs that were on a core for longer than allowed.",
     Field<&StatusReport::jobs_hung>},
    {"device_resets_total", "Resets of the NPU.", Field<&StatusReport::resets>},
    {"worker_deaths_total",
     "Processes that host the vendor's library and ended under a model.",
     Field<&StatusReport::worker_deaths>},
    {"sram_bytes", "SRAM of the NPU.",
     [](const StatusReport& status) { return status.device.sram_total; }},
    {"sram_free_bytes", "SRAM that no window has.",
     Field<&StatusReport::sram_free>},
};

}  // namespace

bool StatusNumber::is_counter() const {
  return std::string_view(name).ends_with("_total");
}

std::span<const StatusNumber> StatusNumbers() { return kNumbers; }

}  // namespace rknnd::core
