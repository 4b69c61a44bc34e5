#include "daemon/metrics/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "base/posix/latency_buckets.h"

namespace rknnd::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Text(const BoardFigures& figures) {
  return prometheus::TextSerializer().Serialize(ToFamilies(figures));
}

BoardFigures SomeFigures() {
  BoardFigures figures;
  figures.version = "1.2.3";
  figures.status.device.kind = "soft";
  figures.status.device.soc = "rk3588";
  figures.status.cores.resize(3);
  figures.status.cores[1].busy = 1500 * base::kMillisecond;
  figures.status.cores[1].jobs = 7;
  figures.status.memory.weight = 4096;
  core::SessionReport session;
  session.id = 9;
  session.peer.pid = 321;
  session.peer.comm = "front \"door\"\n";
  session.peer.unit = "frigate.service";
  session.peer.container = "0123456789ab";
  session.npu_us = 2'500'000;
  figures.memory.sessions.push_back(session);
  return figures;
}

TEST(FamiliesTest, TimesAreSecondsAndSizesBytes) {
  const std::string text = Text(SomeFigures());
  EXPECT_THAT(text,
              HasSubstr("rknnd_npu_busy_seconds_total{core=\"1\"} 1.5\n"));
  EXPECT_THAT(text, HasSubstr("rknnd_npu_jobs_total{core=\"1\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("rknnd_memory_bytes{kind=\"weight\"} 4096\n"));
}

TEST(FamiliesTest, SessionsAreNamedByAllThatIsKnownOfThem) {
  EXPECT_THAT(
      Text(SomeFigures()),
      HasSubstr("rknnd_session_npu_seconds_total{session=\"9\",pid=\"321\","
                "uid=\"0\",comm=\"front \\\"door\\\"\\n\",unit=\"frigate."
                "service\",container=\"0123456789ab\",address=\"\"} 2.5\n"));
}

TEST(FamiliesTest, NamesThatAreNoUtf8SpoilNoScrape) {
  BoardFigures figures = SomeFigures();
  figures.memory.sessions.front().peer.comm = "cam\xFF";
  core::ModelReport model;
  model.name = "Gr\xC3\xB6\xC3.onnx";
  figures.memory.models.push_back(model);
  const std::string text = Text(figures);
  EXPECT_THAT(text, HasSubstr("comm=\"cam?\""));
  EXPECT_THAT(text, HasSubstr("model=\"Gr\xC3\xB6?.onnx\""));
}

TEST(FamiliesTest, EveryNameHasOneFamilyWithHelpAndUnit) {
  std::set<std::string> names;
  for (const auto& family : ToFamilies(SomeFigures())) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_THAT(family.name, ::testing::StartsWith("rknnd_"));
    EXPECT_FALSE(family.help.empty()) << family.name;
    const bool total = family.name.ends_with("_total");
    EXPECT_EQ(total, family.type == prometheus::MetricType::Counter)
        << family.name;
  }
  EXPECT_GT(names.size(), 30U);
}

TEST(FamiliesTest, HistogramsCountUpToTheirTotal) {
  BoardFigures figures = SomeFigures();
  core::TimesReport& times = figures.jobs.total;
  times.counts.resize(base::kLatencyBuckets);
  // 3 us, 2 ms, and longer than all bounds.
  times.counts[base::LatencyBucketOf(3 * base::kMicrosecond)] = 5;
  times.counts[base::LatencyBucketOf(2 * base::kMillisecond)] = 4;
  times.counts[base::kLatencyBuckets - 1] = 1;
  times.sum = 20 * base::kSecond;
  const std::string text = Text(figures);
  EXPECT_THAT(text, HasSubstr("rknnd_job_latency_seconds_count 10\n"));
  EXPECT_THAT(text, HasSubstr("rknnd_job_latency_seconds_sum 20\n"));
  EXPECT_THAT(text,
              HasSubstr("rknnd_job_latency_seconds_bucket{le=\"+Inf\"} 10\n"));
  EXPECT_THAT(text,
              HasSubstr("rknnd_job_latency_seconds_bucket{le=\"2e-06\"} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("rknnd_job_latency_seconds_bucket{le=\"4e-06\"} 5\n"));
  EXPECT_THAT(
      text, HasSubstr("rknnd_job_latency_seconds_bucket{le=\"0.004096\"} 9\n"));
}

TEST(FamiliesTest, ErrorsAreThereBeforeTheirFirst) {
  BoardFigures figures = SomeFigures();
  figures.jobs
      .answers[static_cast<size_t>(absl::StatusCode::kDeadlineExceeded)] = 3;
  const std::string text = Text(figures);
  EXPECT_THAT(
      text,
      HasSubstr("rknnd_job_failures_total{code=\"deadline_exceeded\"} 3"));
  EXPECT_THAT(text, HasSubstr("rknnd_job_failures_total{code=\"internal\"} 0"));
  EXPECT_THAT(text,
              HasSubstr("rknnd_request_failures_total{code=\"not_found\"} 0"));
  EXPECT_THAT(text, Not(HasSubstr("code=\"ok\"")));
}

// Names in `text` that begin with rknnd_.
std::set<std::string> NamesIn(const std::string& text) {
  std::set<std::string> names;
  const std::regex name("rknnd_[a-z_]+");
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end;
       ++it) {
    names.insert(it->str());
  }
  return names;
}

std::string FileOfTree(const std::string& path) {
  std::ifstream file(std::string(RKNND_SOURCE_ROOT) + "/" + path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(FamiliesTest, DashboardAsksForWhatIsThere) {
  std::set<std::string> there;
  for (const auto& family : ToFamilies(SomeFigures())) {
    there.insert(family.name);
    if (family.type != prometheus::MetricType::Histogram) continue;
    for (const char* part : {"_bucket", "_sum", "_count"}) {
      there.insert(family.name + part);
    }
  }
  const auto asked = NamesIn(FileOfTree("packaging/grafana/rknnd.json"));
  EXPECT_GT(asked.size(), 15U);
  for (const std::string& name : asked) {
    EXPECT_TRUE(there.contains(name)) << name;
  }
}

TEST(FamiliesTest, EveryFamilyIsInTheManual) {
  const auto told = NamesIn(FileOfTree("docs/metrics.md"));
  for (const auto& family : ToFamilies(SomeFigures())) {
    EXPECT_TRUE(told.contains(family.name)) << family.name;
  }
}

TEST(FamiliesTest, WhatTheKernelTellsOfTheNpu) {
  BoardFigures figures = SomeFigures();
  EXPECT_THAT(Text(figures), Not(HasSubstr("npu_clock_hertz")));
  figures.npu.load = {0, 37};
  figures.npu.hertz = 1000000000;
  figures.npu.microvolts = 850000;
  figures.npu.celsius = 45.5;
  figures.npu.power = "suspended";
  EXPECT_THAT(Text(figures),
              ::testing::AllOf(
                  HasSubstr("rknnd_npu_kernel_load_ratio{core=\"1\"} 0.37\n"),
                  HasSubstr("rknnd_npu_clock_hertz 1000000000\n"),
                  HasSubstr("rknnd_npu_volts 0.85\n"),
                  HasSubstr("rknnd_npu_celsius 45.5\n"),
                  HasSubstr("rknnd_npu_powered 0\n")));
  EXPECT_THAT(Text(figures), Not(HasSubstr("npu_kernel_sram_used_bytes")));
}

}  // namespace
}  // namespace rknnd::metrics
