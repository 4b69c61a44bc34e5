// See camera.h. One thread for each context: it takes the camera's next frame,
// which is drawn into memory behind a descriptor, letterboxes it into its
// context's input, runs, and reads the boxes. The main thread reports.

#include "examples/demo/camera.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/mutex.h"
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

// The sensor: a frame every thirtieth of a second, to whoever takes it; frames
// that nobody is free to take are lost, as a camera's are.
// Thread: any.
class Sensor {
 public:
  Sensor(std::unique_ptr<Subject> subject, double seconds)
      : subject_(std::move(subject)),
        begin_(Clock::now()),
        end_(begin_ + std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double>(seconds))) {}

  // Waits for the next frame and writes it to `frame`. Its number; 0 when the
  // film is over.
  uint64_t Capture(const detector::Nv12& frame) {
    const uint64_t number = TakeNumber();
    const auto time = begin_ + number * kFramePeriod;
    if (time > end_) return 0;
    std::this_thread::sleep_until(time);
    const base::MutexLock lock(drawing_);
    subject_->Draw(number, frame);
    return number;
  }

  [[nodiscard]] double Elapsed() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  // Reading answers needs no turn.
  [[nodiscard]] const Subject& subject() const { return *subject_; }

 private:
  // Of the first frame that is neither over nor somebody else's.
  uint64_t TakeNumber() {
    const base::MutexLock lock(mutex_);
    const auto now =
        static_cast<uint64_t>((Clock::now() - begin_) / kFramePeriod);
    return number_ = std::max(number_ + 1, now);
  }

  const std::unique_ptr<Subject> subject_;
  const Clock::time_point begin_, end_;
  base::Mutex drawing_;  // the subject draws one frame at a time
  base::Mutex mutex_;
  uint64_t number_ RKNND_GUARDED_BY(mutex_) = 0;
};

// What the threads have seen so far. Thread: any.
class Tally {
 public:
  void Add(double latency_us, size_t boxes) {
    const base::MutexLock lock(mutex_);
    ++frames_;
    new_latencies_.push_back(latency_us);
    boxes_ = boxes;
  }
  void Fail(const std::string& what) {
    const base::MutexLock lock(mutex_);
    if (failure_.empty()) failure_ = what;
  }
  // One of the threads has ended.
  void End() {
    const base::MutexLock lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

  // Waits a while; whether all `threads` have ended.
  bool Wait(size_t threads) {
    const base::MutexLock lock(mutex_);
    const auto until = Clock::now() + kReportPeriod;
    while (ended_ < threads && Clock::now() < until) {
      changed_.wait_until(mutex_, until);
    }
    return ended_ == threads;
  }
  // For the next line: each latency stands in one of them.
  [[nodiscard]] StreamFigures TakeFigures(double seconds) {
    const base::MutexLock lock(mutex_);
    StreamFigures figures;
    figures.frames = frames_;
    figures.fps = static_cast<double>(frames_) / seconds;
    figures.boxes = boxes_;
    figures.latencies_us = std::exchange(new_latencies_, {});
    return figures;
  }
  [[nodiscard]] std::string failure() {
    const base::MutexLock lock(mutex_);
    return failure_;
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  size_t frames_ RKNND_GUARDED_BY(mutex_) = 0;
  std::vector<double> new_latencies_ RKNND_GUARDED_BY(mutex_);
  size_t boxes_ RKNND_GUARDED_BY(mutex_) = 0;
  size_t ended_ RKNND_GUARDED_BY(mutex_) = 0;
  std::string failure_ RKNND_GUARDED_BY(mutex_);
};

// A context, a frame for it, and the thread's way from one to the other.
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

  // Until the film is over.
  void Film(Sensor& sensor, Tally& tally) {
    while (const uint64_t number = sensor.Capture(frame_)) {
      const auto captured = Clock::now();
      letterboxer_.Write(frame_, detector_.input_memory().data());
      detector_.Run();
      findings_ = Find(sensor.subject());
      number_ = number;
      tally.Add(
          std::chrono::duration<double, std::micro>(Clock::now() - captured)
              .count(),
          findings_.size());
    }
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
  uint64_t number_ = 0;
};

void Say(const nlohmann::json& line) {
  std::puts(line.dump().c_str());
  std::fflush(stdout);
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
  std::vector<std::thread> threads;
  threads.reserve(eyes.size());
  for (const auto& eye : eyes) {
    threads.emplace_back([&, at = eye.get()] {
      try {
        at->Film(sensor, tally);
      } catch (const std::exception& error) {
        tally.Fail(error.what());
      }
      tally.End();
    });
  }
  while (!tally.Wait(eyes.size()))
    Say(ToJson(tally.TakeFigures(sensor.Elapsed())));
  StreamFigures figures = tally.TakeFigures(sensor.Elapsed());
  for (std::thread& thread : threads) thread.join();
  if (!tally.failure().empty()) throw Error(RKNN_ERR_FAIL, tally.failure());

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
