// See memory_rows.h.

#include "examples/demo/memory_rows.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "examples/demo/figures.h"

namespace rknnd::demo {
namespace {

using Environment = client::Launcher::Environment;

// The holder, and what is held once it is ready.
std::pair<base::ChildProcess, rknnd_memory> StartHolder(
    const client::Launcher& launcher, const std::string& model, int streams,
    int contexts, const std::string& duplicates,
    const Environment& environment) {
  base::ChildProcess holder = launcher.Start(
      {"rknnd-demo", "--hold", duplicates, "--streams", std::to_string(streams),
       "--contexts", std::to_string(contexts), "--model", model},
      environment);
  const auto memory =
      ToMemory(launcher.NextLine(holder, "a holder of contexts", kPatience));
  if (!memory) {
    throw std::runtime_error("a holder of contexts gave no figures");
  }
  return {std::move(holder), *memory};
}

// Another model to all who go by its bytes, with the same network in it: one
// entry more in the list at the end of an ONNX file.
std::string MakeVariant(const std::string& model, int number,
                        const std::string& folder) {
  std::ifstream file(model, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file || bytes.empty()) {
    throw std::runtime_error("cannot read '" + model + "'");
  }
  const auto field = [](char tag, const std::string& value) {
    return std::string{tag, static_cast<char>(value.size())} + value;
  };
  constexpr char kMetadata = 14 << 3 | 2, kKey = 1 << 3 | 2,
                 kValue = 2 << 3 | 2;
  bytes += field(kMetadata, field(kKey, "demo.stream") +
                                field(kValue, std::to_string(number)));
  const std::string path =
      folder + "/stream-" + std::to_string(number) + ".onnx";
  std::ofstream variant(path, std::ios::binary);
  variant << bytes;
  variant.close();
  if (!variant) throw std::runtime_error("cannot write '" + path + "'");
  return path;
}

rknnd_memory MeasureModelsOfTheirOwn(const client::Launcher& launcher,
                                     const std::string& model, int streams,
                                     int contexts) {
  const base::TemporaryFolder folder = client::MakeTemporaryFolder();
  const client::PrivateDaemon daemon(launcher);
  std::vector<base::ChildProcess> holders;
  rknnd_memory memory = {};
  for (int i = 0; i < streams; ++i) {
    // The last one sees what all hold.
    auto [holder, held] =
        StartHolder(launcher, MakeVariant(model, i, folder.path()), 1, contexts,
                    "stream", {{"RKNND_TARGET", daemon.target()}});
    holders.push_back(std::move(holder));
    memory = held;
  }
  return memory;
}

}  // namespace

std::vector<MemoryRow> MeasureRows(const client::Launcher& launcher,
                                   const std::string& model, int streams,
                                   int contexts) {
  const Environment vendor = {{"RKNND_TARGET", "local:"},
                              {"RKNND_SHARING", "vendor"}};
  const auto alone = [&](const std::string& duplicates) {
    return StartHolder(launcher, model, streams, contexts, duplicates, vendor)
        .second;
  };
  return {
      {"no_reuse", "no reuse", alone("none")},
      {"dup_per_stream", "duplicates within each stream", alone("stream")},
      {"dup_all", "all duplicates of one", alone("all")},
      {"four_models", "rknnd, a model for each stream",
       MeasureModelsOfTheirOwn(launcher, model, streams, contexts)},
  };
}

void PrintRows(const std::vector<MemoryRow>& rows, int streams, int contexts) {
  constexpr double kMiB = 1024 * 1024;
  const auto mib = [](uint64_t bytes) {
    return static_cast<double>(bytes) / kMiB;
  };
  std::printf("\n  NPU memory of %d x %d contexts, MiB  %8s %9s %9s %7s\n",
              streams, contexts, "weights", "internal", "together", "of all");
  for (const MemoryRow& row : rows) {
    std::printf("  %-35s %8.2f %9.2f %9.2f %6.1f%%\n", row.name.c_str(),
                mib(row.memory.weight), mib(row.memory.internal),
                mib(row.npu_bytes()),
                100.0 * static_cast<double>(row.npu_bytes()) /
                    static_cast<double>(rows.front().npu_bytes()));
  }
}

}  // namespace rknnd::demo
