// See camera.h.

#include "examples/demo/camera.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/posix/half.h"
#include "client/image/image.h"
#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "examples/demo/detection.h"

namespace rknnd::demo {
namespace {

// How the detectors of the demo were trained: (x - 127) / 128.
constexpr float kMean = 127, kScale = 1 / 128.0F;
// A hand-held camera: the picture wanders so many pixels.
constexpr double kSway = 12;

// The API's word for what went wrong, kept until the process ends with it.
bool Failed(const char* call, int code) {
  if (code == RKNN_SUCC) return false;
  std::fprintf(stderr, "%s: %d: %s\n", call, code, rknnd_last_error());
  return true;
}

// A context with its inputs and outputs in memory that both sides map.
class Detector {
 public:
  ~Detector() {
    for (rknn_tensor_mem* mem : {input_, scores_, boxes_}) {
      if (mem != nullptr) rknn_destroy_mem(context_, mem);
    }
    if (context_ != 0) rknn_destroy(context_);
  }
  Detector() = default;
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;

  bool Open(std::string model) {
    if (Failed("rknn_init",
               rknn_init(&context_, model.data(), 0, 0, nullptr))) {
      return false;
    }
    rknn_tensor_attr input{}, scores{}, boxes{};
    boxes.index = 1;
    if (!Bind(RKNN_QUERY_INPUT_ATTR, &input, &input_) ||
        !Bind(RKNN_QUERY_OUTPUT_ATTR, &scores, &scores_) ||
        !Bind(RKNN_QUERY_OUTPUT_ATTR, &boxes, &boxes_)) {
      return false;
    }
    height_ = static_cast<int>(input.dims[1]);
    width_ = static_cast<int>(input.dims[2]);
    candidates_ = scores.n_elems / 2;
    return true;
  }

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }

  // Writes a frame of width() x height() where the NPU reads it, as the
  // half-precision numbers it takes without another look.
  void Fill(const client::Image& frame) {
    const client::ConstPixels pixels = frame.pixels();
    const auto row_elements = static_cast<size_t>(width_) * 3;
    std::vector<float> row(row_elements);
    auto* to = static_cast<uint16_t*>(input_->virt_addr);
    for (int y = 0; y < height_; ++y) {
      const uint8_t* from =
          pixels.data + static_cast<size_t>(y) * pixels.stride;
      std::transform(from, from + row_elements, row.begin(), [](uint8_t v) {
        return (static_cast<float>(v) - kMean) * kScale;
      });
      base::FloatToHalf(row, {to, row_elements});
      to += row_elements;
    }
  }

  bool Run() { return !Failed("rknn_run", rknn_run(context_, nullptr)); }

  [[nodiscard]] std::vector<Detection> Answer() const {
    return Decode(Floats(*scores_, candidates_ * 2),
                  Floats(*boxes_, candidates_ * 4));
  }

  [[nodiscard]] uint64_t CopiedBytes() const {
    rknnd_copy_counters copies{};
    rknnd_query_copies(context_, &copies, sizeof copies);
    return copies.to_device_inputs_set + copies.to_device_conversion +
           copies.from_device_outputs_get + copies.from_device_conversion;
  }

 private:
  static std::vector<float> Floats(const rknn_tensor_mem& mem, size_t count) {
    std::vector<float> floats(count);
    base::HalfToFloat({static_cast<const uint16_t*>(mem.virt_addr), count},
                      floats);
    return floats;
  }

  bool Bind(rknn_query_cmd which, rknn_tensor_attr* attr,
            rknn_tensor_mem** mem) {
    if (Failed("rknn_query", rknn_query(context_, which, attr, sizeof *attr))) {
      return false;
    }
    *mem = rknn_create_mem(context_, attr->size_with_stride);
    if (*mem == nullptr) return !Failed("rknn_create_mem", RKNN_ERR_FAIL);
    return !Failed("rknn_set_io_mem", rknn_set_io_mem(context_, *mem, attr));
  }

  rknn_context context_ = 0;
  rknn_tensor_mem* input_ = nullptr;
  rknn_tensor_mem* scores_ = nullptr;
  rknn_tensor_mem* boxes_ = nullptr;
  int width_ = 0, height_ = 0;
  size_t candidates_ = 0;
};

// The photo as a camera that sways sees it.
client::Image Film(const client::Image& photo, int camera, int frame) {
  client::Image view(photo.width(), photo.height());
  const double phase = frame * 0.11 + camera * 1.7;
  const int dx = static_cast<int>(std::lround(kSway * std::sin(phase)));
  const int dy = static_cast<int>(std::lround(kSway * std::cos(phase * 0.7)));
  const client::ConstPixels from = photo.pixels();
  const client::Pixels to = view.pixels();
  for (int y = 0; y < to.height; ++y) {
    const int sy = std::clamp(y + dy, 0, from.height - 1);
    for (int x = 0; x < to.width; ++x) {
      const int sx = std::clamp(x + dx, 0, from.width - 1);
      std::copy_n(from.data + static_cast<size_t>(sy) * from.stride + sx * 3, 3,
                  to.data + static_cast<size_t>(y) * to.stride + x * 3);
    }
  }
  return view;
}

bool WriteAnswer(client::Image frame, const std::vector<Detection>& found,
                 const std::string& path) {
  const auto width = static_cast<float>(frame.width());
  const auto height = static_cast<float>(frame.height());
  for (const Detection& d : found) {
    client::DrawBox(
        frame.pixels(),
        {d.left * width, d.top * height, d.right * width, d.bottom * height},
        {80, 255, 80}, 3);
  }
  const auto written = client::WritePng(path, frame.pixels());
  if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
  return written.ok();
}

}  // namespace

int RunCamera(const CameraOptions& options) {
  auto photo = client::ReadImage(options.picture);
  if (!photo) {
    std::fprintf(stderr, "%s\n", photo.error().message.c_str());
    return 1;
  }
  std::vector<std::unique_ptr<Detector>> detectors;
  for (int i = 0; i < options.contexts; ++i) {
    detectors.push_back(std::make_unique<Detector>());
    if (!detectors.back()->Open(options.model)) return 1;
  }
  client::Image input(detectors[0]->width(), detectors[0]->height());
  client::Resize(photo->pixels(), input.pixels());
  for (const auto& detector : detectors) {
    detector->Fill(input);
    if (!detector->Run()) return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  if (std::getchar() == EOF) return 1;

  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(options.seconds);
  std::vector<double> latencies;
  std::vector<Detection> found;
  client::Image view;
  int frames = 0;
  do {
    Detector& detector =
        *detectors[static_cast<size_t>(frames) % detectors.size()];
    view = Film(*photo, options.number, frames++);
    client::Resize(view.pixels(), input.pixels());
    detector.Fill(input);
    const auto submitted = Clock::now();
    if (!detector.Run()) return 1;
    latencies.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - submitted)
            .count());
    found = detector.Answer();
  } while (Clock::now() < end);
  const double seconds =
      std::chrono::duration<double>(Clock::now() - start).count();

  if (!WriteAnswer(std::move(view), found, options.output)) return 1;
  uint64_t copied = 0;
  for (const auto& detector : detectors) copied += detector->CopiedBytes();
  const nlohmann::json result = {{"frames", frames},
                                 {"fps", frames / seconds},
                                 {"latencies_us", latencies},
                                 {"boxes", found.size()},
                                 {"tensor_bytes_copied", copied},
                                 {"picture", options.output}};
  std::puts(result.dump().c_str());
  return 0;
}

}  // namespace rknnd::demo
