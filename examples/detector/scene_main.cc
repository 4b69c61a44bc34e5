// rknnd-scene: draws frames for the detector's trainer, as the demo's cameras
// would give them and as the detector sees them. Writes to stdout, per frame:
//
//   width x height x 3 bytes  RGB
//   kMostFigures x 5 floats   kind (-1: none), left, top, right, bottom
//
// in this machine's byte order. Or one frame as a picture, to look at.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "client/image/image.h"
#include "examples/detector/frame.h"
#include "examples/detector/scene.h"

namespace rknnd::detector {
namespace {

constexpr size_t kMostFigures = 12;  // a scene has at most nine

struct Options {
  uint64_t seed = 1;
  int frames = 1, frames_per_scene = 2;
  int width = 1920, height = 1080;
  int out_width = 256, out_height = 144;
  std::string png;
};

bool Write(const void* data, size_t bytes) {
  return std::fwrite(data, 1, bytes, stdout) == bytes;
}

int Run(const Options& options) {
  std::vector<uint8_t> memory(Nv12Bytes(options.width, options.height));
  const Nv12 frame = Nv12In(memory.data(), options.width, options.height);
  if (!options.png.empty()) {
    Scene scene(options.seed, options.width, options.height);
    const std::vector<Figure> figures = scene.Draw(0, frame);
    client::Image picture(options.width, options.height);
    ToRgb(frame, picture.pixels().data);
    for (const Figure& figure : figures) {
      const auto w = static_cast<float>(options.width);
      const auto h = static_cast<float>(options.height);
      client::DrawBox(picture.pixels(),
                      {figure.box.left * w, figure.box.top * h,
                       figure.box.right * w, figure.box.bottom * h},
                      figure.kind == Kind::kPerson
                          ? client::Color{255, 60, 60}
                          : client::Color{60, 160, 255},
                      std::max(1, options.height / 360));
    }
    const auto written = client::WritePng(options.png, picture.pixels());
    if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return written ? 0 : 1;
  }

  const auto pixels = static_cast<size_t>(options.out_width) *
                      static_cast<size_t>(options.out_height);
  std::vector<uint8_t> rgb(pixels * 3);
  Shrinker shrinker;
  int left = options.frames;
  for (uint64_t number = 0; left > 0; ++number) {
    // Seeds far apart: two runs share no scene.
    Scene scene(options.seed * 1'000'003 + number, options.width,
                options.height);
    for (int i = 0; i < options.frames_per_scene && left > 0; ++i, --left) {
      const std::vector<Figure> figures = scene.Draw(i * 3.7, frame);
      shrinker.ToRgb(frame, options.out_width, options.out_height, rgb.data());
      std::array<float, kMostFigures * 5> truth{};
      for (size_t k = 0; k < kMostFigures; ++k) {
        float* row = truth.data() + 5 * k;
        row[0] = -1;
        if (k >= figures.size()) continue;
        row[0] = static_cast<float>(figures[k].kind);
        row[1] = figures[k].box.left;
        row[2] = figures[k].box.top;
        row[3] = figures[k].box.right;
        row[4] = figures[k].box.bottom;
      }
      if (!Write(rgb.data(), rgb.size()) ||
          !Write(truth.data(), truth.size() * sizeof(float))) {
        std::perror("rknnd-scene: stdout");
        return 1;
      }
    }
  }
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Frames of drawn scenes, with what can be seen in them");
  Options options;
  app.add_option("--seed", options.seed, "another seed, other scenes");
  app.add_option("--frames", options.frames, "how many")
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("--frames-per-scene", options.frames_per_scene,
                 "moments of one scene")
      ->check(CLI::Range(1, 1000));
  app.add_option("--width", options.width, "of the camera's frame, even")
      ->check(CLI::Range(64, 8192));
  app.add_option("--height", options.height, "of the camera's frame, even")
      ->check(CLI::Range(64, 8192));
  app.add_option("--out-width", options.out_width, "what is written")
      ->check(CLI::Range(16, 4096));
  app.add_option("--out-height", options.out_height, "what is written")
      ->check(CLI::Range(16, 4096));
  app.add_option("--png", options.png,
                 "one frame with its boxes into this file instead");
  CLI11_PARSE(app, argc, argv);
  if (options.width % 2 != 0 || options.height % 2 != 0 ||
      options.out_width * 2 > options.width ||
      options.out_height * 2 > options.height) {
    std::fprintf(stderr,
                 "rknnd-scene: frames have even sides, at least twice as long "
                 "as what is written\n");
    return 2;
  }
  return Run(options);
}

}  // namespace
}  // namespace rknnd::detector

int main(int argc, char** argv) { return rknnd::detector::Main(argc, argv); }
