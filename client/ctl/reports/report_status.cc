// rknnctl status: the device, who uses it, what runs on each core.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "base/posix/clock.h"
#include "client/ctl/reports/report.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

// Who uses the NPU beside us, with what can be done about it.
void ForeignLines(const wire::Report& status, Output& output) {
  bool any = false;
  for (const wire::ForeignUser& user : status.foreign_users) {
    if (user.pid == 0) {  // not one process: how many could not be looked at
      output.text +=
          "         " + Printable(user.comm) + ": more may use the NPU\n";
      continue;
    }
    any = true;
    output.text += "WARNING  used beside rknnd by " + Printable(user.comm) +
                   " (pid " + std::to_string(user.pid) + ")" +
                   (*user.device == '\0' ? "" : " on ") +
                   Printable(user.device) + "\n";
  }
  if (any) {
    output.text +=
        "         run it as 'rknnctl lease --cores N -- COMMAND', which keeps "
        "rknnd off its cores\n";
  }
}

// A line for each core, and a warning for each who uses them beside us.
void CoreLines(const wire::Report& status, Output& output) {
  output.json["core_use"] = Json::array();
  for (size_t i = 0; i < status.core_reports.size(); ++i) {
    const wire::CoreReport& core = status.core_reports[i];
    output.json["core_use"].push_back({{"busy_us", core.busy_ns / 1000},
                                       {"jobs", core.jobs},
                                       {"lent_to", core.lent_to},
                                       {"model", core.model},
                                       {"session", core.session},
                                       {"running_us", core.running_ns / 1000},
                                       {"holder", core.holder}});
    std::string label = "core " + std::to_string(i);
    label.resize(9, ' ');
    output.text += label;
    if (*core.lent_to != '\0') {
      output.text += "lent to '" + Printable(core.lent_to) + "'; ";
    }
    output.text += FormatMicroseconds(static_cast<double>(core.busy_ns) / 1e3) +
                   " busy with " + FormatCount(core.jobs, "job");
    // Of those that others may wonder about.
    if (core.running_ns >= uint64_t{base::kSecond}) {
      output.text +=
          "; held for " +
          FormatMicroseconds(static_cast<double>(core.running_ns) / 1e3) +
          " by " + Printable(core.holder) + " with '" + Printable(core.model) +
          "'";
    }
    output.text += "\n";
  }
  output.json["foreign_users"] = ForeignUsersJson(status);
  ForeignLines(status, output);
  output.json["admitted"] = static_cast<double>(status.admitted_ppm) / 1e6;
  if (status.admitted_ppm > 0) {
    char share[32];
    std::snprintf(share, sizeof share, "%.1f %%",
                  static_cast<double>(status.admitted_ppm) / 1e4);
    output.text += std::string("admitted ") + share +
                   " of all cores, by streams that were planned\n";
  }
}

// The software NPU has no driver; programs that ask for one are told a number.
std::string DriverText(const wire::Report& status) {
  const std::string version = Printable(status.driver);
  if (version.empty()) return "";
  return std::string_view(status.device) == "soft"
             ? ", no driver (programs are told " + version + ")"
             : ", driver " + version;
}

// What answers for each kind of file, where no NPU does: ONNX models always
// run, programs only where the emulated NPU is the one they are for.
void AnswersLine(const wire::Report& status, Output& output) {
  if (std::string_view(status.device) != "soft") return;
  const bool runs = std::string_view(status.soc).starts_with("rk3588");
  output.json["answers"] = {{"onnx", "software NPU"},
                            {"rknn", runs ? "emulated NPU" : "nothing"}};
  output.text +=
      std::string("answers  ONNX models: software NPU; .rknn files: ") +
      (runs ? "emulated NPU; both are this CPU\n"
            : "nothing, they are only described\n");
}

}  // namespace

Output StatusOutput(const wire::Report& status, const wire::Report& sessions,
                    uint64_t own_session, const std::string& npu) {
  const auto others = static_cast<uint64_t>(
      std::count_if(sessions.sessions.begin(), sessions.sessions.end(),
                    [own_session](const wire::SessionReport& s) {
                      return s.id != own_session;
                    }));
  // Where those of other machines come from.
  Json remote = Json::array();
  for (const wire::SessionReport& session : sessions.sessions) {
    if (session.id != own_session && *session.address != '\0') {
      remote.push_back(session.address);
    }
  }
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
      {"draining", status.draining},
      {"sessions", others},
      {"models", status.model_count},
      {"contexts", status.context_count},
      {"buffers", status.buffer_count},
      {"jobs",
       {{"queued", status.jobs_queued},
        {"running", status.jobs_running},
        {"done", status.jobs_done},
        {"failed", status.jobs_failed},
        {"dropped", status.jobs_dropped},
        {"hung", status.jobs_hung},
        {"shared", status.jobs_shared}}},
      {"memory", std::move(memory)},
      {"sram", {{"total", status.sram_total}, {"free", status.sram_free}}}};

  const auto line = [&output](const char* title, const std::string& text) {
    std::string label = title;
    label.resize(9, ' ');
    output.text += label + text + "\n";
  };
  line("device", Printable(status.device) + ", " + Printable(status.soc) +
                     ", " + FormatCount(status.cores, "core") +
                     DriverText(status));
  AnswersLine(status, output);
  if (!npu.empty()) {
    output.json["npu"] = npu;
    line("NPU", Printable(npu));
  }
  line("up",
       status.uptime_s < 60
           ? std::to_string(status.uptime_s) + " s"
           : FormatMicroseconds(static_cast<double>(status.uptime_s) * 1e6));
  line("in use", FormatCount(others, "session") + ", " +
                     FormatCount(status.model_count, "model") + ", " +
                     FormatCount(status.context_count, "context") + ", " +
                     FormatCount(status.buffer_count, "buffer"));
  line(
      "jobs",
      std::to_string(status.jobs_running) + " running, " +
          std::to_string(status.jobs_queued) + " queued, " +
          std::to_string(status.jobs_done) + " done, " +
          std::to_string(status.jobs_failed) + " failed" +
          (status.jobs_dropped == 0
               ? ""
               : ", " + std::to_string(status.jobs_dropped) + " dropped") +
          (status.jobs_shared == 0 ? ""
                                   : ", " + std::to_string(status.jobs_shared) +
                                         " answered by another's run") +
          (status.jobs_hung == 0
               ? ""
               : ", " + std::to_string(status.jobs_hung) + " hung"));
  Json numbers = Json::object();
  for (const wire::Number& number : status.numbers) {
    numbers[number.name] = number.value;
  }
  output.json["numbers"] = std::move(numbers);
  output.json["remote"] = remote;
  for (const Json& address : remote) {
    line("remote", Printable(address.get<std::string>()));
  }
  CoreLines(status, output);
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
  if (status.draining) {
    line("DRAINS", "new work waits: rknnctl drain --undo takes it back");
  }
  // Nobody is to wonder about a daemon that was told to fail.
  if (status.faults > 0) {
    output.json["faults"] = status.faults;
    line("FAULTS", FormatCount(status.faults, "fault") +
                       " on demand in force: rknnctl fault list");
  }
  return output;
}

}  // namespace rknnd::client
