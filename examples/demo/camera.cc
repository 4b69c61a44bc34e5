// See camera.h. One thread for all contexts: it takes the camera's next frame,
// which is drawn into memory behind a descriptor, letterboxes it into the input
// of a context that is free, and goes on while that runs; its queue of
// completions says when there are boxes to read.

#include "examples/demo/camera.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "client/image/image.h"
#include "client/include/rknnd.hpp"
#include "client/launch/memory_rows.h"
#include "examples/demo/detector_context.h"
#include "examples/demo/figures.h"
#include "examples/demo/letterboxer.h"
#include "examples/demo/subject.h"
#include "examples/detector/frame.h"

namespace rknnd::demo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFrameWidth = 1920, kFrameHeight = 1080;
constexpr auto kFramePeriod = std::chrono::microseconds(1'000'000 / 30);
constexpr auto kReportPeriod = std::chrono::milliseconds(500);

// The sensor: a frame every thirtieth of a second; frames that nobody takes are
// lost, as a camera's are.
class Sensor {
 public:
  Sensor(std::unique_ptr<Subject> subject, double seconds)
      : subject_(std::move(subject)),
        begin_(Clock::now()),
        end_(begin_ + std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double>(seconds))) {}

  // When there is a frame next, if the film is not over.
  [[nodiscard]] Clock::time_point NextTime() const {
    return begin_ + static_cast<int64_t>(number_ + 1) * kFramePeriod;
  }
  [[nodiscard]] bool IsOver() const { return NextTime() > end_; }
  // Writes the newest frame to `frame`, once it is there. Its number.
  uint64_t Capture(const detector::Nv12& frame) {
    SkipToNewest();
    subject_->Draw(number_, frame);
    return number_;
  }
  // It is nobody's.
  void Lose() { SkipToNewest(); }

  [[nodiscard]] double Elapsed() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  [[nodiscard]] const Subject& subject() const { return *subject_; }

 private:
  void SkipToNewest() {
    const auto now =
        static_cast<uint64_t>((Clock::now() - begin_) / kFramePeriod);
    number_ = std::max(number_ + 1, now);
  }

  const std::unique_ptr<Subject> subject_;
  const Clock::time_point begin_, end_;
  uint64_t number_ = 0;
};

// What has been seen so far.
class Tally {
 public:
  void Add(double latency_us, size_t boxes) {
    ++frames_;
    new_latencies_.push_back(latency_us);
    boxes_ = boxes;
  }
  // For the next line: each latency stands in one of them.
  [[nodiscard]] StreamFigures TakeFigures(double seconds) {
    StreamFigures figures;
    figures.frames = frames_;
    figures.fps = static_cast<double>(frames_) / seconds;
    figures.boxes = boxes_;
    figures.latencies_us = std::exchange(new_latencies_, {});
    return figures;
  }

 private:
  size_t frames_ = 0;
  std::vector<double> new_latencies_;
  size_t boxes_ = 0;
};

// A context, a frame for it, and the way from one to the other.
class Eye {
 public:
  Eye(Context context, const Normalisation& normalisation)
      : detector_(std::move(context)),
        memory_(Memory::Create(detector_.context(),
                               static_cast<uint32_t>(detector::Nv12Bytes(
                                   kFrameWidth, kFrameHeight)))),
        frame_(
            detector::Nv12In(memory_.as<uint8_t>(), kFrameWidth, kFrameHeight)),
        letterboxer_(detector_.input(), kFrameWidth, kFrameHeight,
                     normalisation) {}

  [[nodiscard]] DetectorContext& detector() { return detector_; }
  [[nodiscard]] uint64_t number() const { return number_; }

  [[nodiscard]] bool is_free() const { return !busy_; }

  // Takes the sensor's frame; `ended` is told when its boxes have been read.
  void Film(Sensor& sensor, Tally& tally, Queue& ended) {
    next_number_ = sensor.Capture(frame_);
    const auto captured = Clock::now();
    letterboxer_.Write(frame_, detector_.input_memory().data());
    busy_ = true;
    detector_.Submit(RunOptions().Notify(
        ended, [this, &sensor, &tally, captured](const Completion& run) {
          busy_ = false;
          if (!run.ok()) throw Error(run.code(), "the detector failed");
          findings_ = Find(sensor.subject());
          number_ = next_number_;
          tally.Add(
              std::chrono::duration<double, std::micro>(Clock::now() - captured)
                  .count(),
              findings_.size());
        }));
  }

  // The last frame with its boxes.
  base::Expected<void> WritePicture(const std::string& path) const {
    client::Image image(kFrameWidth, kFrameHeight);
    detector::ToRgb(frame_, image.pixels().data);
    for (const Finding& finding : findings_) {
      client::DrawBox(image.pixels(),
                      letterboxer_.place().ToOriginal(finding.box),
                      finding.color, 4);
    }
    return client::WritePng(path, std::as_const(image).pixels());
  }

 private:
  [[nodiscard]] std::vector<Finding> Find(const Subject& subject) const {
    const std::vector<uint32_t> shape = detector_.input().shape();
    return subject.Find(detector_.Answer(), static_cast<int>(shape[2]),
                        static_cast<int>(shape[1]));
  }

  DetectorContext detector_;
  Memory memory_;
  detector::Nv12 frame_;
  Letterboxer letterboxer_;
  std::vector<Finding> findings_;
  uint64_t next_number_ = 0;  // of the frame that is computed
  uint64_t number_ = 0;       // of the findings
  bool busy_ = false;
};

void Say(const nlohmann::json& line) {
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

// Until a run has ended, or it is so late.
void WaitForEnds(const Queue& ended, Clock::time_point until) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  pollfd look = {ended.fd(), POLLIN, 0};
  poll(&look, 1, std::max(0, static_cast<int>(left.count())));
}

std::unique_ptr<Subject> MakeSubject(const CameraOptions& options) {
  if (options.picture.empty()) {
    // Each camera looks at a place of its own, none of which the detector was
    // trained on. The first are places where figures seldom hide each other, as
    // one hangs up a camera.
    constexpr std::array<uint64_t, 4> kPlaces = {149, 80, 83, 158};
    constexpr uint64_t kMorePlaces = 9001;
    const auto number = static_cast<uint64_t>(options.number);
    return FilmStreet(
        number < kPlaces.size() ? kPlaces.at(number) : kMorePlaces + number,
        kFrameWidth, kFrameHeight);
  }
  auto photo = FilmPhoto(options.picture, options.number);
  if (!photo) throw Error(RKNN_ERR_FAIL, photo.error().message);
  return *std::move(photo);
}

int Film(const CameraOptions& options) {
  std::unique_ptr<Subject> subject = MakeSubject(options);
  std::vector<std::unique_ptr<Eye>> eyes;
  for (int i = 0; i < options.contexts; ++i) {
    eyes.push_back(std::make_unique<Eye>(Context::FromFile(options.model),
                                         subject->normalisation()));
    // The first run takes its pages in; a film begins warm.
    eyes.back()->detector().Run();
  }
  Say(client::ToJson(eyes.back()->detector().context().NpuMemory()));
  if (std::getchar() == EOF) return 1;

  Sensor sensor(std::move(subject), options.seconds);
  Tally tally;
  // Behind what its handlers use.
  Queue ended = Queue::Create();
  const auto is_free = [](const auto& eye) { return eye->is_free(); };
  auto report = Clock::now() + kReportPeriod;
  while (!sensor.IsOver() || !std::all_of(eyes.begin(), eyes.end(), is_free)) {
    const auto now = Clock::now();
    if (!sensor.IsOver() && now >= sensor.NextTime()) {
      const auto eye = std::find_if(eyes.begin(), eyes.end(), is_free);
      if (eye == eyes.end()) {
        sensor.Lose();
      } else {
        (*eye)->Film(sensor, tally, ended);
      }
    }
    if (now >= report) {
      report += kReportPeriod;
      Say(ToJson(tally.TakeFigures(sensor.Elapsed())));
    }
    auto until = report;
    if (!sensor.IsOver()) until = std::min(until, sensor.NextTime());
    WaitForEnds(ended, until);
    ended.Dispatch();
  }
  StreamFigures figures = tally.TakeFigures(sensor.Elapsed());

  const auto& newest = **std::max_element(
      eyes.begin(), eyes.end(),
      [](const auto& a, const auto& b) { return a->number() < b->number(); });
  const auto written = newest.WritePicture(options.output);
  if (!written) throw Error(RKNN_ERR_FAIL, written.error().message);
  for (const auto& eye : eyes) {
    // The one that warmed up is a run like all others.
    figures.copied_bytes += eye->detector().CopiedBytes();
  }
  figures.picture = options.output;
  figures.done = true;
  Say(ToJson(figures));
  return 0;
}

}  // namespace

int RunCamera(const CameraOptions& options) {
  try {
    return Film(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "camera %d: %s\n", options.number, error.what());
    return 1;
  }
}

}  // namespace rknnd::demo
