// See churn.h.

#include "bench/memory/churn.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>

#include "base/posix/clock.h"
#include "bench/common/failure.h"
#include "bench/common/one_operator.h"
#include "client/include/rknn_api.h"

namespace rknnd::bench {
namespace {

// Of a memory: more than a page, less than what the daemon's pager makes.
constexpr uint32_t kBytes = 16 << 10;
// Until allocators and tables have the size they stay at.
constexpr int kFirst = 2000;
// What three bytes a round would exceed, of a hundred thousand.
constexpr double kMostLeft = 256 * 1024;

struct Use {
  long fds = 0, mappings = 0, rss = 0;
};

Use UseOf(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  Use use;
  const std::filesystem::directory_iterator fds(process + "/fd");
  use.fds = std::distance(begin(fds), end(fds));
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);) ++use.mappings;
  std::ifstream status(process + "/status");
  for (std::string line; std::getline(status, line);) {
    long kib = 0;
    if (std::sscanf(line.c_str(), "VmRSS: %ld kB", &kib) == 1) {
      use.rss = kib * 1024;
    }
  }
  return use;
}

void Check(int code, const char* what) {
  if (code != RKNN_SUCC) Fail(what);
}

class Churn {
 public:
  Churn(pid_t daemon, int rounds) : daemon_(daemon), rounds_(rounds) {}

  nlohmann::json Measure(const char* what, const std::function<void()>& round) {
    for (int i = 0; i < kFirst; ++i) round();
    const Use daemon = UseOf(daemon_);
    const Use client = UseOf(getpid());
    const base::MonotonicClock clock;
    const base::Nanoseconds begin = clock.Now();
    for (int i = 0; i < rounds_; ++i) round();
    const double us = static_cast<double>(clock.Now() - begin) / 1000 / rounds_;
    const nlohmann::json in_daemon = Left(UseOf(daemon_), daemon);
    const nlohmann::json in_client = Left(UseOf(getpid()), client);
    const bool holds = in_daemon.at("holds") && in_client.at("holds");
    std::printf("%d %-10s %6.1f us each; left in the daemon %s, here %s%s\n",
                rounds_, what, us, Words(in_daemon).c_str(),
                Words(in_client).c_str(), holds ? "" : "  (something is left)");
    return {{"rounds", rounds_},
            {"us", us},
            {"daemon", in_daemon},
            {"client", in_client},
            {"holds", holds}};
  }

 private:
  static nlohmann::json Left(const Use& after, const Use& before) {
    const long fds = after.fds - before.fds;
    const long mappings = after.mappings - before.mappings;
    const long rss = after.rss - before.rss;
    return {{"fds", fds},
            {"mappings", mappings},
            {"rss", rss},
            // An allocator may split or join a mapping of its own.
            {"holds", fds <= 0 && mappings <= 1 &&
                          static_cast<double>(rss) <= kMostLeft}};
  }
  static std::string Words(const nlohmann::json& left) {
    char text[96];
    std::snprintf(text, sizeof text, "%+ld fds %+ld mappings %+ld KiB",
                  left.at("fds").get<long>(), left.at("mappings").get<long>(),
                  left.at("rss").get<long>() / 1024);
    return text;
  }

  const pid_t daemon_;
  const int rounds_;
};

}  // namespace

nlohmann::json MeasureChurn(const std::string& model, pid_t daemon,
                            int rounds) {
  std::string path = model;
  rknn_context context = 0;
  Check(rknn_init(&context, path.data(), 0, 0, nullptr), "rknn_init");
  Churn churn(daemon, rounds);
  nlohmann::json figures;
  figures["memories"] = churn.Measure("memories", [&] {
    rknn_tensor_mem* const memory = rknn_create_mem(context, kBytes);
    if (memory == nullptr) Fail("rknn_create_mem");
    Check(rknn_destroy_mem(context, memory), "rknn_destroy_mem");
  });
  rknn_tensor_mem* const shared = rknn_create_mem(context, kBytes);
  if (shared == nullptr) Fail("rknn_create_mem");
  figures["imports"] = churn.Measure("imports", [&] {
    rknn_tensor_mem* const memory = rknn_create_mem_from_fd(
        context, shared->fd, shared->virt_addr, kBytes, 0);
    if (memory == nullptr) Fail("rknn_create_mem_from_fd");
    Check(rknn_destroy_mem(context, memory), "rknn_destroy_mem");
  });
  Check(rknn_destroy_mem(context, shared), "rknn_destroy_mem");
  // A small one, so that what is measured is not the hash of its bytes.
  std::string small = OneOperatorModel();
  figures["contexts"] = churn.Measure("contexts", [&] {
    rknn_context made = 0;
    Check(rknn_init(&made, small.data(), static_cast<uint32_t>(small.size()), 0,
                    nullptr),
          "rknn_init");
    Check(rknn_destroy(made), "rknn_destroy");
  });
  figures["duplicates"] = churn.Measure("duplicates", [&] {
    rknn_context twin = 0;
    Check(rknn_dup_context(&context, &twin), "rknn_dup_context");
    Check(rknn_destroy(twin), "rknn_destroy");
  });
  Check(rknn_destroy(context), "rknn_destroy");
  bool holds = true;
  for (const auto& [what, figure] : figures.items()) {
    holds = holds && figure.at("holds").get<bool>();
  }
  figures["holds"] = holds;
  return figures;
}

}  // namespace rknnd::bench
