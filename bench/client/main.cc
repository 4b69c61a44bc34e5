// What the client library costs the program that loads it, and what an idle
// daemon costs the board.
//
//   rknnd-bench-client [--out FILE] [--idle-seconds N]

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/common/cpu_use.h"
#include "bench/common/failure.h"
#include "bench/common/one_operator.h"
#include "client/launch/launcher.h"

namespace rknnd::bench {
namespace {

std::string Output(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) Fail("popen");
  char buffer[4096];
  size_t count = 0;
  while ((count = fread(buffer, 1, sizeof buffer, pipe)) > 0) {
    text.append(buffer, count);
  }
  pclose(pipe);
  return text;
}

uint64_t StrippedSize(const std::string& library) {
  const base::TemporaryFolder folder = client::MakeTemporaryFolder();
  const std::string stripped = folder.path() + "/stripped.so";
  Output("strip -o '" + stripped + "' '" + library + "'");
  return std::filesystem::file_size(stripped);
}

// Bytes of this process that no other shares.
uint64_t PrivateBytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  uint64_t total = 0;
  for (std::string line; std::getline(file, line);) {
    unsigned long kib = 0;
    if (std::sscanf(line.c_str(), "Private_Clean: %lu kB", &kib) == 1 ||
        std::sscanf(line.c_str(), "Private_Dirty: %lu kB", &kib) == 1) {
      total += uint64_t{kib} * 1024;
    }
  }
  return total;
}

int Main(int argc, char** argv) {
  CLI::App app("Costs of the client library and of an idle daemon");
  std::string out;
  unsigned idle_seconds = 60;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--idle-seconds", idle_seconds, "how long to watch it idle");
  CLI11_PARSE(app, argc, argv);

  const std::string library = base::ProgramFolder() + "/../lib/librknnrt.so";
  const client::PrivateDaemon daemon{client::Launcher()};
  setenv("RKNND_TARGET", daemon.target().c_str(), 1);
  const uint64_t before = PrivateBytes();
  std::optional<OneOperatorContext> context(std::in_place);
  if (rknn_run(context->get(), nullptr) != RKNN_SUCC) Fail("rknn_run");
  const uint64_t after = PrivateBytes();
  // The last reply's epilogue is over when the daemon has slept once more.
  sleep(1);
  // Once for every time that a thread of it was woken.
  const CpuUse use_before = UseOf(daemon.pid());
  sleep(idle_seconds);
  const auto wakeups =
      static_cast<uint64_t>((UseOf(daemon.pid()) - use_before).sleeps);

  const nlohmann::json figures = {
      {"library_stripped_bytes", StrippedSize(library)},
      {"library_needed",
       Output("readelf -d '" + library +
              "' | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p' | tr '\\n' ' '")},
      {"first_context_private_bytes",
       after > before ? after - before : uint64_t{0}},
      {"idle_seconds", idle_seconds},
      {"idle_wakeups", wakeups}};
  std::printf("librknnrt.so stripped      %8.1f KiB\n",
              figures["library_stripped_bytes"].get<double>() / 1024);
  std::printf("  needs                    %s\n",
              figures["library_needed"].get<std::string>().c_str());
  std::printf("first context, private     %8.1f KiB\n",
              figures["first_context_private_bytes"].get<double>() / 1024);
  std::printf("daemon, idle for %u s      %8llu wake-ups\n", idle_seconds,
              static_cast<unsigned long long>(wakeups));
  if (!out.empty()) WriteFigures(out, figures);
  return 0;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  return rknnd::bench::RunMain("client",
                               [&] { return rknnd::bench::Main(argc, argv); });
}
