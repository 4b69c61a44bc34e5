// See onnxruntime.h.

#include "bench/peers/onnxruntime.h"

#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "bench/peers/marked_library.h"

namespace rknnd::bench {
namespace {

using base::Code;
using base::Error;
using base::Expected;

namespace fs = std::filesystem;

constexpr base::Nanoseconds kInstallPatience = 300 * base::kSecond;
constexpr char kScript[] = RKNND_SOURCE_ROOT "/bench/peers/onnxruntime.mjs";

// `command` by the shell, in `folder`: neither npm nor node has an option for
// where it works that both its scripts and its modules go by.
base::ChildProcess::Options In(const std::string& folder,
                               const std::string& command,
                               std::vector<std::string> arguments) {
  base::ChildProcess::Options options;
  options.arguments = {"/bin/sh", "-c",
                       "cd \"$0\" && exec " + command + " \"$@\"", folder};
  options.arguments.insert(options.arguments.end(),
                           std::make_move_iterator(arguments.begin()),
                           std::make_move_iterator(arguments.end()));
  options.dies_with_parent = true;
  return options;
}

// The library that its installed package loads, and the copy that is loaded in
// its place for a level that is not the CPU's own.
std::string Library(const std::string& folder) {
  return folder +
         "/node_modules/onnxruntime-node/bin/napi-v6/linux/x64/"
         "libonnxruntime.so.1";
}

std::string MarkedLibrary(const std::string& folder) {
  return folder + "/libonnxruntime-marked.so.1";
}

}  // namespace

Expected<void> InstallOnnxRuntime(const std::string& folder) {
  std::error_code failed;
  if (fs::exists(folder + "/node_modules/onnxruntime-node/package.json",
                 failed)) {
    return {};
  }
  fs::create_directories(folder, failed);
  // Its install script would fetch libraries for GPUs.
  auto npm = base::ChildProcess::Start(
      In(folder, "npm",
         {"install", "--prefix", ".", "--ignore-scripts", "--no-audit",
          "--no-fund", "--silent", kOnnxRuntime}));
  if (!npm) return std::move(npm).error();
  const auto exit_code = npm->Wait(kInstallPatience);
  if (!exit_code) return exit_code.error();
  if (*exit_code == 0) return {};
  return Error{Code::kUnavailable,
               "npm cannot install " + std::string(kOnnxRuntime) +
                   " (exit code " + std::to_string(*exit_code) + ")"};
}

Expected<void> PrepareForOlderCpus(const std::string& folder) {
  std::error_code failed;
  if (fs::exists(MarkedLibrary(folder), failed)) return {};
  return MarkCpuid(Library(folder), MarkedLibrary(folder));
}

Side StartOnnxRuntime(const std::string& folder, const ModelSet& model,
                      const Level& level, int threads) {
  std::vector<std::string> arguments = SideArguments(model, threads);
  arguments.insert(arguments.begin(), kScript);
  base::ChildProcess::Options options =
      In(folder, "node", std::move(arguments));
  if (level.older != nullptr) {
    // Node.js takes a file for a module by its ending.
    options.environment = {
        {kOlderModuleVariable,
         base::ProgramFolder() + "/../lib/rknnd-older-cpu.node"},
        {kOlderCpuVariable, std::string(level.older->name)},
        {kOlderLibraryVariable, fs::absolute(MarkedLibrary(folder))}};
  }
  return Side("ONNX Runtime", options);
}

}  // namespace rknnd::bench
