#include "client/ctl/reports/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "base/posix/latency_buckets.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

using Align = Table::Align;

// wire::ModelReport::run_by of a model that workers host.
constexpr std::string_view kVendorsLibrary = "rknnrt";

// Enough of a hash to tell a person's models apart.
std::string ShortHex(const uint8_t (&digest)[32]) {
  return HexOf(digest).substr(0, 12);
}

const char* PriorityName(uint32_t priority) {
  switch (priority) {
    case 0:
      return "high";
    case 1:
      return "medium";
    case 2:
      return "low";
    default:
      return "unknown";
  }
}

const char* PolicyName(uint32_t policy) {
  switch (policy) {
    case rknnd_v1_QueuePolicy_QUEUE_FIFO:
      return "fifo";
    case rknnd_v1_QueuePolicy_QUEUE_NEWEST:
      return "newest";
    default:
      return "unknown";
  }
}

// As the API names them: "auto", "0_1", "all".
std::string CoresName(uint32_t mask) {
  if (mask == 0) return "auto";
  if (mask == 0xffff) return "all";
  std::string name;
  for (uint32_t core = 0; core < 32; ++core) {
    if ((mask >> core & 1) == 0) continue;
    if (!name.empty()) name += '_';
    name += std::to_string(core);
  }
  return name;
}

Json CopiedJson(const wire::CopiedBytes& copied) {
  return {{"to_device",
           {{"inputs_set", copied.to_device_inputs_set},
            {"conversion", copied.to_device_conversion}}},
          {"from_device",
           {{"outputs_get", copied.from_device_outputs_get},
            {"conversion", copied.from_device_conversion}}}};
}

// Table and JSON of a list that may be empty.
std::string OrNone(const Json& list, const char* what, const Table& table) {
  return list.empty() ? std::string("no ") + what + "\n" : table.ToString();
}

// Of all the session's jobs.
double LatencyOf(const wire::SessionReport& session, double share) {
  const std::vector<uint64_t> counts(session.latency,
                                     session.latency + session.latency_count);
  return base::LatencyPercentile(counts, share);
}

Json LatencyJson(const wire::SessionReport& session) {
  return {{"p50", std::round(LatencyOf(session, 0.5))},
          {"p99", std::round(LatencyOf(session, 0.99))}};
}

std::string LatencyText(const wire::SessionReport& session, double share) {
  return session.latency_count == 0
             ? "-"
             : FormatMicroseconds(LatencyOf(session, share));
}

// Where its process is: on which machine, else in what of this one.
std::string OriginOf(const wire::SessionReport& session) {
  for (const char* place :
       {session.address, session.allocation, session.container, session.unit}) {
    if (*place != '\0') return Printable(place);
  }
  return "-";
}

Output SessionList(const wire::Report& report, uint64_t own_session) {
  Output output{Json::array(), ""};
  std::vector<Table::Column> columns = {
      {"SESSION", Align::kRight},  {"PID", Align::kRight},
      {"UID", Align::kRight},      {"PROGRAM"},
      {"CONTEXTS", Align::kRight}, {"BUFFERS", Align::kRight},
      {"JOBS", Align::kRight},     {"NPU TIME", Align::kRight},
      {"P50", Align::kRight},      {"P99", Align::kRight},
      {"DROPS", Align::kRight},    {"MEMORY", Align::kRight}};
  const bool origins =
      std::any_of(report.sessions.begin(), report.sessions.end(),
                  [own_session](const wire::SessionReport& s) {
                    return s.id != own_session && OriginOf(s) != "-";
                  });
  if (origins) columns.push_back({"FROM"});
  Table table(std::move(columns));
  for (const wire::SessionReport& s : report.sessions) {
    if (s.id == own_session) continue;
    output.json.push_back({{"id", s.id},
                           {"pid", s.pid},
                           {"uid", s.uid},
                           {"comm", s.comm},
                           {"contexts", s.contexts},
                           {"buffers", s.buffers},
                           {"jobs", s.jobs},
                           {"npu_us", s.npu_us},
                           {"memory", s.memory},
                           {"queue_us", s.queue_us},
                           {"run_us", s.run_us},
                           {"drops", s.drops},
                           {"shared", s.shared},
                           {"priority", PriorityName(s.priority)},
                           {"weight", s.weight},
                           {"latency_us", LatencyJson(s)},
                           {"address", s.address},
                           {"unit", s.unit},
                           {"container", s.container},
                           {"allocation", s.allocation}});
    std::vector<std::string> row = {
        std::to_string(s.id),
        // 0: a process of another container
        s.pid == 0 ? "-" : std::to_string(s.pid), std::to_string(s.uid),
        Printable(s.comm), std::to_string(s.contexts),
        std::to_string(s.buffers), std::to_string(s.jobs),
        FormatMicroseconds(static_cast<double>(s.npu_us)), LatencyText(s, 0.5),
        LatencyText(s, 0.99), std::to_string(s.drops), FormatBytes(s.memory)};
    if (origins) row.push_back(OriginOf(s));
    table.Add(std::move(row));
  }
  output.text = OrNone(output.json, "sessions", table);
  return output;
}

// `costs`: with what each would take if every context had its own.
Output ModelList(const wire::Report& report, bool costs) {
  Output output{Json::array(), ""};
  std::vector<Table::Column> columns = {
      {"MODEL"}, {"SHA-256"}, {"CONTEXTS", Align::kRight}};
  if (!costs) {
    for (const char* title : {"JOBS", "NPU TIME", "RUN", "DROPS"}) {
      columns.push_back({title, Align::kRight});
    }
  }
  for (const char* title : {"WEIGHTS", "OF ITS OWN", "INTERNAL"}) {
    columns.push_back({title, Align::kRight});
  }
  columns.push_back({costs ? "WITHOUT SHARING" : "LOADS", Align::kRight});
  const bool preloaded =
      std::any_of(report.models.begin(), report.models.end(),
                  [](const wire::ModelReport& m) { return m.preloaded; });
  if (preloaded) columns.push_back({""});
  Table table(std::move(columns));
  for (const wire::ModelReport& m : report.models) {
    output.json.push_back({{"sha256", HexOf(m.sha256)},
                           {"name", m.name},
                           {"contexts", m.contexts},
                           {"weight", m.weight},
                           {"weight_held", m.weight_held},
                           {"internal", m.internal},
                           {"loads", m.loads},
                           {"preloaded", m.preloaded},
                           {"jobs", m.jobs},
                           {"npu_us", m.npu_us},
                           {"queue_us", m.queue_us},
                           {"drops", m.drops},
                           {"run_us", m.run_ns / 1000},
                           {"run_by", m.run_by},
                           {"run_by_because", m.run_by_because}});
    std::vector<std::string> row = {Printable(m.name), ShortHex(m.sha256),
                                    std::to_string(m.contexts)};
    if (!costs) {
      row.push_back(std::to_string(m.jobs));
      row.push_back(FormatMicroseconds(static_cast<double>(m.npu_us)));
      row.push_back(m.run_ns == 0 ? "-"
                                  : FormatMicroseconds(
                                        static_cast<double>(m.run_ns) / 1e3));
      row.push_back(std::to_string(m.drops));
    }
    row.push_back(FormatBytes(m.weight));
    row.push_back(FormatBytes(m.weight_held));
    row.push_back(FormatBytes(m.internal));
    row.push_back(costs ? FormatBytes(m.contexts * (m.weight + m.internal))
                        : std::to_string(m.loads));
    if (preloaded) row.emplace_back(m.preloaded ? "preloaded" : "");
    table.Add(std::move(row));
  }
  output.text = OrNone(output.json, "models", table);
  for (const wire::ModelReport& m : report.models) {
    if (std::string_view(m.run_by) != kVendorsLibrary) continue;
    output.text +=
        "'" + Printable(m.name) +
        "' runs on the vendor's library: " + Printable(m.run_by_because) + "\n";
  }
  return output;
}

Output UserList(const wire::Report& report, uint64_t own_session) {
  Output output{Json::array(), ""};
  Table table({{"UID", Align::kRight},
               {"SESSIONS", Align::kRight},
               {"CONTEXTS", Align::kRight},
               {"BUFFERS", Align::kRight},
               {"MEMORY", Align::kRight},
               {"LIMIT", Align::kRight}});
  for (const wire::UserReport& user : report.users) {
    const auto own = std::any_of(report.sessions.begin(), report.sessions.end(),
                                 [&](const wire::SessionReport& session) {
                                   return session.id == own_session &&
                                          session.uid == user.uid;
                                 });
    const uint32_t sessions = user.sessions - (own && user.sessions > 0);
    if (sessions == 0) continue;
    output.json.push_back({{"uid", user.uid},
                           {"sessions", sessions},
                           {"contexts", user.contexts},
                           {"buffers", user.buffers},
                           {"memory", user.memory},
                           {"memory_limit", user.memory_limit}});
    table.Add({std::to_string(user.uid), std::to_string(sessions),
               std::to_string(user.contexts), std::to_string(user.buffers),
               FormatBytes(user.memory),
               user.memory_limit == 0 ? "-" : FormatBytes(user.memory_limit)});
  }
  output.text = OrNone(output.json, "users", table);
  return output;
}

}  // namespace

std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string HexOf(const uint8_t (&digest)[32]) {
  std::string text;
  for (const uint8_t byte : digest) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    text += digits;
  }
  return text;
}

Json ForeignUsersJson(const wire::Report& status) {
  Json users = Json::array();
  for (const wire::ForeignUser& user : status.foreign_users) {
    users.push_back(
        {{"pid", user.pid}, {"comm", user.comm}, {"device", user.device}});
  }
  return users;
}

uint64_t Total(const wire::MemoryKinds& kinds) {
  return kinds.weight + kinds.internal + kinds.io + kinds.other;
}

Json KindsJson(const wire::MemoryKinds& kinds) {
  return {{"weight", kinds.weight},
          {"internal", kinds.internal},
          {"io", kinds.io},
          {"other", kinds.other}};
}

uint64_t AddUp(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t TotalCopied(const wire::CopiedBytes& copied) {
  return AddUp(
      AddUp(copied.to_device_inputs_set, copied.to_device_conversion),
      AddUp(copied.from_device_outputs_get, copied.from_device_conversion));
}

Output SessionsOutput(const wire::Report& report, uint64_t own_session) {
  return SessionList(report, own_session);
}

Output ModelsOutput(const wire::Report& report) {
  return ModelList(report, /*costs=*/false);
}

Output ContextsOutput(const wire::Report& report) {
  Output output{Json::array(), ""};
  Table table({{"CONTEXT", Align::kRight},
               {"SESSION", Align::kRight},
               {"MODEL"},
               {"CORES"},
               {"PRIORITY"},
               {"JOBS", Align::kRight},
               {"NPU TIME", Align::kRight},
               {"QUEUED", Align::kRight},
               {"QUEUE"},
               {"RATE", Align::kRight},
               {"DROPS", Align::kRight},
               {"COPIED", Align::kRight}});
  for (const wire::ContextReport& c : report.contexts) {
    output.json.push_back({{"id", c.id},
                           {"session", c.session},
                           {"model", HexOf(c.model)},
                           {"core_mask", c.core_mask},
                           {"priority", PriorityName(c.priority)},
                           {"jobs", c.jobs},
                           {"copied_bytes", CopiedJson(c.copied)},
                           {"npu_us", c.npu_us},
                           {"queue_us", c.queue_us},
                           {"drops", c.drops},
                           {"queued", c.queued},
                           {"policy", PolicyName(c.policy)},
                           {"rate", static_cast<double>(c.rate_mhz) / 1e3}});
    table.Add({std::to_string(c.id), std::to_string(c.session),
               ShortHex(c.model), CoresName(c.core_mask),
               PriorityName(c.priority), std::to_string(c.jobs),
               FormatMicroseconds(static_cast<double>(c.npu_us)),
               std::to_string(c.queued), PolicyName(c.policy),
               // Of the stream it was admitted for.
               c.rate_mhz == 0
                   ? "-"
                   : FormatValue(static_cast<double>(c.rate_mhz) / 1e3) + "/s",
               std::to_string(c.drops), FormatBytes(TotalCopied(c.copied))});
  }
  output.text = OrNone(output.json, "contexts", table);
  return output;
}

Output BuffersOutput(const wire::Report& report) {
  Output output{Json::array(), ""};
  Table table({{"BUFFER", Align::kRight},
               {"SESSION", Align::kRight},
               {"SIZE", Align::kRight},
               {"HEAP"},
               {"ORIGIN"},
               {"BINDINGS", Align::kRight}});
  for (const wire::BufferReport& b : report.buffers) {
    output.json.push_back({{"id", b.id},
                           {"session", b.session},
                           {"size", b.size},
                           {"heap", b.heap},
                           {"imported", b.imported},
                           {"bindings", b.bindings}});
    table.Add({std::to_string(b.id), std::to_string(b.session),
               FormatBytes(b.size), Printable(b.heap),
               b.imported ? "imported" : "allocated",
               std::to_string(b.bindings)});
  }
  output.text = OrNone(output.json, "buffers", table);
  return output;
}

Output MemoryOutput(const wire::Report& report, uint64_t own_session) {
  const Output models = ModelList(report, /*costs=*/true);
  const Output sessions = SessionList(report, own_session);
  const Output users = UserList(report, own_session);
  const uint64_t total = Total(report.memory);
  Output output;
  output.json = {
      {"kinds", KindsJson(report.memory)},
      {"models", models.json},
      {"sessions", sessions.json},
      {"unshared_total", report.unshared_total},
      {"users", users.json},
      {"budget", {{"total", report.budget}, {"used", report.budget_used}}}};

  Table kinds({{"KIND"},
               {"BYTES", Align::kRight},
               {"", Align::kRight},
               {"WITHOUT SHARING", Align::kRight}});
  const auto add = [&kinds](const char* name, uint64_t bytes,
                            uint64_t unshared) {
    kinds.Add({name, std::to_string(bytes), FormatBytes(bytes),
               FormatBytes(unshared)});
  };
  wire::MemoryKinds unshared{};
  for (const wire::ModelReport& model : report.models) {
    unshared.weight += model.contexts * model.weight;
    unshared.internal += model.contexts * model.internal;
  }
  add("weight", report.memory.weight, unshared.weight);
  add("internal", report.memory.internal, unshared.internal);
  // A process's own, shared or not.
  add("io", report.memory.io, report.memory.io);
  add("other", report.memory.other, report.memory.other);
  add("total", total, report.unshared_total);
  output.text = kinds.ToString();
  if (report.budget > 0) {
    output.text += "\nof the NPU's address space, " +
                   FormatBytes(report.budget_used) + " of " +
                   FormatBytes(report.budget) + " are taken\n";
  }
  // Models that nobody uses right now would not be there without sharing, nor
  // the arenas of cores that nobody uses.
  if (report.unshared_total > total) {
    const uint64_t saved = report.unshared_total - total;
    output.text += "sharing saves " + FormatBytes(saved) + " (" +
                   std::to_string(static_cast<int>(
                       100.0 * static_cast<double>(saved) /
                       static_cast<double>(report.unshared_total))) +
                   " %)\n";
  }
  output.text += "\n" + models.text + "\n" + sessions.text;
  if (!users.json.empty()) output.text += "\n" + users.text;
  return output;
}

}  // namespace rknnd::client
