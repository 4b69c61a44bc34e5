// Networks of well-known structure with random weights, for the benchmark: what
// the time depends on is the structure.

#ifndef BENCH_PEERS_NETWORKS_NETWORKS_H_
#define BENCH_PEERS_NETWORKS_NETWORKS_H_

#include <string>
#include <vector>

#include "bench/peers/model_set.h"
#include "bench/peers/networks/network_builder.h"

namespace rknnd::bench {

// --- transformers.cc ---
void BuildVitB16(NetworkBuilder& b);
void BuildConvNextTiny(NetworkBuilder& b);
void BuildBertBlocks(NetworkBuilder& b);
void BuildSwinStages(NetworkBuilder& b);
// --- sequence_networks.cc ---
void BuildLstm(NetworkBuilder& b);
void BuildGru(NetworkBuilder& b);
void BuildTcn(NetworkBuilder& b);
// --- float_networks.cc ---
void BuildUNet(NetworkBuilder& b);
void BuildBasicPitch(NetworkBuilder& b);
void BuildEfficientNetB0(NetworkBuilder& b);
void BuildMobileNetV3(NetworkBuilder& b);
// --- quantized_networks.cc, of floats too ---
void BuildMobileNetV2(NetworkBuilder& b);
void BuildResNet18(NetworkBuilder& b);
void BuildYoloV8n(NetworkBuilder& b);

// All of them whose names match, with inputs. Those whose files are not in
// `folder` are written. Throws where that fails.
std::vector<ModelSet> MakeNetworks(const std::string& folder,
                                   const std::string& names);

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_NETWORKS_NETWORKS_H_
