#include "client/ctl/models/perf.h"

#include <gtest/gtest.h>

#include "client/ctl/models/model_memory.h"

namespace rknnd::client {
namespace {

std::vector<rknnd_layer> Layers() {
  rknnd_layer conv{};
  conv.type = "ConvRelu";
  conv.name = "Conv:c1";
  conv.data_type = "INT8";
  conv.target = "NPU";
  conv.input_shape = "(1,3,8,8)";
  conv.output_shape = "(1,8,8,8)";
  conv.ddr_cycles = 10;
  conv.npu_cycles = 20;
  conv.time_ns = 3000;
  conv.rw_bytes = 2048;
  conv.tasks = 1;
  conv.cores = 2;
  conv.work_load[0] = 100;
  rknnd_layer output = conv;
  output.type = "OutputOperator";
  output.target = "CPU";
  output.time_ns = 1000;
  return {conv, conv, output};
}

TEST(PerfTest, LayersHaveTheTablesColumns) {
  const std::vector<rknnd_layer> layers = Layers();
  std::vector<rknnd_kernel> kernels(layers.size());
  for (rknnd_kernel& kernel : kernels) kernel.kernel = "bytes avx2";
  kernels[1].is_slow = 1;
  const Json row = LayersJson(layers, kernels)[1];
  EXPECT_EQ(row, Json::parse(R"json({"id": 2, "op_type": "ConvRelu",
      "data_type": "INT8", "target": "NPU", "input_shape": "(1,3,8,8)",
      "output_shape": "(1,8,8,8)", "ddr_cycles": 10, "npu_cycles": 20,
      "max_cycles": 20, "time_us": 3.0, "mac_usage": [0.0, 0.0],
      "work_load": [100.0, 0.0], "task_number": 1, "rw_kb": 2,
      "full_name": "Conv:c1", "kernel": "bytes avx2",
      "is_slow": true})json"));
}

TEST(PerfTest, KernelsOfOtherLayersAreLeftOut) {
  const std::vector<rknnd_kernel> one(1);
  const Json rows = LayersJson(Layers(), one);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["kernel"], "");
  EXPECT_EQ(rows[0]["is_slow"], false);
}

TEST(PerfTest, RankingIsByTime) {
  const Json ranking = RankingJson(Layers());
  ASSERT_EQ(ranking.size(), 2U);
  EXPECT_EQ(ranking[0]["op_type"], "ConvRelu");
  EXPECT_EQ(ranking[0]["call_number"], 2);
  EXPECT_EQ(ranking[0]["npu_time_us"], 6.0);
  EXPECT_EQ(ranking[1]["cpu_time_us"], 1.0);
  EXPECT_NEAR(ranking[0]["time_ratio"].get<double>(), 100.0 * 6 / 7, 1e-9);
}

TEST(PerfTest, MemoryIsInTheGuidesWords) {
  const Output output = ModelMemoryOutput({4096, 1024, 512, 5000});
  EXPECT_EQ(output.text,
            "Memory Profile Info Dump\n"
            "NPU model memory detail(bytes):\n"
            "    Weight Memory: 4.0 KiB\n"
            "    Internal Tensor Memory: 1.0 KiB\n"
            "    Other Memory: 512 B\n"
            "    Total Memory: 5.5 KiB\n\n"
            "INFO: When evaluating memory usage, we need consider the size of "
            "model, current model size is: 4.9 KiB\n");
  EXPECT_EQ(output.json["total"], 5632);
}

}  // namespace
}  // namespace rknnd::client
