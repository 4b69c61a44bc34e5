// Between the words of daemon/core and the messages of the session socket.
// No state, no decisions but what does not fit a message.

#ifndef DAEMON_TRANSPORT_SESSION_TRANSLATE_H_
#define DAEMON_TRANSPORT_SESSION_TRANSLATE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/service.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"
#include "driver/fault.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"

namespace rknnd::transport {

// For log lines: "CreateContext", or "verb 4711".
std::string VerbName(wire::Verb verb);

// What a client may know of a model: its largest shapes, and the list of all.
// Inputs are those of one row, so that they can be asked for as they are; each
// output is the largest it can be. size_with_stride does for every row.
absl::StatusOr<wire::ContextInfo> ToContextInfo(const driver::ModelInfo& model);
// The same of one row, which exists, without the list.
wire::ContextInfo ToContextInfo(const core::ShapeChoice& choice);

// INVALID_ARGUMENT for numbers that name no layout.
absl::StatusOr<std::vector<core::InputShape>> ToInputShapes(
    const wire::SetShapes& message);

// INVALID_ARGUMENT for numbers that name no type or layout.
// Numbers of format and fit stay as they are: the model refuses what it does
// not know.
absl::StatusOr<core::FrameRequest> ToFrameRequest(
    const wire::BindFrame& message);
absl::StatusOr<core::BindRequest> ToBindRequest(const wire::Bind& message);
// INVALID_ARGUMENT where a number is beyond what core counts in.
absl::StatusOr<core::QueueRequest> ToQueueRequest(
    const wire::SetQueue& message);

wire::SessionReport ToSessionReport(const core::SessionReport& report);

// The parts of `kind` (rknnd_v1_ReportKind), INVALID_ARGUMENT for others.
absl::StatusOr<wire::Report> MakeReport(const core::Service& service,
                                        uint32_t kind);

// Words only: what they mean is checked where faults are set.
absl::StatusOr<driver::Fault> ToFault(const wire::Fault& message);
wire::FaultReport ToFaultReport(const driver::FaultReport& report);

// The newest protocol both ends speak, or whose side is to be updated.
absl::StatusOr<uint32_t> ChooseProtocol(const wire::Hello& hello,
                                        std::string_view daemon_version);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_TRANSLATE_H_
