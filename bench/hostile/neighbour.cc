// See neighbour.h.

#include "bench/hostile/neighbour.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/common/failure.h"
#include "bench/common/measures.h"
#include "bench/hostile/frames.h"
#include "client/include/rknn_api.h"
#include "client/launch/launcher.h"

namespace rknnd::bench {
namespace {

constexpr double kPeriod = 0.01, kPatience = 60;

// What the thread that runs tells the one that answers.
struct Record {
  std::mutex mutex;
  std::condition_variable answered;
  std::vector<double> ms;
  double running_since = 0;  // 0: none runs
  double last_answer = 0, longest_gap = 0;
  int answers = 0, errors = 0, wrong = 0;
  std::string reason;
};

void RunFrames(Frames& frames, Record& record) {
  double next = SecondsNow();
  for (int frame = 0;; ++frame) {
    next += kPeriod;
    // Those that were missed are not made up for.
    if (next < SecondsNow()) next = SecondsNow();
    SleepFor(next - SecondsNow());
    frames.Prepare(frame);
    const double start = SecondsNow();
    {
      const std::lock_guard<std::mutex> lock(record.mutex);
      record.running_since = start;
    }
    const int code = frames.Run();
    const double end = SecondsNow();
    const bool right = frames.IsRight(frame);
    const std::lock_guard<std::mutex> lock(record.mutex);
    record.running_since = 0;
    record.ms.push_back((end - start) * 1e3);
    if (code != RKNN_SUCC) {
      if (record.errors++ == 0) {
        record.reason = std::to_string(code) + " " + rknnd_last_error();
      }
      continue;
    }
    if (!right) ++record.wrong;
    ++record.answers;
    record.longest_gap = std::max(record.longest_gap, end - record.last_answer);
    record.last_answer = end;
    record.answered.notify_all();
  }
}

nlohmann::json ToJson(Record& record) {
  const std::lock_guard<std::mutex> lock(record.mutex);
  const double now = SecondsNow();
  std::vector<double> ms = record.ms;
  if (record.running_since > 0 && now - record.running_since > kPeriod) {
    ms.push_back((now - record.running_since) * 1e3);
  }
  return {{"p50", Percentile(ms, 0.5)},
          {"p99", Percentile(ms, 0.99)},
          {"gap", std::max(record.longest_gap, now - record.last_answer) * 1e3},
          {"runs", ms.size()},
          {"errors", record.errors},
          {"wrong", record.wrong},
          {"reason", record.reason}};
}

void Clear(Record& record, bool times_only) {
  const std::lock_guard<std::mutex> lock(record.mutex);
  record.ms.clear();
  if (times_only) return;
  record.last_answer = SecondsNow();
  record.longest_gap = 0;
  record.errors = record.wrong = 0;
  record.reason.clear();
}

nlohmann::json AwaitNext(Record& record, double seconds) {
  std::unique_lock<std::mutex> lock(record.mutex);
  const double start = SecondsNow();
  const int before = record.answers;
  const bool came =
      record.answered.wait_for(lock, std::chrono::duration<double>(seconds),
                               [&] { return record.answers > before; });
  return {{"seconds", came ? SecondsNow() - start : -1.0}};
}

}  // namespace

int RunNeighbour() {
  Frames frames;
  Record record;
  frames.Prepare(0);
  if (frames.Run() != RKNN_SUCC) Fail("rknn_run");
  Clear(record, false);
  std::thread([&] { RunFrames(frames, record); }).detach();
  std::puts("ready");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json said = nlohmann::json::object();
    if (line == "begin") Clear(record, false);
    if (line == "times") Clear(record, true);
    if (line == "end") said = ToJson(record);
    if (line.rfind("next ", 0) == 0) {
      said = AwaitNext(record, std::stod(line.substr(5)));
    }
    std::puts(said.dump().c_str());
    std::fflush(stdout);
  }
  std::_Exit(0);
}

Neighbour::Neighbour(const std::string& target) {
  const client::Launcher launcher;
  process_ = launcher.Start({"rknnd-bench-hostile", "--role", "neighbour"},
                            {{"RKNND_TARGET", target}});
  const std::string line = launcher.NextLine(
      process_, "the neighbour",
      static_cast<base::Nanoseconds>(kPatience) * base::kSecond);
  if (line != "ready") throw std::runtime_error("the neighbour said: " + line);
}

std::string Neighbour::Ask(const std::string& what, double patience) {
  if (!process_.WriteLine(what)) {
    throw std::runtime_error("the neighbour has ended");
  }
  return client::Launcher().NextLine(
      process_, "the neighbour",
      static_cast<base::Nanoseconds>((patience + kPatience) * 1e9));
}

void Neighbour::Begin() { Ask("begin", 0); }
void Neighbour::BeginTimes() { Ask("times", 0); }

Serving Neighbour::End() {
  const auto said = nlohmann::json::parse(Ask("end", 0));
  Serving serving;
  serving.p50_ms = said.at("p50");
  serving.p99_ms = said.at("p99");
  serving.gap_ms = said.at("gap");
  serving.runs = said.at("runs");
  serving.errors = said.at("errors");
  serving.wrong = said.at("wrong");
  serving.reason = said.at("reason");
  return serving;
}

double Neighbour::AwaitAnswer(double seconds) {
  return nlohmann::json::parse(Ask("next " + std::to_string(seconds), seconds))
      .at("seconds");
}

}  // namespace rknnd::bench
