// See comparison.h.

#include "bench/peers/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/common/figures.h"

namespace rknnd::bench {
namespace {

std::optional<double> MeanOf(const std::vector<Row>& rows, bool is_int8) {
  double logarithms = 0;
  int count = 0;
  for (const Row& row : rows) {
    if (!row.error.empty() || row.is_int8 != is_int8) continue;
    logarithms += std::log(row.ratio());
    ++count;
  }
  if (count == 0) return std::nullopt;
  return std::exp(logarithms / count);
}

std::string RatioText(const std::optional<double>& ratio) {
  return ratio.has_value() ? Text("%.2f", *ratio) : "";
}

std::string MillisecondsText(double microseconds) {
  const double milliseconds = microseconds / 1000;
  const int digits = milliseconds < 1     ? 3
                     : milliseconds < 10  ? 2
                     : milliseconds < 100 ? 1
                                          : 0;
  return Text("%.*f", digits, milliseconds);
}

const char* ThreadsText(int threads) {
  return threads == 1 ? "one thread" : "two threads";
}

void PrintMean(const char* of, const std::optional<double>& mean,
               const std::optional<double>& asked) {
  if (!mean.has_value()) return;
  std::printf("%-48s %7.2f  %s\n", Text("geometric mean, %s", of).c_str(),
              *mean,
              asked.has_value() ? Text("asked: %.2f", *asked).c_str() : "");
}

nlohmann::json ToJson(const Row& row) {
  nlohmann::json json = {{"model", row.model}, {"precision", row.precision}};
  if (!row.error.empty()) {
    json["error"] = row.error;
    return json;
  }
  json["rknnd_us"] = row.our_microseconds;
  json["onnxruntime_us"] = row.their_microseconds;
  json["ratio"] = row.ratio();
  json["outputs_apart"] = row.apart;
  return json;
}

nlohmann::json ToJson(const Means& means) {
  nlohmann::json json = nlohmann::json::object();
  if (means.floats.has_value()) json["float"] = *means.floats;
  if (means.int8.has_value()) json["int8"] = *means.int8;
  return json;
}

void WriteSummaries(std::ofstream& file, const std::vector<Table>& tables) {
  file << "| level | threads | float | asked | int8 | asked | slowest model | "
          "its ratio |\n|---|--:|--:|--:|--:|--:|---|--:|\n";
  for (const Table& table : tables) {
    const Row* const worst = table.worst();
    if (worst == nullptr) continue;
    file << "| " << table.level << " | " << table.threads << " | "
         << RatioText(table.means().floats) << " | "
         << RatioText(table.asked().floats) << " | "
         << RatioText(table.means().int8) << " | "
         << RatioText(table.asked().int8) << " | " << worst->model << " | "
         << Text("%.2f", worst->ratio()) << " |\n";
  }
}

// One row for each model, with its times on one thread and on two.
void WriteLevel(std::ofstream& file, const std::vector<const Table*>& tables) {
  file << "\n### " << tables.front()->level << "\n\n| model | computes in |";
  for (const Table* table : tables) {
    file << " rknnd, ms, " << ThreadsText(table->threads)
         << " | ONNX Runtime, ms | ratio |";
  }
  file << " outputs apart |\n|---|---|";
  for (size_t i = 0; i < tables.size(); ++i) file << "--:|--:|--:|";
  file << "--:|\n";
  for (size_t i = 0; i < tables.front()->rows.size(); ++i) {
    const Row& first = tables.front()->rows[i];
    file << "| " << first.model << " | " << first.precision << " |";
    for (const Table* table : tables) {
      const Row& row = table->rows[i];
      if (row.error.empty()) {
        file << " " << MillisecondsText(row.our_microseconds) << " | "
             << MillisecondsText(row.their_microseconds)
             << Text(" | %.2f |", row.ratio());
      } else {
        file << " " << row.error << " | | |";
      }
    }
    file << (first.error.empty() ? Text(" %.1g |\n", first.apart) : " |\n");
  }
}

}  // namespace

Means Table::means() const { return {MeanOf(rows, false), MeanOf(rows, true)}; }

Means Table::asked() const {
  if (level == "avx512_vnni") return {0.8, 0.6};
  if (level == "avx2") return {0.9, 0.9};
  return {};
}

const Row* Table::worst() const {
  const Row* worst = nullptr;
  for (const Row& row : rows) {
    if (!row.error.empty()) continue;
    if (worst == nullptr || row.ratio() > worst->ratio()) worst = &row;
  }
  return worst;
}

void PrintHead(const Table& table, const std::string& cpu) {
  std::printf("\n%s, %s, on %s\n", table.level.c_str(),
              ThreadsText(table.threads), cpu.c_str());
  std::printf("%-22s %12s %12s %7s %8s  %s\n", "microseconds, median", "rknnd",
              "ONNX Runtime", "ratio", "apart", "precision");
  std::fflush(stdout);
}

void PrintRow(const Row& row) {
  if (row.error.empty()) {
    std::printf("%-22s %12.0f %12.0f %7.2f %8.1g  %s\n", row.model.c_str(),
                row.our_microseconds, row.their_microseconds, row.ratio(),
                row.apart, row.precision.c_str());
  } else {
    std::printf("%-22s %s\n", row.model.c_str(), row.error.c_str());
  }
  std::fflush(stdout);
}

void PrintSummary(const Table& table) {
  const Means means = table.means(), asked = table.asked();
  PrintMean("floats", means.floats, asked.floats);
  PrintMean("int8", means.int8, asked.int8);
  if (const Row* const worst = table.worst(); worst != nullptr) {
    std::printf("%-48s %7.2f  asked: 1.00\n",
                ("slowest: " + worst->model).c_str(), worst->ratio());
  }
  const auto failed =
      std::count_if(table.rows.begin(), table.rows.end(),
                    [](const Row& row) { return !row.error.empty(); });
  if (failed > 0) {
    std::printf("%d not measured, and in no mean\n", static_cast<int>(failed));
  }
  std::fflush(stdout);
}

nlohmann::json ToJson(const std::vector<Table>& tables,
                      const Circumstances& circumstances) {
  nlohmann::json all = nlohmann::json::array();
  for (const Table& table : tables) {
    nlohmann::json rows = nlohmann::json::array();
    for (const Row& row : table.rows) rows.push_back(ToJson(row));
    nlohmann::json json = {{"level", table.level},
                           {"threads", table.threads},
                           {"models", rows},
                           {"geometric_mean", ToJson(table.means())},
                           {"asked", ToJson(table.asked())}};
    if (table.worst() != nullptr) json["slowest"] = ToJson(*table.worst());
    all.push_back(json);
  }
  return {{"peer", circumstances.peer},
          {"cpu", circumstances.cpu},
          {"rounds", circumstances.rounds},
          {"turn_ms", circumstances.turn_milliseconds},
          {"tables", all}};
}

void WriteMarkdown(const std::string& path, const std::vector<Table>& tables,
                   const Circumstances& circumstances) {
  std::ofstream file(path);
  file
      << "CPU: " << circumstances.cpu << ". Peer: " << circumstances.peer
      << ". Ratios are rknnd's time over its, geometric means over models.\n\n";
  WriteSummaries(file, tables);
  std::vector<const Table*> of_level;
  for (const Table& table : tables) {
    if (!of_level.empty() && of_level.front()->level != table.level) {
      WriteLevel(file, of_level);
      of_level.clear();
    }
    of_level.push_back(&table);
  }
  if (!of_level.empty()) WriteLevel(file, of_level);
  file.close();
  if (!file) throw std::runtime_error("cannot write '" + path + "'");
}

}  // namespace rknnd::bench
