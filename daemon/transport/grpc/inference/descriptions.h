// Models and what they cost, as the protocol's messages tell of them.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_DESCRIPTIONS_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_DESCRIPTIONS_H_

#include <string>
#include <vector>

#include "daemon/transport/grpc/inference/model_view.h"
#include "daemon/transport/grpc/inference/repository_table.h"
#include "daemon/transport/grpc/inference/statistics.h"

namespace inference {
class ModelConfig;
class ModelMetadataResponse;
class ModelStatistics;
class ServerMetadataResponse;
}  // namespace inference

namespace rknnd::transport {

// `soc`: of the device that runs it.
void DescribeModel(const ServedModel& model, const ModelView& view,
                   const std::string& soc,
                   inference::ModelMetadataResponse* metadata);
void DescribeConfig(const ServedModel& model, const ModelView& view,
                    inference::ModelConfig* config);
void DescribeStatistics(const Statistics::Entry& entry,
                        inference::ModelStatistics* statistics);
void DescribeServer(const std::string& version,
                    inference::ServerMetadataResponse* server);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_DESCRIPTIONS_H_
