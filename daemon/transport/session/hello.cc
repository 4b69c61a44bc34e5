// See the header.

#include "daemon/transport/session/hello.h"

#include "base/status/status.h"
#include "daemon/transport/session/translate.h"
#include "proto/wire/features.h"
#include "proto/wire/ring.h"

namespace rknnd::transport {

absl::StatusOr<Greeting> Greet(const wire::Hello& hello,
                               const core::Service& service, uint64_t useless) {
  Greeting greeting;
  RKNND_ASSIGN_OR_RETURN(greeting.protocol,
                         ChooseProtocol(hello, RKNND_VERSION));
  greeting.features = hello.features & wire::kKnownFeatures & ~useless;
  if (!service.wants_syncs()) greeting.features &= ~wire::kFeatureMemorySync;
  return greeting;
}

absl::StatusOr<std::vector<std::byte>> EncodeWelcome(
    const Greeting& greeting, const core::Session& session,
    const core::Service& service, const core::SessionLimits& limits,
    base::Nanoseconds spin) {
  const driver::DeviceInfo& device = service.device_info();
  wire::Welcome message{};
  message.protocol = greeting.protocol;
  message.features = greeting.features;
  wire::SetText(message.daemon_version, RKNND_VERSION);
  message.session = session.id();
  message.ring_entries = wire::kRingEntries;
  message.max_contexts = limits.contexts;
  message.max_buffers = limits.buffers;
  message.max_memory = limits.memory;
  wire::SetText(message.soc, device.soc);
  message.cores = device.cores;
  message.limits = device.limits;
  wire::SetText(message.api_version, device.runtime);
  wire::SetText(message.driver_version, device.driver);
  message.keeps_models = service.keeps_models();
  message.spin_us = static_cast<uint32_t>(spin / base::kMicrosecond);
  return base::ToStatusOr(wire::Encode(message));
}

}  // namespace rknnd::transport
