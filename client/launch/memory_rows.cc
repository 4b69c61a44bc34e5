// See memory_rows.h.

#include "client/launch/memory_rows.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace rknnd::client {
namespace {

using Environment = Launcher::Environment;

// The slowest step of a child is the load of twelve detectors on a small board.
constexpr base::Nanoseconds kPatience = 60 * base::kSecond;

// A program without a daemon, that shares what the vendor's library shares.
const Environment kVendor = {{"RKNND_TARGET", "local:"},
                             {"RKNND_SHARING", "vendor"}};

uint64_t ProportionalBytes(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/smaps_rollup";
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    unsigned long long kib = 0;  // NOLINT(google-runtime-int): sscanf's
    if (std::sscanf(line.c_str(), "Pss: %llu kB", &kib) == 1) {
      return uint64_t{kib} * 1024;
    }
  }
  throw std::runtime_error("no Pss in '" + path + "'");
}

struct Holder {
  base::ChildProcess process;
  rknnd_memory memory{};  // of the board, once this one has its contexts
};

Holder StartHolder(const Launcher& launcher, const std::string& model,
                   int streams, int contexts, const std::string& duplicates,
                   const Environment& environment) {
  base::ChildProcess process =
      launcher.Start({"rknnd-holder", "--duplicates", duplicates, "--streams",
                      std::to_string(streams), "--contexts",
                      std::to_string(contexts), "--model", model},
                     environment);
  const auto memory =
      ToMemory(launcher.NextLine(process, "a holder of contexts", kPatience));
  if (!memory) {
    throw std::runtime_error("a holder of contexts gave no figures");
  }
  return {std::move(process), *memory};
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

// A daemon and a process for each stream, which has models[its number].
void MeasureWithDaemon(const Launcher& launcher,
                       const std::vector<std::string>& models, int contexts,
                       const std::string& duplicates, MemoryRow& row) {
  const PrivateDaemon daemon(launcher);
  std::vector<Holder> holders;
  for (const std::string& model : models) {
    holders.push_back(StartHolder(launcher, model, 1, contexts, duplicates,
                                  {{"RKNND_TARGET", daemon.target()}}));
  }
  // The last one sees what all hold.
  row.memory = holders.back().memory;
  row.process_bytes = ProportionalBytes(daemon.pid());
  for (const Holder& holder : holders) {
    row.process_bytes += ProportionalBytes(holder.process.pid());
  }
}

}  // namespace

std::vector<MemoryRow> MeasureRows(const Launcher& launcher,
                                   const std::string& model, int streams,
                                   int contexts) {
  const auto alone = [&](const char* key, const char* name,
                         const std::string& duplicates) {
    const Holder holder =
        StartHolder(launcher, model, streams, contexts, duplicates, kVendor);
    return MemoryRow{key, name, holder.memory,
                     ProportionalBytes(holder.process.pid())};
  };
  std::vector<MemoryRow> rows = {
      alone("no_reuse", "no reuse", "none"),
      alone("dup_per_stream", "duplicates within each stream", "stream"),
      alone("dup_all", "all duplicates of one", "all")};

  const base::TemporaryFolder folder = MakeTemporaryFolder();
  std::vector<std::string> models;
  for (int i = 0; i < streams; ++i) {
    models.push_back(MakeVariant(model, i, folder.path()));
  }
  rows.push_back({"four_models", "rknnd, a model for each stream"});
  MeasureWithDaemon(launcher, models, contexts, "stream", rows.back());
  return rows;
}

MemoryRow MeasureProcessesRow(const Launcher& launcher,
                              const std::string& model, int streams,
                              int contexts) {
  MemoryRow row = {"no_reuse_processes",
                   "no reuse, " + std::to_string(streams) + " processes"};
  std::vector<Holder> holders;
  for (int i = 0; i < streams; ++i) {
    holders.push_back(
        StartHolder(launcher, model, 1, contexts, "none", kVendor));
    // Each knows of its own only.
    row.memory.weight += holders.back().memory.weight;
    row.memory.internal += holders.back().memory.internal;
    row.memory.io += holders.back().memory.io;
  }
  for (const Holder& holder : holders) {
    row.process_bytes += ProportionalBytes(holder.process.pid());
  }
  return row;
}

MemoryRow MeasureSharedRow(const Launcher& launcher, const std::string& model,
                           int streams, int contexts) {
  MemoryRow row = {
      "rknnd", "rknnd, " + std::to_string(streams) + " processes, one model"};
  MeasureWithDaemon(
      launcher, std::vector<std::string>(static_cast<size_t>(streams), model),
      contexts, "none", row);
  return row;
}

nlohmann::json ToJson(const rknnd_memory& memory) {
  return {{"weight", memory.weight},
          {"internal", memory.internal},
          {"io", memory.io}};
}

std::optional<rknnd_memory> ToMemory(const std::string& line) {
  const auto document = nlohmann::json::parse(line, nullptr, false);
  try {
    rknnd_memory memory = {};
    document.at("weight").get_to(memory.weight);
    document.at("internal").get_to(memory.internal);
    document.at("io").get_to(memory.io);
    return memory;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace rknnd::client
