#include "client/ctl/accuracy/accuracy_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>

#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

constexpr char kYellow[] = "\x1b[33m";
constexpr char kRed[] = "\x1b[31m";
constexpr char kPlain[] = "\x1b[0m";

constexpr char kSimulatorLegend[] =
    "# simulator_error: error of each layer's output on the software NPU, "
    "against golden.\n"
    "#      entire: from the inputs to this layer; errors add up from layer to "
    "layer.\n"
    "#      single: of this layer alone, its inputs from golden.\n";
constexpr char kRuntimeLegend[] =
    "# runtime_error: error of each layer's output on the target.\n"
    "#      entire: from the inputs to this layer, against golden.\n"
    "#  single_sim: of this layer alone, against the simulator's single.\n";

std::string Number(const char* format, double value) {
  if (std::isnan(value)) return "nan";
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string CosText(const std::optional<Distance>& distance) {
  return distance ? Number("%.5f", distance->cos) : "-";
}
std::string EucText(const std::optional<Distance>& distance) {
  return distance ? Number("%.5g", distance->euc) : "-";
}

const char* ColorOf(const std::optional<Distance>& distance) {
  if (!distance) return "";
  // NaN is neither above nor below.
  if (!(distance->cos >= kVeryLowCosine)) return kRed;
  return distance->cos < kLowCosine ? kYellow : "";
}

std::string Left(std::string text, size_t width) {
  const size_t taken = Width(text);
  if (taken < width) text.append(width - taken, ' ');
  return text;
}

// One of the columns of distances: "cos | euc".
struct Column {
  const char* group;  // its title's first line; "" under that of the last
  const char* title;
  std::optional<Distance> (*of)(const LayerAccuracy& layer);
  size_t cos = 7, euc = 3;  // widths

  [[nodiscard]] size_t width() const { return cos + 3 + euc; }
};

std::vector<Column> ColumnsOf(const AccuracyReport& report) {
  std::vector<Column> columns = {
      {"simulator_error", "entire",
       [](const LayerAccuracy& layer) { return layer.simulator.entire; }},
      {"", "single",
       [](const LayerAccuracy& layer) { return layer.simulator.single; }}};
  if (report.has_runtime) {
    columns.push_back(
        {"runtime_error", "entire",
         [](const LayerAccuracy& layer) { return layer.runtime.entire; }});
    columns.push_back({"", "single_sim", [](const LayerAccuracy& layer) {
                         return layer.runtime.single_sim;
                       }});
  }
  for (Column& column : columns) {
    for (const LayerAccuracy& layer : report.layers) {
      column.euc = std::max(column.euc, EucText(column.of(layer)).size());
    }
  }
  return columns;
}

void EndLine(std::string* text) {
  while (!text->empty() && text->back() == ' ') text->pop_back();
  *text += '\n';
}

Json NumberJson(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json DistanceJson(const std::optional<Distance>& distance) {
  if (!distance) return nullptr;
  return {{"cos", NumberJson(distance->cos)},
          {"euc", NumberJson(distance->euc)}};
}

}  // namespace

std::string AccuracyText(const AccuracyReport& report, bool color) {
  std::string text = kSimulatorLegend;
  if (report.has_runtime) text += kRuntimeLegend;
  text += '\n';

  const std::vector<Column> columns = ColumnsOf(report);
  const std::string title = "layer_name";
  size_t names = title.size();
  std::vector<std::string> shown;
  for (const LayerAccuracy& layer : report.layers) {
    shown.push_back(Printable("[" + layer.type + "] " + layer.name));
    names = std::max(names, Width(shown.back()));
  }
  std::array<std::string, 3> head = {Left(title, names), Left("", names),
                                     Left("", names)};
  for (const Column& column : columns) {
    head[0] += "  " + Left(column.group, column.width());
    head[1] += "  " + Left(column.title, column.width());
    head[2] += "  " + Left("cos", column.cos) + "   " + Left("euc", column.euc);
  }
  for (std::string& line : head) {
    EndLine(&line);
    text += line;
  }
  for (size_t i = 0; i < report.layers.size(); ++i) {
    std::string line = Left(shown[i], names);
    for (const Column& column : columns) {
      const std::optional<Distance> distance = column.of(report.layers[i]);
      const std::string cell = Left(CosText(distance), column.cos) + " | " +
                               Left(EucText(distance), column.euc);
      const char* const shade = color ? ColorOf(distance) : "";
      line += "  ";
      line += *shade == '\0' ? cell : shade + cell + kPlain;
    }
    EndLine(&line);
    text += line;
  }
  text += '\n';
  if (report.first_inf) {
    text += std::string("the first layer with inf or nan is ") +
            shown[*report.first_inf] + ", in the " + report.inf_in + "\n";
  }
  for (const std::string& note : report.notes) text += Printable(note) + "\n";
  text += "tensors and this table are in " + report.output_dir + "\n";
  return text;
}

Json AccuracyJson(const AccuracyReport& report) {
  Json json;
  json["layers"] = Json::array();
  for (const LayerAccuracy& layer : report.layers) {
    Json row = {{"name", layer.name},
                {"type", layer.type},
                {"simulator",
                 {{"entire", DistanceJson(layer.simulator.entire)},
                  {"single", DistanceJson(layer.simulator.single)}}},
                {"runtime", nullptr}};
    if (report.has_runtime) {
      row["runtime"] = {{"entire", DistanceJson(layer.runtime.entire)},
                        {"single_sim", DistanceJson(layer.runtime.single_sim)}};
    }
    json["layers"].push_back(std::move(row));
  }
  json["first_inf"] = nullptr;
  if (report.first_inf) {
    const LayerAccuracy& layer = report.layers[*report.first_inf];
    json["first_inf"] = {
        {"name", layer.name}, {"type", layer.type}, {"in", report.inf_in}};
  }
  json["notes"] = report.notes;
  json["output_dir"] = report.output_dir;
  return json;
}

}  // namespace rknnd::client
