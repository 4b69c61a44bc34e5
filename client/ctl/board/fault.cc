#include "client/ctl/board/fault.h"

#include <charconv>
#include <string_view>

#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

// Where nothing is said of which jobs are hit, and of how.
constexpr char kAll[] = "all";
constexpr char kNothing[] = "-";

Json FaultJson(const wire::FaultReport& report) {
  const wire::Fault& fault = report.fault;
  Json json = {{"id", report.id}, {"kind", fault.kind}};
  json["core"] = fault.has_core ? Json(fault.core) : Json(nullptr);
  json["model"] = fault.model;
  json["after"] = fault.after;
  json["every"] = fault.every;
  json["times"] = fault.times;
  json["ms"] = fault.ms;
  json["factor"] = fault.factor;
  json["bytes"] = fault.bytes;
  json["status"] = fault.has_status ? Json(fault.status) : Json(nullptr);
  json["matched"] = report.matched;
  json["fired"] = report.fired;
  return json;
}

void Add(std::string& text, const std::string& part) {
  if (!text.empty()) text += ", ";
  text += part;
}

// "core 1, model face, after 10, every 3, 2 times".
std::string WhichText(const wire::Fault& fault) {
  std::string text;
  if (fault.has_core) Add(text, "core " + std::to_string(fault.core));
  if (fault.model[0] != '\0') Add(text, "model " + Printable(fault.model));
  if (fault.after != 0) Add(text, "after " + std::to_string(fault.after));
  if (fault.every > 1) Add(text, "every " + std::to_string(fault.every));
  if (fault.times != 0) Add(text, FormatCount(fault.times, "time"));
  return text.empty() ? kAll : text;
}

std::string HowText(const wire::Fault& fault) {
  std::string text;
  if (fault.ms != 0) Add(text, std::to_string(fault.ms) + " ms");
  if (fault.factor != 0) Add(text, FormatValue(fault.factor) + " x as long");
  if (fault.bytes != 0) Add(text, "above " + FormatBytes(fault.bytes));
  if (fault.has_status) Add(text, "status " + std::to_string(fault.status));
  return text.empty() ? kNothing : text;
}

}  // namespace

std::optional<uint64_t> ParseFaultId(const std::string& id) {
  if (id == "all") return 0;
  uint64_t number = 0;
  const char* const end = id.data() + id.size();
  const auto [stopped, fault] = std::from_chars(id.data(), end, number);
  if (fault != std::errc() || stopped != end || number == 0) {
    return std::nullopt;
  }
  return number;
}

wire::Fault ToFaultMessage(const FaultOptions& options) {
  wire::Fault fault{};
  wire::SetText(fault.kind, options.kind);
  wire::SetText(fault.model, options.model);
  fault.has_core = options.core.has_value();
  fault.core = options.core.value_or(0);
  fault.has_status = options.status.has_value();
  fault.status = options.status.value_or(0);
  fault.after = options.after;
  fault.every = options.every;
  fault.times = options.times;
  fault.ms = options.ms;
  fault.factor = options.factor;
  fault.bytes = options.bytes;
  return fault;
}

Output FaultListOutput(const wire::FaultList& list) {
  Output output{Json::array(), ""};
  Table table({{"FAULT", Table::Align::kRight},
               {"KIND"},
               {"HITS"},
               {"HOW"},
               {"SEEN", Table::Align::kRight},
               {"HIT", Table::Align::kRight}});
  for (const wire::FaultReport& report : list.faults) {
    output.json.push_back(FaultJson(report));
    table.Add({std::to_string(report.id), Printable(report.fault.kind),
               WhichText(report.fault), HowText(report.fault),
               std::to_string(report.matched), std::to_string(report.fired)});
  }
  output.text = list.faults.empty() ? "no faults are set\n" : table.ToString();
  return output;
}

Output FaultSetOutput(const wire::FaultReport& fault) {
  std::string text = "fault " + std::to_string(fault.id) +
                     " is set: " + Printable(fault.fault.kind);
  for (const std::string& part :
       {HowText(fault.fault), WhichText(fault.fault)}) {
    if (part != kNothing && part != kAll) Add(text, part);
  }
  return {FaultJson(fault), text + "\n"};
}

}  // namespace rknnd::client
