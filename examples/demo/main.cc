// The demo: a private daemon on the software NPU, camera processes that share
// its one detector, what they see and what that costs. ./dev demo runs it.
//
//   rknnd-demo [--streams N] [--contexts N] [--seconds S] [--json]
//              [--model FILE --picture FILE] [--output-dir DIR]
//
// Without a model and a picture it takes the trained face detector and the
// photo of $RKNND_SHARED (default ../shared beside the source) when they are
// there, else the drawn ones that the build made.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "examples/demo/camera.h"

namespace rknnd::demo {
namespace {

namespace fs = std::filesystem;

struct Options {
  int streams = 2;
  int contexts = 3;
  double seconds = 3;
  bool json = false;
  std::string model, picture, output_dir;
};

// The slowest step is the first load of the detector on a small board.
constexpr base::Nanoseconds kPatience = 60 * base::kSecond;

struct Stream {
  base::ChildProcess process;
  nlohmann::json result;
};

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "rknnd-demo: %s\n", what.c_str());
  std::exit(1);
}

base::ChildProcess Start(std::vector<std::string> arguments) {
  base::ChildProcess::Options options;
  options.arguments = std::move(arguments);
  auto child = base::ChildProcess::Start(options);
  if (!child) Die(child.error().message);
  return *std::move(child);
}

std::string Line(base::ChildProcess& child, const char* who,
                 base::Nanoseconds patience) {
  auto line = child.ReadLine(patience);
  if (!line) Die(std::string(who) + ": " + line.error().message);
  return *std::move(line);
}

// What the daemon says its memory is, by kind.
nlohmann::json Memory(const std::string& programs, const std::string& target) {
  base::ChildProcess ctl =
      Start({programs + "/rknnctl", "--target", target, "--json", "mem"});
  auto text = ctl.ReadAll(kPatience);
  if (!text) Die("rknnctl mem: " + text.error().message);
  nlohmann::json memory = nlohmann::json::parse(*text, nullptr, false);
  if (memory.is_discarded()) Die("rknnctl mem gave no JSON");
  return memory;
}

uint64_t NpuBytes(const nlohmann::json& memory) {
  const auto& kinds = memory["kinds"];
  return kinds["weight"].get<uint64_t>() + kinds["internal"].get<uint64_t>();
}

uint64_t Kind(const nlohmann::json& memory, const char* kind) {
  return memory["kinds"][kind].get<uint64_t>();
}

void PrintMemory(const std::string& who, const nlohmann::json& memory) {
  constexpr double kMiB = 1024 * 1024;
  std::printf("  %-30s %10.2f %10.2f %10.2f %14.2f\n", who.c_str(),
              static_cast<double>(Kind(memory, "weight")) / kMiB,
              static_cast<double>(Kind(memory, "internal")) / kMiB,
              static_cast<double>(NpuBytes(memory)) / kMiB,
              static_cast<double>(memory["unshared_total"].get<uint64_t>() -
                                  Kind(memory, "io") - Kind(memory, "other")) /
                  kMiB);
}

void ChooseAssets(Options* options, const std::string& programs) {
  if (!options->model.empty() && !options->picture.empty()) return;
  const char* shared = std::getenv("RKNND_SHARED");
  const fs::path root =
      shared != nullptr ? shared : RKNND_SOURCE_ROOT "/../shared";
  const fs::path model = root / "models/ultraface_rfb_320/model.onnx";
  const fs::path photo = root / "images/astronaut.png";
  if (fs::exists(model) && fs::exists(photo)) {
    options->model = model.lexically_normal();
    options->picture = photo.lexically_normal();
    return;
  }
  const fs::path assets =
      (fs::path(programs) / "../share/demo").lexically_normal();
  options->model = assets / "drawn_faces.onnx";
  options->picture = assets / "drawn_faces.png";
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share *
                                    static_cast<double>(values.size() - 1))];
}

int RunDemo(Options options) {
  const std::string programs = base::ProgramFolder();
  ChooseAssets(&options, programs);
  fs::create_directories(options.output_dir);
  auto folder = base::TemporaryFolder::Make();
  if (!folder) Die(folder.error().message);
  const std::string socket = folder->path() + "/session.sock";
  const std::string target = "unix:" + socket;
  setenv("RKNND_TARGET", target.c_str(), 1);

  base::ChildProcess daemon =
      Start({programs + "/rknnd", "--socket", socket, "--device", "soft",
             "--cache-dir", folder->path() + "/cache", "--log-level", "2"});
  if (!base::WaitForServer(socket, daemon, kPatience)) {
    Die("the daemon did not start");
  }

  // One after the other, so that what each adds can be seen.
  std::vector<Stream> streams;
  nlohmann::json one, all;
  for (int i = 0; i < options.streams; ++i) {
    const std::string output =
        options.output_dir + "/stream-" + std::to_string(i) + ".png";
    Stream stream;
    stream.process =
        Start({programs + "/rknnd-demo", "--camera", std::to_string(i),
               "--contexts", std::to_string(options.contexts), "--seconds",
               std::to_string(options.seconds), "--model", options.model,
               "--picture", options.picture, "--output", output});
    if (Line(stream.process, "camera", kPatience) != "ready") {
      Die("a camera is not ready");
    }
    streams.push_back(std::move(stream));
    all = Memory(programs, target);
    if (i == 0) one = all;
  }

  for (Stream& stream : streams) {
    const auto written = stream.process.WriteLine("film");
    if (!written) Die(written.error().message);
  }
  const auto film =
      static_cast<base::Nanoseconds>(options.seconds * double{base::kSecond});
  std::vector<double> latencies;
  double fps = 0, frames = 0, copied = 0;
  for (Stream& stream : streams) {
    stream.result = nlohmann::json::parse(
        Line(stream.process, "camera", film + kPatience), nullptr, false);
    if (stream.result.is_discarded()) Die("a camera gave no result");
    const auto of_stream =
        stream.result["latencies_us"].get<std::vector<double>>();
    latencies.insert(latencies.end(), of_stream.begin(), of_stream.end());
    fps += stream.result["fps"].get<double>();
    frames += stream.result["frames"].get<double>();
    copied += stream.result["tensor_bytes_copied"].get<double>();
  }

  if (!options.json) {
    std::printf("\n%d camera processes, one detector ('%s'), zero-copy\n",
                options.streams, options.model.c_str());
    std::printf("  %-10s %8s %10s %10s %6s  %s\n", "stream", "fps", "p50 ms",
                "p99 ms", "boxes", "picture");
    for (size_t i = 0; i < streams.size(); ++i) {
      const nlohmann::json& r = streams[i].result;
      const auto times = r["latencies_us"].get<std::vector<double>>();
      std::printf("  camera %-3zu %8.1f %10.2f %10.2f %6zu  %s\n", i,
                  r["fps"].get<double>(), Percentile(times, 0.5) / 1000,
                  Percentile(times, 0.99) / 1000, r["boxes"].get<size_t>(),
                  r["picture"].get<std::string>().c_str());
    }
    std::printf("\n  %-30s %10s %10s %10s %14s\n", "NPU memory, MiB", "weights",
                "internal", "together", "unshared");
    const std::string each =
        " x " + std::to_string(options.contexts) + " contexts";
    PrintMemory("1 process" + each, one);
    if (options.streams > 1) {
      PrintMemory(std::to_string(options.streams) + " processes" + each, all);
    }
    std::printf("\ntensor bytes copied per frame: %.0f\n", copied / frames);
    return 0;
  }
  const nlohmann::json summary = {
      {"streams", options.streams},
      {"contexts", options.contexts},
      {"fps", fps},
      {"latency_us",
       {{"p50", Percentile(latencies, 0.5)},
        {"p99", Percentile(latencies, 0.99)}}},
      {"tensor_bytes_copied_per_frame", static_cast<uint64_t>(copied / frames)},
      {"memory", {{"one_process", NpuBytes(one)}, {"rknnd", NpuBytes(all)}}}};
  std::puts(summary.dump().c_str());
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Cameras that share one detector through rknnd");
  Options options;
  options.output_dir = "build/demo";
  CameraOptions camera;
  camera.number = -1;
  app.add_option("--streams", options.streams, "camera processes")
      ->check(CLI::Range(1, 64));
  app.add_option("--contexts", options.contexts, "contexts in each")
      ->check(CLI::Range(1, 64));
  app.add_option("--seconds", options.seconds, "how long to film")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_flag("--json", options.json, "one line of JSON instead of the table");
  app.add_option("--model", options.model, "an SSD face detector (ONNX)");
  app.add_option("--picture", options.picture, "what the cameras look at");
  app.add_option("--output-dir", options.output_dir, "where pictures go");
  app.add_option("--camera", camera.number, "be this camera")->group("");
  app.add_option("--output", camera.output, "the camera's picture")->group("");
  CLI11_PARSE(app, argc, argv);
  if (camera.number < 0) return RunDemo(options);
  camera.contexts = options.contexts;
  camera.seconds = options.seconds;
  camera.model = options.model;
  camera.picture = options.picture;
  return RunCamera(camera);
}

}  // namespace
}  // namespace rknnd::demo

int main(int argc, char** argv) { return rknnd::demo::Main(argc, argv); }
