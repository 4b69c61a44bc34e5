// What a session asks of its daemon: sizes, times, layers. Called on the
// program's threads.

#include <sys/stat.h>

#include "client/session/requests.h"
#include "client/session/target.h"
#include "proto/wire/features.h"

namespace rknnd::client {

using base::Error;
using base::Expected;

namespace {

Expected<wire::PerfDetail> DetailOn(Connection& connection, uint32_t context,
                                    rknnd_v1_PerfKind kind,
                                    bool with_layers = false) {
  wire::PerfDetailRequest request{};
  request.context = context;
  request.kind = kind;
  request.with_layers = with_layers;
  return SendFor<wire::PerfDetail>(connection, wire::Verb::kPerfDetail,
                                   request);
}

Expected<std::string> TextOf(Expected<wire::PerfDetail> detail) {
  if (!detail.ok()) return std::move(detail).error();
  return std::move(detail->text);
}

}  // namespace

Expected<MemorySize> Target::GetMemorySize(uint32_t context) {
  wire::MemorySizeRequest request{};
  request.context = context;
  return link_.Ask([&](Connection& connection) {
    return SendFor<MemorySize>(connection, wire::Verb::kMemorySize, request);
  });
}

Expected<MemoryKinds> Target::GetMemory() {
  const wire::ReportRequest request{rknnd_v1_ReportKind_REPORT_STATUS};
  return link_.Ask([&](Connection& connection) -> Expected<MemoryKinds> {
    const auto report =
        SendFor<wire::Report>(connection, wire::Verb::kReport, request);
    if (!report.ok()) return report.error();
    return report->memory;
  });
}

Expected<std::string> Target::PerfDetail(uint32_t context) {
  return TextOf(link_.Ask([&](Connection& connection) {
    return DetailOn(connection, context, rknnd_v1_PerfKind_PERF_LAYERS);
  }));
}

Expected<wire::PerfDetail> Target::PerfReport(uint32_t context) {
  return link_.Ask([&](Connection& connection) {
    return DetailOn(connection, context, rknnd_v1_PerfKind_PERF_LAYERS, true);
  });
}

Expected<std::string> Target::ModelDetail(uint32_t context) {
  return TextOf(link_.Ask([&](Connection& connection) {
    return DetailOn(connection, context, rknnd_v1_PerfKind_PERF_MODEL);
  }));
}

Expected<std::vector<wire::LayerReport>> Target::Kernels(uint32_t context) {
  using Layers = std::vector<wire::LayerReport>;
  return link_.Ask([&](Connection& connection) -> Expected<Layers> {
    if ((connection.welcome().features & wire::kFeatureKernels) == 0) {
      return Layers();  // rknnd is older than the question
    }
    Expected<wire::PerfDetail> detail =
        DetailOn(connection, context, rknnd_v1_PerfKind_PERF_KERNELS);
    if (!detail.ok()) return std::move(detail).error();
    return std::move(detail->layers);
  });
}

Expected<void> Target::ArmDump(uint32_t context) {
  wire::DumpRequest request{};
  request.context = context;
  return link_.Ask([&](Connection& connection) {
    return Done(Send(connection, wire::Verb::kDump, request));
  });
}

Expected<LayerDump> Target::TakeDump(uint32_t context) {
  return link_.Ask([&](Connection& connection) -> Expected<LayerDump> {
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
      return Error{base::Code::kInternal,
                   "protocol: rknnd sent a dump without fd"};
    }
    // What is read beyond a file's end is a SIGBUS.
    struct stat status = {};
    if (fstat(reply->fds[0].get(), &status) != 0 || status.st_size < 0 ||
        static_cast<uint64_t>(status.st_size) < dump->size) {
      return Error{base::Code::kInternal,
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
