// See side.h.

#include "bench/peers/side.h"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "client/image/file.h"

namespace rknnd::bench {
namespace {

// A large model is read, and run at its slowest.
constexpr base::Nanoseconds kPatience = 300 * base::kSecond;

}  // namespace

Side::Side(std::string name, const base::ChildProcess::Options& options)
    : name_(std::move(name)) {
  auto process = base::ChildProcess::Start(options);
  if (!process)
    throw std::runtime_error(name_ + ": " + process.error().message);
  process_ = *std::move(process);
  const std::string line = NextLine();
  if (line != "ready") throw std::runtime_error(name_ + ": " + line);
  process_.Signal(SIGSTOP);
}

Side::~Side() { process_.Signal(SIGCONT); }

std::vector<double> Side::Run(int count) {
  const std::string line = Ask("run " + std::to_string(count));
  const auto times = nlohmann::json::parse(line, nullptr, false);
  if (!times.is_array()) throw std::runtime_error(name_ + ": " + line);
  return times.get<std::vector<double>>();
}

std::vector<std::vector<float>> Side::Outputs() {
  const auto folder = base::TemporaryFolder::Make();
  if (!folder) throw std::runtime_error(folder.error().message);
  const std::string line = Ask("outputs " + folder->path());
  const auto count = nlohmann::json::parse(line, nullptr, false);
  if (!count.is_number()) throw std::runtime_error(name_ + ": " + line);
  std::vector<std::vector<float>> outputs;
  for (int i = 0; i < count.get<int>(); ++i) {
    const auto bytes =
        client::ReadFile(folder->path() + "/" + std::to_string(i) + ".bin");
    if (!bytes) throw std::runtime_error(bytes.error().message);
    std::vector<float>& values = outputs.emplace_back();
    values.resize(bytes->size() / sizeof(float));
    std::memcpy(values.data(), bytes->data(), values.size() * sizeof(float));
  }
  return outputs;
}

std::string Side::Ask(const std::string& line) {
  process_.Signal(SIGCONT);
  const auto told = process_.WriteLine(line);
  if (!told) throw std::runtime_error(name_ + ": " + told.error().message);
  std::string answer = NextLine();
  process_.Signal(SIGSTOP);
  return answer;
}

std::string Side::NextLine() {
  auto line = process_.ReadLine(kPatience);
  if (!line) throw std::runtime_error(name_ + ": " + line.error().message);
  return *std::move(line);
}

std::string ShapeText(const std::vector<uint32_t>& shape) {
  std::string text;
  for (const uint32_t side : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(side);
  }
  return text;
}

std::vector<std::string> SideArguments(const ModelSet& model, int threads) {
  std::vector<std::string> arguments = {std::filesystem::absolute(model.file),
                                        std::to_string(threads)};
  for (const ModelInput& input : model.inputs) {
    arguments.insert(arguments.end(),
                     {input.name, input.type, ShapeText(input.shape),
                      std::filesystem::absolute(input.file)});
  }
  return arguments;
}

}  // namespace rknnd::bench
