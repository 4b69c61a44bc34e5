#include "client/ctl/report.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "client/ctl/table.h"
#include "client/ctl/text.h"

namespace rknnd::client {
namespace {

using Align = Table::Align;

std::string Hex(const uint8_t (&digest)[32]) {
  std::string text;
  for (const uint8_t byte : digest) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    text += digits;
  }
  return text;
}

// Enough of a hash to tell a person's models apart.
std::string ShortHex(const uint8_t (&digest)[32]) {
  return Hex(digest).substr(0, 12);
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

Output SessionList(const wire::Report& report, uint64_t own_session) {
  Output output{Json::array(), ""};
  Table table({{"SESSION", Align::kRight},
               {"PID", Align::kRight},
               {"UID", Align::kRight},
               {"PROGRAM"},
               {"CONTEXTS", Align::kRight},
               {"BUFFERS", Align::kRight},
               {"JOBS", Align::kRight},
               {"NPU TIME", Align::kRight},
               {"MEMORY", Align::kRight}});
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
                           {"memory", s.memory}});
    table.Add({std::to_string(s.id),
               // 0: a process of another container
               s.pid == 0 ? "-" : std::to_string(s.pid), std::to_string(s.uid),
               Printable(s.comm), std::to_string(s.contexts),
               std::to_string(s.buffers), std::to_string(s.jobs),
               FormatMicroseconds(static_cast<double>(s.npu_us)),
               FormatBytes(s.memory)});
  }
  output.text = OrNone(output.json, "sessions", table);
  return output;
}

// `costs`: with what each would take if every context had its own.
Output ModelList(const wire::Report& report, bool costs) {
  Output output{Json::array(), ""};
  std::vector<Table::Column> columns = {{"MODEL"},
                                        {"SHA-256"},
                                        {"CONTEXTS", Align::kRight},
                                        {"WEIGHTS", Align::kRight},
                                        {"OF ITS OWN", Align::kRight},
                                        {"INTERNAL", Align::kRight}};
  columns.push_back({costs ? "WITHOUT SHARING" : "LOADS", Align::kRight});
  const bool preloaded =
      std::any_of(report.models.begin(), report.models.end(),
                  [](const wire::ModelReport& m) { return m.preloaded; });
  if (preloaded) columns.push_back({""});
  Table table(std::move(columns));
  for (const wire::ModelReport& m : report.models) {
    output.json.push_back({{"sha256", Hex(m.sha256)},
                           {"name", m.name},
                           {"contexts", m.contexts},
                           {"weight", m.weight},
                           {"weight_held", m.weight_held},
                           {"internal", m.internal},
                           {"loads", m.loads},
                           {"preloaded", m.preloaded}});
    std::vector<std::string> row = {
        Printable(m.name),
        ShortHex(m.sha256),
        std::to_string(m.contexts),
        FormatBytes(m.weight),
        FormatBytes(m.weight_held),
        FormatBytes(m.internal),
        costs ? FormatBytes(m.contexts * (m.weight + m.internal))
              : std::to_string(m.loads)};
    if (preloaded) row.emplace_back(m.preloaded ? "preloaded" : "");
    table.Add(std::move(row));
  }
  output.text = OrNone(output.json, "models", table);
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

Output StatusOutput(const wire::Report& status, const wire::Report& sessions,
                    uint64_t own_session) {
  const auto others = static_cast<uint64_t>(
      std::count_if(sessions.sessions.begin(), sessions.sessions.end(),
                    [own_session](const wire::SessionReport& s) {
                      return s.id != own_session;
                    }));
  Json memory = KindsJson(status.memory);
  memory["total"] = Total(status.memory);
  Output output;
  output.json = {
      {"device",
       {{"kind", status.device},
        {"soc", status.soc},
        {"cores", status.cores},
        {"driver", status.driver}}},
      {"uptime_s", status.uptime_s},
      {"sessions", others},
      {"models", status.model_count},
      {"contexts", status.context_count},
      {"buffers", status.buffer_count},
      {"jobs",
       {{"queued", status.jobs_queued},
        {"running", status.jobs_running},
        {"done", status.jobs_done},
        {"failed", status.jobs_failed}}},
      {"memory", std::move(memory)},
      {"sram", {{"total", status.sram_total}, {"free", status.sram_free}}}};

  const auto line = [&output](const char* title, const std::string& text) {
    std::string label = title;
    label.resize(9, ' ');
    output.text += label + text + "\n";
  };
  line("device",
       Printable(status.device) + ", " + Printable(status.soc) + ", " +
           FormatCount(status.cores, "core") +
           (status.driver.empty() ? ""
                                  : ", driver " + Printable(status.driver)));
  line("up",
       status.uptime_s < 60
           ? std::to_string(status.uptime_s) + " s"
           : FormatMicroseconds(static_cast<double>(status.uptime_s) * 1e6));
  line("in use", FormatCount(others, "session") + ", " +
                     FormatCount(status.model_count, "model") + ", " +
                     FormatCount(status.context_count, "context") + ", " +
                     FormatCount(status.buffer_count, "buffer"));
  line("jobs", std::to_string(status.jobs_running) + " running, " +
                   std::to_string(status.jobs_queued) + " queued, " +
                   std::to_string(status.jobs_done) + " done, " +
                   std::to_string(status.jobs_failed) + " failed");
  line("memory", FormatBytes(Total(status.memory)) + " (weights " +
                     FormatBytes(status.memory.weight) + ", internal " +
                     FormatBytes(status.memory.internal) + ", I/O " +
                     FormatBytes(status.memory.io) + ", other " +
                     FormatBytes(status.memory.other) + ")");
  if (status.sram_total > 0) {
    line("SRAM", FormatBytes(status.sram_free) + " of " +
                     FormatBytes(status.sram_total) + " free");
  }
  output.json["cache_syncs"] = {{"done", status.syncs_done},
                                {"skipped", status.syncs_skipped}};
  // Where there is memory with caches at all.
  if (status.syncs_done > 0 || status.syncs_skipped > 0) {
    line("syncs", std::to_string(status.syncs_done) + " of CPU caches, " +
                      std::to_string(status.syncs_skipped) + " spared");
  }
  // Nobody is to wonder about a daemon that was told to fail.
  if (status.faults > 0) {
    output.json["faults"] = status.faults;
    line("FAULTS", FormatCount(status.faults, "fault") +
                       " on demand in force: rknnctl fault list");
  }
  return output;
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
               {"COPIED", Align::kRight}});
  for (const wire::ContextReport& c : report.contexts) {
    output.json.push_back({{"id", c.id},
                           {"session", c.session},
                           {"model", Hex(c.model)},
                           {"core_mask", c.core_mask},
                           {"priority", PriorityName(c.priority)},
                           {"jobs", c.jobs},
                           {"copied_bytes", CopiedJson(c.copied)}});
    table.Add({std::to_string(c.id), std::to_string(c.session),
               ShortHex(c.model), CoresName(c.core_mask),
               PriorityName(c.priority), std::to_string(c.jobs),
               FormatBytes(TotalCopied(c.copied))});
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
