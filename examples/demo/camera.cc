// See camera.h. One thread for all contexts: it takes the camera's next frame,
// which is drawn into memory behind a descriptor, letterboxes it into the input
// of a context that is free, and goes on while that runs; its queue of
// completions says when there are boxes to read. Only kFramesInFlight frames
// are on that way at once, so that frames are lost where the machine is too
// slow for them, and never wait for long.

#include "examples/demo/camera.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "client/image/image.h"
#include "client/include/rknnd.hpp"
#include "client/launch/memory_rows.h"
#include "examples/demo/detector_context.h"
#include "examples/demo/figures.h"
#include "examples/demo/frame_rate.h"
#include "examples/demo/frame_schedule.h"
#include "examples/demo/letterboxer.h"
#include "examples/demo/subject.h"
#include "examples/detector/frame.h"

namespace rknnd::demo {
namespace {

constexpr int kFrameWidth = 1920, kFrameHeight = 1080;
constexpr base::Nanoseconds kReportPeriod = base::kSecond / 2;

base::Nanoseconds Now() { return base::MonotonicClock().Now(); }

double Seconds(base::Nanoseconds time) {
  return static_cast<double>(time) / base::kSecond;
}

// Lines that the demo writes to stdin, also while frames are computed.
class CommandReader {
 public:
  // To be waited for; -1 once there are no more.
  [[nodiscard]] int fd() const { return ended_ ? -1 : STDIN_FILENO; }

  // The next line that has been read, if there is one.
  std::optional<std::string> Next() {
    const size_t end = text_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }
  // Takes in what is there; waits if there is nothing.
  void Read() {
    std::array<char, 256> bytes;
    const ssize_t size = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (size > 0) text_.append(bytes.data(), static_cast<size_t>(size));
    if (size == 0 || (size < 0 && errno != EINTR)) ended_ = true;
  }
  // The next line, once it is there; nothing when no more come.
  std::optional<std::string> Wait() {
    auto line = Next();
    for (; !line && !ended_; line = Next()) Read();
    return line;
  }

 private:
  std::string text_;  // that is not taken yet
  bool ended_ = false;
};

// What has been seen so far.
class Tally {
 public:
  void Add(double latency_us, size_t boxes) {
    ++frames_;
    new_latencies_.push_back(latency_us);
    boxes_ = boxes;
  }
  // For the next line, `time` after the begin: each latency stands in one of
  // them.
  [[nodiscard]] StreamFigures TakeFigures(base::Nanoseconds time) {
    StreamFigures figures;
    figures.frames = frames_;
    figures.fps = static_cast<double>(frames_) / Seconds(time);
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
  // Of the frame that it took last, and of the one whose boxes it has.
  [[nodiscard]] uint64_t taken() const { return taken_; }
  [[nodiscard]] uint64_t found() const { return found_; }

  [[nodiscard]] bool is_free() const { return !busy_; }

  // Takes frame `number`, what the camera sees at `time` of the film; `ended`
  // is told when its boxes have been read.
  void Film(Subject& subject, base::Nanoseconds time, uint64_t number,
            Tally& tally, Queue& ended) {
    taken_ = number;
    subject.Draw(Seconds(time), frame_);
    const base::Nanoseconds captured = Now();
    letterboxer_.Write(frame_, detector_.input_memory().data());
    busy_ = true;
    detector_.Submit(RunOptions().Notify(
        ended, [this, &subject, &tally, captured](const Completion& run) {
          busy_ = false;
          if (run.cancelled()) return;
          if (!run.ok()) throw Error(run.code(), "the detector failed");
          findings_ = Find(subject);
          found_ = taken_;
          tally.Add(static_cast<double>(Now() - captured) / base::kMicrosecond,
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
  uint64_t taken_ = 0, found_ = 0;
  bool busy_ = false;
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

// The rate out of "film" or "film RATE".
double RateOf(const std::string& command) {
  constexpr size_t kVerb = sizeof "film" - 1;
  constexpr double kUsual = 30;
  if (command == "film") return kUsual;
  const double rate = command.compare(0, kVerb, "film") == 0
                          ? std::strtod(command.c_str() + kVerb, nullptr)
                          : 0;
  if (!(rate > 0)) {
    throw Error(RKNN_ERR_PARAM_INVALID, "not told to film: '" + command + "'");
  }
  return rate;
}

// The contexts of one camera and what it films with them.
class Camera {
 public:
  explicit Camera(const CameraOptions& options)
      : subject_(MakeSubject(options)), ended_(Queue::Create()) {
    for (int i = 0; i < options.contexts; ++i) {
      eyes_.push_back(std::make_unique<Eye>(Context::FromFile(options.model),
                                            subject_->normalisation()));
      // The first frame takes its pages in; measurement and film begin warm.
      Tally unused;
      eyes_.back()->Film(*subject_, 0, ++taken_, unused, ended_);
      WaitForAll();
    }
  }

  [[nodiscard]] rknnd_memory NpuMemory() const {
    return eyes_.back()->detector().context().NpuMemory();
  }

  // Films as fast as it can until the next command comes: that, or nothing when
  // none comes any more.
  std::optional<std::string> Measure(CommandReader& commands) {
    Tally tally;
    const base::Nanoseconds begin = Now();
    base::Nanoseconds report = begin + kReportPeriod;
    std::optional<std::string> command;
    while (!command && commands.fd() >= 0) {
      if (Eye* const eye = FreeEye(); eye != nullptr) {
        eye->Film(*subject_, Now() - begin, ++taken_, tally, ended_);
      }
      if (const base::Nanoseconds now = Now(); now >= report) {
        report = now + kReportPeriod;
        Say(ToJson(tally.TakeFigures(now - begin)));
      }
      WaitUntil(FreeEye() != nullptr ? 0 : report, commands);
      command = commands.Next();
    }
    // What still waits for a core would be late for the film.
    for (const auto& eye : eyes_) eye->detector().Cancel();
    WaitForAll();
    return command;
  }

  // With a line of figures every half second; all but the last one.
  StreamFigures Film(double rate, double seconds, CommandReader& commands) {
    Tally tally;
    const base::Nanoseconds begin = Now();
    FrameSchedule schedule(
        rate, begin,
        begin + static_cast<base::Nanoseconds>(seconds * base::kSecond));
    const auto figures = [&](base::Nanoseconds now) {
      StreamFigures taken = tally.TakeFigures(now - begin);
      taken.rate = schedule.rate();
      taken.lost = schedule.TakeLost();
      return taken;
    };
    base::Nanoseconds report = begin + kReportPeriod;
    for (base::Nanoseconds now = begin; now < schedule.end() || InFlight() > 0;
         now = Now()) {
      if (schedule.IsDue(now)) {
        if (Eye* const eye = FreeEye(); eye != nullptr) {
          const base::Nanoseconds time = schedule.Take(now) - begin;
          eye->Film(*subject_, time, ++taken_, tally, ended_);
        } else {
          schedule.Leave(now);
        }
      }
      if (now >= report) {
        report += kReportPeriod;
        Say(ToJson(figures(now)));
      }
      const base::Nanoseconds next = schedule.NextTime();
      WaitUntil(now < schedule.end() ? std::min(next, report) : report,
                commands);
      while (const auto command = commands.Next()) {
        schedule.SetRate(RateOf(*command));
      }
    }
    return figures(Now());
  }

  [[nodiscard]] base::Expected<void> WriteNewest(
      const std::string& path) const {
    const auto& newest = **std::max_element(
        eyes_.begin(), eyes_.end(),
        [](const auto& a, const auto& b) { return a->found() < b->found(); });
    return newest.WritePicture(path);
  }

  // Since the contexts were made.
  [[nodiscard]] uint64_t CopiedBytes() const {
    uint64_t bytes = 0;
    for (const auto& eye : eyes_) bytes += eye->detector().CopiedBytes();
    return bytes;
  }

 private:
  [[nodiscard]] size_t InFlight() const {
    return static_cast<size_t>(
        std::count_if(eyes_.begin(), eyes_.end(),
                      [](const auto& eye) { return !eye->is_free(); }));
  }

  // The one to take the next frame; null where enough are in flight. Each has
  // its turn.
  [[nodiscard]] Eye* FreeEye() const {
    if (InFlight() >= kFramesInFlight) return nullptr;
    Eye* longest = nullptr;
    for (const auto& eye : eyes_) {
      if (!eye->is_free()) continue;
      if (longest == nullptr || eye->taken() < longest->taken()) {
        longest = eye.get();
      }
    }
    return longest;
  }

  // Until a run has ended, a command has come or it is so late, and reads what
  // there is.
  void WaitUntil(base::Nanoseconds time, CommandReader& commands) {
    const base::Nanoseconds left =
        std::clamp<base::Nanoseconds>(time - Now(), 0, base::kSecond);
    std::array<pollfd, 2> look = {
        {{ended_.fd(), POLLIN, 0}, {commands.fd(), POLLIN, 0}}};
    const timespec wait = {left / base::kSecond, left % base::kSecond};
    if (ppoll(look.data(), look.size(), &wait, nullptr) <= 0) return;
    if (look[1].revents != 0) commands.Read();
    ended_.Dispatch();
  }

  // Until no frame is in flight.
  void WaitForAll() {
    while (InFlight() > 0) {
      pollfd look = {ended_.fd(), POLLIN, 0};
      poll(&look, 1, -1);
      ended_.Dispatch();
    }
  }

  const std::unique_ptr<Subject> subject_;
  std::vector<std::unique_ptr<Eye>> eyes_;
  // Behind what its handlers use.
  Queue ended_;
  uint64_t taken_ = 0;  // the number of the newest frame
};

int Film(const CameraOptions& options) {
  Camera camera(options);
  Say(client::ToJson(camera.NpuMemory()));
  CommandReader commands;
  auto command = commands.Wait();
  if (command == "measure") command = camera.Measure(commands);
  if (!command) return 1;
  const uint64_t copied_before = camera.CopiedBytes();
  StreamFigures figures =
      camera.Film(RateOf(*command), options.seconds, commands);

  const auto written = camera.WriteNewest(options.output);
  if (!written) throw Error(RKNN_ERR_FAIL, written.error().message);
  figures.copied_bytes = camera.CopiedBytes() - copied_before;
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
