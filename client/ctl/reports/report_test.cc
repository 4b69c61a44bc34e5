#include "client/ctl/reports/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/posix/clock.h"

namespace rknnd::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

wire::SessionReport NamedSession(uint64_t id, std::string_view comm) {
  wire::SessionReport session{};
  session.id = id;
  session.pid = 4000 + static_cast<int>(id);
  session.npu_us = 1500;
  wire::SetText(session.comm, comm);
  return session;
}

wire::ModelReport NamedModel(std::string_view name) {
  wire::ModelReport model{};
  std::memset(model.sha256, 0xab, sizeof(model.sha256));
  wire::SetText(model.name, name);
  model.contexts = 2;
  model.weight = 1 << 20;
  return model;
}

TEST(ReportTest, StatusSaysThatFaultsAreInForce) {
  wire::Report status;
  EXPECT_FALSE(StatusOutput(status, {}, 0).json.contains("faults"));
  status.faults = 2;
  const Output output = StatusOutput(status, {}, 0);
  EXPECT_EQ(output.json["faults"], 2);
  EXPECT_THAT(output.text, HasSubstr("2 faults on demand in force"));
}

TEST(ReportTest, SoftwareNpuHasNoDriver) {
  wire::Report status;
  wire::SetText(status.driver, "0.9.8");
  wire::SetText(status.device, "soft");
  const Output soft = StatusOutput(status, {}, 0);
  EXPECT_THAT(soft.text, HasSubstr(", no driver (programs are told 0.9.8)"));
  EXPECT_EQ(soft.json["device"]["driver"], "0.9.8");
  EXPECT_EQ(soft.json["answers"]["rknn"], "nothing");
  wire::SetText(status.soc, "rk3588");
  const Output emulated = StatusOutput(status, {}, 0);
  EXPECT_EQ(emulated.json["answers"]["onnx"], "software NPU");
  EXPECT_EQ(emulated.json["answers"]["rknn"], "emulated NPU");
  EXPECT_THAT(emulated.text, HasSubstr(".rknn files: emulated NPU"));
  wire::SetText(status.device, "rknnrt");
  const Output real = StatusOutput(status, {}, 0);
  EXPECT_THAT(real.text, HasSubstr(", driver 0.9.8"));
  EXPECT_FALSE(real.json.contains("answers"));
}

TEST(ReportTest, StatusSaysThatItDrainsAndWhoHasHeldACoreForLong) {
  wire::Report status;
  status.core_reports.resize(2);
  status.core_reports[0].running_ns = 118 * uint64_t{base::kSecond};
  wire::SetText(status.core_reports[0].holder, "session 4 (pid 12 'cam')");
  wire::SetText(status.core_reports[0].model, "net.onnx");
  status.core_reports[1].running_ns = uint64_t{base::kMillisecond};
  wire::SetText(status.core_reports[1].holder, "session 5 (pid 13 'nvr')");
  status.draining = true;
  const Output output = StatusOutput(status, {}, 0);
  EXPECT_THAT(output.text, HasSubstr("rknnctl drain --undo"));
  EXPECT_THAT(output.text,
              HasSubstr("by session 4 (pid 12 'cam') with 'net.onnx'"));
  EXPECT_THAT(output.text, Not(HasSubstr("nvr")));
  EXPECT_EQ(output.json["draining"], true);
  EXPECT_EQ(output.json["core_use"][1]["running_us"], 1000);
  status.draining = false;
  EXPECT_THAT(StatusOutput(status, {}, 0).text, Not(HasSubstr("drain")));
}

TEST(ReportTest, StatusCountsCacheSyncsWhereThereAreAny) {
  wire::Report status;
  EXPECT_THAT(StatusOutput(status, {}, 0).text, Not(HasSubstr("syncs")));
  status.syncs_done = 20;
  status.syncs_skipped = 4;
  const Output output = StatusOutput(status, {}, 0);
  EXPECT_EQ(output.json["cache_syncs"]["done"], 20);
  EXPECT_EQ(output.json["cache_syncs"]["skipped"], 4);
  EXPECT_THAT(output.text, HasSubstr("20 of CPU caches, 4 spared"));
}

TEST(ReportTest, StatusHasTheNamesThatScriptsRelyOn) {
  wire::Report status;
  wire::SetText(status.device, "soft");
  wire::SetText(status.soc, "rk3588");
  status.cores = 3;
  status.uptime_s = 75;
  status.jobs_done = 9;
  status.memory = {100, 20, 3, 4000};
  status.sram_total = 1 << 20;
  wire::Report sessions;
  sessions.sessions = {NamedSession(1, "camera"), NamedSession(2, "rknnctl")};

  const Output output = StatusOutput(status, sessions, 2);

  EXPECT_THAT(Keys(output.json),
              ElementsAre("device", "uptime_s", "draining", "sessions",
                          "models", "contexts", "buffers", "jobs", "memory",
                          "sram", "answers", "numbers", "remote", "core_use",
                          "foreign_users", "admitted", "cache_syncs"));
  EXPECT_THAT(Keys(output.json["cache_syncs"]), ElementsAre("done", "skipped"));
  EXPECT_THAT(Keys(output.json["device"]),
              ElementsAre("kind", "soc", "cores", "driver"));
  EXPECT_THAT(Keys(output.json["jobs"]),
              ElementsAre("queued", "running", "done", "failed", "dropped",
                          "hung", "shared"));
  EXPECT_THAT(Keys(output.json["memory"]),
              ElementsAre("weight", "internal", "io", "other", "total"));
  EXPECT_THAT(Keys(output.json["sram"]), ElementsAre("total", "free"));
  EXPECT_EQ(output.json["memory"]["total"], 4123);
  EXPECT_EQ(output.json["sessions"], 1);
  EXPECT_THAT(output.text, HasSubstr("soft, rk3588, 3 cores\n"));
  EXPECT_THAT(output.text, HasSubstr("1 min 15 s"));
}

TEST(ReportTest, OwnConnectionIsNoSession) {
  wire::Report report;
  report.sessions = {NamedSession(1, "camera"), NamedSession(7, "rknnctl")};

  const Output output = SessionsOutput(report, 7);

  ASSERT_EQ(output.json.size(), 1U);
  EXPECT_THAT(Keys(output.json[0]),
              ElementsAre("id", "pid", "uid", "comm", "contexts", "buffers",
                          "jobs", "npu_us", "memory", "queue_us", "run_us",
                          "drops", "shared", "priority", "weight", "latency_us",
                          "address", "unit", "container", "allocation"));
  EXPECT_EQ(output.json[0]["comm"], "camera");
  EXPECT_THAT(output.text, Not(HasSubstr("rknnctl")));
}

TEST(ReportTest, SessionsOfOtherMachinesSayWhereTheyComeFrom) {
  wire::Report report;
  report.sessions = {NamedSession(1, "camera"), NamedSession(2, "detector"),
                     NamedSession(7, "rknnctl")};
  EXPECT_THAT(SessionsOutput(report, 7).text, Not(HasSubstr("FROM")));
  wire::SetText(report.sessions[0].unit, "camera.service");
  wire::SetText(report.sessions[1].address, "192.0.2.7:40112 (ci)");
  wire::SetText(report.sessions[2].address, "192.0.2.9:1");

  const Output output = SessionsOutput(report, 7);

  EXPECT_EQ(output.json[1]["address"], "192.0.2.7:40112 (ci)");
  EXPECT_EQ(output.json[0]["unit"], "camera.service");
  EXPECT_THAT(output.text, HasSubstr("  192.0.2.7:40112 (ci)\n"));
  EXPECT_THAT(output.text, HasSubstr("  camera.service\n"));

  const Output status = StatusOutput({}, report, 7);
  EXPECT_EQ(status.json["remote"].dump(), "[\"192.0.2.7:40112 (ci)\"]");
  EXPECT_THAT(status.text, HasSubstr("remote   192.0.2.7:40112 (ci)\n"));
}

TEST(ReportTest, StatusSaysWhatCoresDidAndWhoElseUsesThem) {
  wire::Report status;
  wire::CoreReport core{};
  core.busy_ns = 5'000'000'000;
  core.jobs = 7;
  wire::SetText(core.lent_to, "llm chat");
  status.core_reports = {core};
  wire::ForeignUser user{};
  user.pid = 812;
  wire::SetText(user.comm, "llm");
  wire::SetText(user.device, "/dev/rknpu");
  status.foreign_users = {user};
  status.jobs_dropped = 3;
  status.admitted_ppm = 425'000;

  const Output output = StatusOutput(status, {}, 0);

  EXPECT_EQ(output.json["core_use"][0]["busy_us"], 5'000'000);
  EXPECT_EQ(output.json["admitted"], 0.425);
  EXPECT_THAT(output.text,
              HasSubstr("core 0   lent to 'llm chat'; 5.0 s busy with 7 jobs"));
  EXPECT_THAT(output.text,
              HasSubstr("used beside rknnd by llm (pid 812) on /dev/rknpu"));
  EXPECT_THAT(output.text, HasSubstr("0 failed, 3 dropped\n"));
  EXPECT_THAT(output.text, HasSubstr("admitted 42.5 % of all cores"));
}

TEST(ReportTest, SessionsSayHowLongTheirJobsTook) {
  wire::Report report;
  report.sessions = {NamedSession(1, "camera")};
  EXPECT_THAT(SessionsOutput(report, 9).text, HasSubstr("  -    -  "));
  report.sessions[0].latency_count = 54;
  report.sessions[0].latency[53] = 10;

  const Output output = SessionsOutput(report, 9);

  EXPECT_NEAR(output.json[0]["latency_us"]["p50"], 11'000, 1'000);
  EXPECT_THAT(output.text, HasSubstr("11.3 ms"));
}

TEST(ReportTest, EmptyListsAreSaidInWordsAndAreStillArrays) {
  const Output output = ModelsOutput({});

  EXPECT_EQ(output.json.dump(), "[]");
  EXPECT_EQ(output.text, "no models\n");
}

TEST(ReportTest, ModelsAreKnownByTheHexOfTheirHash) {
  wire::Report report;
  report.models = {NamedModel("face.onnx")};

  const Output output = ModelsOutput(report);

  EXPECT_THAT(
      Keys(output.json[0]),
      ElementsAre("sha256", "name", "contexts", "weight", "weight_held",
                  "internal", "loads", "preloaded", "jobs", "npu_us",
                  "queue_us", "drops", "run_us", "run_by", "run_by_because"));
  std::string hex;
  for (int i = 0; i < 32; ++i) hex += "ab";
  EXPECT_EQ(output.json[0]["sha256"], hex);
  EXPECT_THAT(output.text, HasSubstr("face.onnx  abababababab"));
}

TEST(ReportTest, ModelsSayWhatIsTheirOwnAndWhichArePreloaded) {
  wire::Report report;
  report.models = {NamedModel("face.onnx"), NamedModel("follower.onnx")};
  report.models[0].weight_held = 1 << 20;
  report.models[1].weight_held = 1 << 12;
  EXPECT_THAT(ModelsOutput(report).text, Not(HasSubstr("preloaded")));
  report.models[0].preloaded = true;

  const Output output = ModelsOutput(report);

  EXPECT_EQ(output.json[1]["weight"], 1 << 20);
  EXPECT_EQ(output.json[1]["weight_held"], 1 << 12);
  EXPECT_EQ(output.json[0]["preloaded"], true);
  EXPECT_EQ(output.json[1]["preloaded"], false);
  EXPECT_THAT(output.text,
              testing::ContainsRegex("face.onnx .* 1.0 MiB .*preloaded\n"));
  EXPECT_THAT(output.text, testing::ContainsRegex("follower.* 4.0 KiB .*0\n"));
}

TEST(ReportTest, ContextsAndBuffersHaveTheNamesThatScriptsRelyOn) {
  wire::Report report;
  wire::ContextReport context{};
  context.core_mask = 3;
  context.priority = 1;
  context.has_copied = true;
  context.copied = {1024, 512, 384, 128};
  report.contexts = {context};
  wire::BufferReport buffer{};
  buffer.imported = true;
  wire::SetText(buffer.heap, "memfd");
  report.buffers = {buffer};

  const Output contexts = ContextsOutput(report);
  const Output buffers = BuffersOutput(report);

  EXPECT_THAT(Keys(contexts.json[0]),
              ElementsAre("id", "session", "model", "core_mask", "priority",
                          "jobs", "copied_bytes", "npu_us", "queue_us", "drops",
                          "queued", "policy", "rate"));
  const Json& copied = contexts.json[0]["copied_bytes"];
  EXPECT_EQ(copied["to_device"].dump(),
            R"({"inputs_set":1024,"conversion":512})");
  EXPECT_EQ(copied["from_device"].dump(),
            R"({"outputs_get":384,"conversion":128})");
  EXPECT_THAT(contexts.text, HasSubstr("  2.0 KiB\n"));
  EXPECT_EQ(contexts.json[0]["core_mask"], 3);
  EXPECT_EQ(contexts.json[0]["priority"], "medium");
  EXPECT_THAT(contexts.text, HasSubstr("0_1"));
  EXPECT_THAT(
      Keys(buffers.json[0]),
      ElementsAre("id", "session", "size", "heap", "imported", "bindings"));
  EXPECT_EQ(buffers.json[0]["imported"], true);
}

TEST(ReportTest, MemorySaysWhatSharingSaves) {
  wire::Report report;
  report.memory = {100, 50, 25, 25};
  report.unshared_total = 800;
  report.models = {NamedModel("face.onnx")};
  report.sessions = {NamedSession(1, "camera")};

  const Output output = MemoryOutput(report, 9);

  EXPECT_THAT(Keys(output.json),
              ElementsAre("kinds", "models", "sessions", "unshared_total",
                          "users", "budget"));
  EXPECT_THAT(Keys(output.json["kinds"]),
              ElementsAre("weight", "internal", "io", "other"));
  EXPECT_EQ(output.json["models"].size(), 1U);
  EXPECT_EQ(output.json["unshared_total"], 800);
  EXPECT_THAT(output.text, HasSubstr("sharing saves 600 B (75 %)"));
}

TEST(ReportTest, MemoryListsUsersAndTheBudget) {
  wire::Report report;
  report.budget = uint64_t{4} << 30;
  report.budget_used = 1 << 20;
  wire::SessionReport own = NamedSession(9, "rknnctl");
  own.uid = 1001;
  report.sessions = {own, NamedSession(1, "camera")};
  wire::UserReport user{};
  user.uid = 1000;
  user.sessions = 2;
  user.memory = 4096;
  user.memory_limit = 1 << 20;
  wire::UserReport ours{};
  ours.uid = 1001;
  ours.sessions = 1;
  report.users = {user, ours};

  const Output output = MemoryOutput(report, 9);

  ASSERT_EQ(output.json["users"].size(), 1U);
  EXPECT_THAT(Keys(output.json["users"][0]),
              ElementsAre("uid", "sessions", "contexts", "buffers", "memory",
                          "memory_limit"));
  EXPECT_EQ(output.json["users"][0]["uid"], 1000);
  EXPECT_EQ(output.json["budget"].dump(),
            R"({"total":4294967296,"used":1048576})");
  EXPECT_THAT(output.text, HasSubstr("1.0 MiB of 4.0 GiB are taken"));
}

TEST(ReportTest, MemorySaysBesideAModelWhatItWouldCostWithoutSharing) {
  wire::Report report;
  report.models = {NamedModel("face.onnx")};  // two contexts of 1 MiB
  EXPECT_THAT(MemoryOutput(report, 9).text,
              testing::ContainsRegex("WITHOUT SHARING\nface.onnx.* 2.0 MiB\n"));
}

TEST(ReportTest, NamesOfOthersCannotSteerTheTerminal) {
  wire::Report report;
  report.sessions = {NamedSession(1, "evil\x1b[2J")};

  EXPECT_THAT(SessionsOutput(report, 9).text, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace rknnd::client
