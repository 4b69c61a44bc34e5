// The calls of rknnd.v1.Debug that are streams: a model on its way in, the
// tensors of a run and the daemon's log on their way out.

#ifndef DAEMON_TRANSPORT_GRPC_DEBUG_DEBUG_STREAMS_H_
#define DAEMON_TRANSPORT_GRPC_DEBUG_DEBUG_STREAMS_H_

#include <memory>

namespace grpc {
class CallbackServerContext;
template <class Request>
class ServerReadReactor;
template <class Reply>
class ServerWriteReactor;
}  // namespace grpc

namespace rknnd::v1 {
class DebugDumpReply;
class DebugDumpRequest;
class DebugLogLine;
class DebugLogsRequest;
class DebugPushModelReply;
class DebugPushModelRequest;
}  // namespace rknnd::v1

namespace rknnd::transport {

class DebugCalls;

// As gRPC calls the methods; what is returned is its until it is done.
// Thread: any.
grpc::ServerReadReactor<v1::DebugPushModelRequest>* StartPushModel(
    const std::shared_ptr<DebugCalls>& calls,
    grpc::CallbackServerContext* context, v1::DebugPushModelReply* reply);
grpc::ServerWriteReactor<v1::DebugDumpReply>* StartDump(
    const std::shared_ptr<DebugCalls>& calls,
    grpc::CallbackServerContext* context, const v1::DebugDumpRequest* request);
grpc::ServerWriteReactor<v1::DebugLogLine>* StartLogs(
    const std::shared_ptr<DebugCalls>& calls,
    grpc::CallbackServerContext* context, const v1::DebugLogsRequest* request);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_DEBUG_DEBUG_STREAMS_H_
