// See onnxruntime.h.

#include "bench/peers/onnxruntime.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

namespace rknnd::bench {
namespace {

using base::Code;
using base::Error;
using base::Expected;

namespace fs = std::filesystem;

constexpr base::Nanoseconds kInstallPatience = 300 * base::kSecond;
constexpr base::Nanoseconds kPatience = 120 * base::kSecond;
constexpr char kScript[] = RKNND_SOURCE_ROOT "/bench/peers/onnxruntime.mjs";

// `command` by the shell, in `folder`: neither npm nor node has an option for
// where it works that both its scripts and its modules go by.
Expected<base::ChildProcess> StartIn(const std::string& folder,
                                     const std::string& command,
                                     std::vector<std::string> arguments) {
  base::ChildProcess::Options options;
  options.arguments = {"/bin/sh", "-c",
                       "cd \"$0\" && exec " + command + " \"$@\"", folder};
  options.arguments.insert(options.arguments.end(),
                           std::make_move_iterator(arguments.begin()),
                           std::make_move_iterator(arguments.end()));
  options.dies_with_parent = true;
  return base::ChildProcess::Start(options);
}

std::string ShapeText(const std::vector<uint32_t>& shape) {
  std::string text;
  for (const uint32_t side : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(side);
  }
  return text;
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
  auto npm = StartIn(folder, "npm",
                     {"install", "--prefix", ".", "--ignore-scripts",
                      "--no-audit", "--no-fund", "--silent", kOnnxRuntime});
  if (!npm) return std::move(npm).error();
  const auto exit_code = npm->Wait(kInstallPatience);
  if (!exit_code) return exit_code.error();
  if (*exit_code == 0) return {};
  return Error{Code::kUnavailable,
               "npm cannot install " + std::string(kOnnxRuntime) +
                   " (exit code " + std::to_string(*exit_code) + ")"};
}

Expected<OnnxRuntime> OnnxRuntime::Start(const std::string& folder,
                                         const ModelSet& model) {
  std::vector<std::string> arguments = {kScript, fs::absolute(model.file)};
  for (const ModelInput& input : model.inputs) {
    arguments.insert(arguments.end(),
                     {input.name, input.type, ShapeText(input.shape),
                      fs::absolute(input.file)});
  }
  auto process = StartIn(folder, "node", std::move(arguments));
  if (!process) return std::move(process).error();
  const auto line = process->ReadLine(kPatience);
  if (!line) return line.error();
  if (*line != "ready") return Error{Code::kInternal, "it said: " + *line};
  return OnnxRuntime(*std::move(process));
}

Expected<std::vector<double>> OnnxRuntime::Run(int count) {
  const auto told = process_.WriteLine(std::to_string(count));
  if (!told) return told.error();
  const auto line = process_.ReadLine(kPatience);
  if (!line) return line.error();
  const auto times = nlohmann::json::parse(*line, nullptr, false);
  if (!times.is_array()) return Error{Code::kInternal, "it said: " + *line};
  return times.get<std::vector<double>>();
}

}  // namespace rknnd::bench
