// What a session asks of its daemon: sizes, times, layers. Called on the
// program's threads.

#include <sys/stat.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/session/requests.h"
#include "proto/wire/features.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

Expected<MemorySize> SessionTarget::GetMemorySize(uint32_t context) {
  return Ask([&](Connection& connection) -> Expected<MemorySize> {
    wire::MemorySizeRequest request{};
    request.context = context;
    Expected<wire::Frame> reply =
        Send(connection, wire::Verb::kMemorySize, request);
    if (!reply.ok()) return std::move(reply).error();
    return wire::Decode<MemorySize>(reply->body);
  });
}

Expected<MemoryKinds> SessionTarget::GetMemory() {
  return Ask([&](Connection& connection) -> Expected<MemoryKinds> {
    const wire::ReportRequest request{rknnd_v1_ReportKind_REPORT_STATUS};
    Expected<wire::Frame> reply =
        Send(connection, wire::Verb::kReport, request);
    if (!reply.ok()) return std::move(reply).error();
    Expected<wire::Report> report = wire::Decode<wire::Report>(reply->body);
    if (!report.ok()) return std::move(report).error();
    return report->memory;
  });
}

Expected<wire::PerfDetail> SessionTarget::AskDetail(
    const wire::PerfDetailRequest& request) {
  return Ask([&](Connection& connection) -> Expected<wire::PerfDetail> {
    Expected<wire::Frame> reply =
        Send(connection, wire::Verb::kPerfDetail, request);
    if (!reply.ok()) return std::move(reply).error();
    return wire::Decode<wire::PerfDetail>(reply->body);
  });
}

Expected<std::string> SessionTarget::PerfDetail(uint32_t context) {
  wire::PerfDetailRequest request{};
  request.context = context;
  Expected<wire::PerfDetail> detail = AskDetail(request);
  if (!detail.ok()) return std::move(detail).error();
  return std::move(detail->text);
}

Expected<wire::PerfDetail> SessionTarget::PerfReport(uint32_t context) {
  wire::PerfDetailRequest request{};
  request.context = context;
  request.with_layers = true;
  return AskDetail(request);
}

Expected<std::vector<wire::LayerReport>> SessionTarget::Kernels(
    uint32_t context) {
  using Layers = std::vector<wire::LayerReport>;
  return Ask([&](Connection& connection) -> Expected<Layers> {
    if ((connection.welcome().features & wire::kFeatureKernels) == 0) {
      return Layers();  // rknnd is older than the question
    }
    wire::PerfDetailRequest request{};
    request.context = context;
    request.kind = rknnd_v1_PerfKind_PERF_KERNELS;
    Expected<wire::Frame> reply =
        Send(connection, wire::Verb::kPerfDetail, request);
    if (!reply.ok()) return std::move(reply).error();
    Expected<wire::PerfDetail> detail =
        wire::Decode<wire::PerfDetail>(reply->body);
    if (!detail.ok()) return std::move(detail).error();
    return std::move(detail->layers);
  });
}

Expected<std::string> SessionTarget::ModelDetail(uint32_t context) {
  wire::PerfDetailRequest request{};
  request.context = context;
  request.kind = rknnd_v1_PerfKind_PERF_MODEL;
  Expected<wire::PerfDetail> detail = AskDetail(request);
  if (!detail.ok()) return std::move(detail).error();
  return std::move(detail->text);
}

Expected<wire::Admission> SessionTarget::Admit(const wire::Admit& request) {
  return Ask([&](Connection& connection) -> Expected<wire::Admission> {
    Expected<wire::Frame> reply = Send(connection, wire::Verb::kAdmit, request);
    if (!reply.ok()) return std::move(reply).error();
    Expected<wire::Admission> answer =
        wire::Decode<wire::Admission>(reply->body);
    const auto record = contexts_.find(request.context);
    if (!answer.ok() || record == contexts_.end()) return answer;
    if (request.rate_mhz == 0) {
      record->second.stream.reset();
    } else if (request.reserve && answer->fits) {
      record->second.stream = request;
    }
    return answer;
  });
}

Expected<void> SessionTarget::ArmDump(uint32_t context) {
  return Ask([&](Connection& connection) -> Expected<void> {
    wire::DumpRequest request{};
    request.context = context;
    return Done(Send(connection, wire::Verb::kDump, request));
  });
}

Expected<LayerDump> SessionTarget::TakeDump(uint32_t context) {
  return Ask([&](Connection& connection) -> Expected<LayerDump> {
    if (Expected<void> room = HasRoomForDescriptor(); !room.ok()) {
      return std::move(room).error();
    }
    wire::DumpRequest request{};
    request.context = context;
    request.take = true;
    Expected<wire::Frame> reply = Send(connection, wire::Verb::kDump, request);
    if (!reply.ok()) return std::move(reply).error();
    Expected<wire::DumpReply> dump = wire::Decode<wire::DumpReply>(reply->body);
    if (!dump.ok()) return std::move(dump).error();
    LayerDump taken;
    taken.tensors = std::move(dump->tensors);
    if (dump->size == 0) return taken;
    if (reply->fds.empty()) {
      return Error{Code::kInternal, "protocol: rknnd sent a dump without fd"};
    }
    // What is read beyond a file's end is a SIGBUS.
    struct stat status = {};
    if (fstat(reply->fds[0].get(), &status) != 0 || status.st_size < 0 ||
        static_cast<uint64_t>(status.st_size) < dump->size) {
      return Error{Code::kInternal,
                   "protocol: rknnd sent a dump shorter than it says"};
    }
    Expected<base::Mapping> bytes = base::Mapping::OfFd(
        reply->fds[0].get(), 0, static_cast<size_t>(dump->size),
        base::Mapping::Access::kRead);
    if (!bytes.ok()) return std::move(bytes).error();
    taken.bytes = *std::move(bytes);
    return taken;
  });
}

}  // namespace rknnd::client
