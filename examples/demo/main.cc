// The demo: what sharing saves, measured as the published measurement of
// rknn_dup_context was, and then camera processes that share one detector
// through a private daemon on the software NPU. ./dev demo runs it.
//
//   rknnd-demo [--streams N] [--contexts N] [--seconds S] [--rate R] [--json]
//              [--output-dir DIR] [--model FILE --picture FILE]
//              [--config FILE]
//
// The program starts itself again, as cameras (--camera).

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/clock.h"
#include "base/posix/interrupts.h"
#include "client/ctl/verbs/finite_range.h"
#include "client/launch/launcher.h"
#include "client/launch/memory_rows.h"
#include "examples/demo/camera.h"
#include "examples/demo/figures.h"
#include "examples/demo/frame_rate.h"
#include "examples/demo/stream_table.h"

namespace rknnd::demo {
namespace {

namespace fs = std::filesystem;

using client::MemoryRow;

// The slowest step of a camera is the load of its detectors on a small board.
constexpr base::Nanoseconds kPatience = 60 * base::kSecond;

struct Options {
  int streams = 4;
  int contexts = 3;
  double seconds = 10;
  double rate = 30;  // the highest
  bool json = false;
  std::string model, picture, output_dir;
  std::string config;  // of the daemon
};

struct FilmFigures {
  rknnd_memory memory{};  // of all cameras together
  double rate = 0;        // of each, in the end
  std::vector<StreamFigures> streams;
};

// Before anything is filmed: the pictures come last.
void MakeOutputFolder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::string probe = folder + "/.rknnd-demo-XXXXXX";
  if (!error) {
    const int fd = mkostemp(probe.data(), O_CLOEXEC);
    if (fd < 0) error = std::error_code(errno, std::generic_category());
    if (fd >= 0) {
      close(fd);
      unlink(probe.c_str());
    }
  }
  if (error) {
    throw std::runtime_error("cannot write pictures to '" + folder +
                             "': " + error.message() +
                             "; name another folder with --output-dir");
  }
}

std::string Name(size_t camera) { return "camera " + std::to_string(camera); }

// Starts the cameras one after the other, so that the last one's word on
// memory, which goes to `memory`, counts all of them.
std::vector<base::ChildProcess> StartCameras(const client::Launcher& launcher,
                                             const Options& options,
                                             const std::string& target,
                                             rknnd_memory& memory) {
  std::vector<base::ChildProcess> cameras;
  for (int i = 0; i < options.streams; ++i) {
    const std::string number = std::to_string(i);
    const std::string who = Name(cameras.size());
    cameras.push_back(
        launcher.Start({"rknnd-demo", "--camera", number, "--contexts",
                        std::to_string(options.contexts), "--seconds",
                        std::to_string(options.seconds), "--model",
                        options.model, "--picture", options.picture, "--output",
                        options.output_dir + "/stream-" + number + ".png"},
                       {{"RKNND_TARGET", target}}));
    const auto held =
        client::ToMemory(launcher.NextLine(cameras.back(), who, kPatience));
    if (!held) throw std::runtime_error(who + " gave no figures");
    memory = *held;
  }
  return cameras;
}

void Tell(std::vector<base::ChildProcess>& cameras,
          const std::string& command) {
  for (base::ChildProcess& camera : cameras) {
    // One that has filmed to its end needs no word any more; one that has ended
    // too soon is noticed where its next line is read.
    static_cast<void>(camera.WriteLine(command));
  }
}

StreamFigures NextFigures(const client::Launcher& launcher,
                          std::vector<base::ChildProcess>& cameras, size_t i) {
  auto figures =
      ToStreamFigures(launcher.NextLine(cameras[i], Name(i), kPatience));
  if (!figures) throw std::runtime_error(Name(i) + " gave no figures");
  return *std::move(figures);
}

// How many frames a second the cameras compute together, each as fast as it
// can.
double Measure(const client::Launcher& launcher,
               std::vector<base::ChildProcess>& cameras) {
  // In lines of half a second: long enough for a fast machine; and on a slow
  // one until all of the frames that were begun at first have ended, but not
  // for ever.
  constexpr int kShortest = 2, kLongest = 20;
  Tell(cameras, "measure");
  for (int lines = 1;; ++lines) {
    double fps = 0;
    bool all = true;
    for (size_t i = 0; i < cameras.size(); ++i) {
      const StreamFigures figures = NextFigures(launcher, cameras, i);
      fps += figures.fps;
      all = all && figures.frames >= kFramesInFlight;
    }
    if (lines >= kShortest && fps > 0 && (all || lines >= kLongest)) return fps;
  }
}

// As people write it: "29", "1.5", "0.05".
std::string Number(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), value < 10 ? "%.2g" : "%.0f", value);
  return text.data();
}

std::string InWords(double rate) {
  const std::string number = Number(rate);
  return number + (number == "1" ? " frame" : " frames") + " a second";
}

// Lets the cameras film at a rate that the machine sustains.
std::vector<StreamFigures> RunFilm(const client::Launcher& launcher,
                                   std::vector<base::ChildProcess>& cameras,
                                   FrameRate& rate, StreamTable& table) {
  std::vector<StreamFigures> streams(cameras.size());
  Tell(cameras, "film " + std::to_string(rate.rate()));
  const base::MonotonicClock clock;
  for (bool filming = true; filming;) {
    filming = false;
    FrameRate::Part part;
    part.latencies_us.resize(cameras.size());
    for (size_t i = 0; i < cameras.size(); ++i) {
      if (streams[i].done) continue;
      StreamFigures figures = NextFigures(launcher, cameras, i);
      // The last ones of the measurement.
      while (figures.rate == 0) figures = NextFigures(launcher, cameras, i);
      part.latencies_us[i] = figures.latencies_us;
      part.lost += figures.lost;
      Continue(streams[i], std::move(figures));
      filming = filming || !streams[i].done;
    }
    const double before = rate.rate();
    // A film that is over has no other rate any more.
    if (filming && rate.Watch(clock.Now(), std::move(part))) {
      Tell(cameras, "film " + std::to_string(rate.rate()));
      table.Say("The machine has become slower, so each camera films at " +
                InWords(rate.rate()) + " from here on instead of " +
                Number(before) + ".");
    }
    table.Update(streams);
  }
  table.Finish(streams);
  return streams;
}

FilmFigures RunCameras(const client::Launcher& launcher, const Options& options,
                       const client::PrivateDaemon& daemon) {
  FilmFigures film;
  std::vector<base::ChildProcess> cameras =
      StartCameras(launcher, options, daemon.target(), film.memory);
  const double fps = Measure(launcher, cameras);
  FrameRate rate(options.rate, options.streams);
  rate.Measured(fps);
  std::printf("\n%d camera processes of %d contexts, one detector\n",
              options.streams, options.contexts);
  if (rate.rate() < options.rate) {
    const bool one = options.streams == 1;
    std::printf(
        "This machine computes %s with %s, so %s films at %s instead of %s.\n",
        InWords(fps).c_str(),
        one ? "one camera"
            : (std::to_string(options.streams) + " cameras").c_str(),
        one ? "it" : "each", InWords(rate.rate()).c_str(),
        Number(options.rate).c_str());
  }
  StreamTable table(isatty(STDOUT_FILENO) != 0);
  film.streams = RunFilm(launcher, cameras, rate, table);
  film.rate = rate.rate();
  return film;
}

void PrintRows(const std::vector<MemoryRow>& rows, int streams, int contexts) {
  constexpr double kMiB = 1024 * 1024;
  const auto mib = [](uint64_t bytes) {
    return static_cast<double>(bytes) / kMiB;
  };
  std::printf("\n  NPU memory of %d x %d contexts, MiB  %8s %9s %9s %7s\n",
              streams, contexts, "weights", "internal", "together", "of all");
  for (const MemoryRow& row : rows) {
    std::printf("  %-35s %8.2f %9.2f %9.2f %6.1f%%\n", row.name.c_str(),
                mib(row.memory.weight), mib(row.memory.internal),
                mib(row.npu_bytes()),
                100.0 * static_cast<double>(row.npu_bytes()) /
                    static_cast<double>(rows.front().npu_bytes()));
  }
}

int RunDemo(const Options& options) {
  MakeOutputFolder(options.output_dir);
  const auto interrupts = base::Interrupts::Catch();
  if (!interrupts) throw std::runtime_error(interrupts.error().message);
  const client::Launcher launcher(&*interrupts);
  std::vector<MemoryRow> rows = client::MeasureRows(
      launcher, options.model, options.streams, options.contexts);
  const client::PrivateDaemon daemon(
      launcher, /*cpu=*/-1,
      options.config.empty()
          ? std::vector<std::string>{}
          : std::vector<std::string>{"--config", options.config});
  const FilmFigures film = RunCameras(launcher, options, daemon);
  rows.push_back(
      {"rknnd",
       "rknnd, " + std::to_string(options.streams) + " processes, one model",
       film.memory});

  std::vector<double> latencies;
  double fps = 0;
  uint64_t frames = 0, copied = 0;
  for (const StreamFigures& stream : film.streams) {
    latencies.insert(latencies.end(), stream.latencies_us.begin(),
                     stream.latencies_us.end());
    fps += stream.fps;
    frames += stream.frames;
    copied += stream.copied_bytes;
  }
  if (frames == 0) throw std::runtime_error("no camera gave a frame");
  // Up: a single byte copied in a thousand frames is not none.
  const uint64_t copied_per_frame = (copied + frames - 1) / frames;
  PrintRows(rows, options.streams, options.contexts);
  std::printf(
      "\n  %.1f frames per second, %llu tensor bytes copied per frame\n", fps,
      static_cast<unsigned long long>(copied_per_frame));
  if (!options.json) return 0;

  nlohmann::ordered_json memory;
  for (const MemoryRow& row : rows) memory[row.key] = row.npu_bytes();
  const nlohmann::ordered_json summary = {
      {"streams", options.streams},
      {"contexts", options.contexts},
      {"fps", fps},
      {"latency_us",
       {{"p50", Percentile(latencies, 0.5)},
        {"p99", Percentile(latencies, 0.99)}}},
      {"tensor_bytes_copied_per_frame", copied_per_frame},
      {"memory", memory},
      {"rate", film.rate}};
  std::puts(summary.dump().c_str());
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Cameras that share one detector through rknnd");
  Options options;
  options.model =
      base::ProgramFolder() + "/" RKNND_DATA_OF_EXAMPLES "/detector.onnx";
  const bool installed = access(options.model.c_str(), R_OK) == 0;
  if (!installed) {
    options.model =
        base::ProgramFolder() + "/" RKNND_EXAMPLES "/detector/detector.onnx";
  }
  options.output_dir = installed ? "rknnd-demo" : "build/demo";
  CameraOptions camera;
  camera.number = -1;
  app.add_option("--streams", options.streams, "camera processes")
      ->check(CLI::Range(1, 64));
  app.add_option("--contexts", options.contexts, "contexts in each")
      ->check(CLI::Range(1, 64));
  app.add_option("--seconds", options.seconds, "how long to film")
      ->check(client::FiniteRange(0.1, 3600));
  app.add_option("--rate", options.rate,
                 "frames a second that each films at most; fewer where the "
                 "machine computes fewer")
      ->check(client::FiniteRange(0.1, 120));
  app.add_flag("--json", options.json, "end with one line of JSON");
  app.add_option("--model", options.model, "the detector (ONNX)")
      ->check(CLI::ExistingFile);
  app.add_option(
      "--picture", options.picture,
      "film this photo, for a detector of faces with the head of an SSD");
  app.add_option("--output-dir", options.output_dir, "where pictures go");
  app.add_option("--config", options.config,
                 "of the daemon, such as another SoC's times (TOML)")
      ->check(CLI::ExistingFile);
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

int main(int argc, char** argv) {
  try {
    return rknnd::demo::Main(argc, argv);
  } catch (const rknnd::client::Interrupted& end) {
    return 128 + end.signal();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rknnd-demo: %s\n", error.what());
    return 1;
  }
}
