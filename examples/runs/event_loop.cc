// Ten cameras on one thread: an epoll set of their timers, which stand for
// frames that have come in, and of one queue of completions. Each camera has a
// context of its own and two sets of bindings, so that its next frame is filled
// while the last one is computed. Nothing here waits but epoll_wait.
//
//   event_loop MODEL [FRAMES]

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "examples/runs/pictures.h"
#include "rknnd.hpp"

namespace rknnd::examples {
namespace {

constexpr uint32_t kCameras = 10, kSets = 2;
constexpr long kFramePeriod = 50'000'000;  // nanoseconds
constexpr uint32_t kQueue = kCameras;      // in the epoll set, as a number

// A descriptor that closes itself, as fences do.
Fence Owned(int fd, const char* what) {
  if (fd < 0) throw std::runtime_error(what);
  return Fence(fd);
}

struct Camera {
  Camera(uint32_t its_number, Context its_context)
      : number(its_number),
        context(std::move(its_context)),
        slots(BindSets(context, kSets)),
        timer(Owned(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                    "timerfd_create")) {}

  uint32_t number;
  Context context;
  std::vector<FrameSlot> slots;
  Fence timer;
  std::array<bool, kSets> busy{};
  uint64_t filmed = 0, computed = 0, lost = 0, wrong = 0;
  double milliseconds = 0;  // of all frames together
};

class EventLoop {
 public:
  EventLoop(const char* model, uint64_t frames)
      : frames_(frames),
        epoll_(Owned(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
        queue_(Queue::Create()) {
    Context first = Context::FromFile(model);
    for (uint32_t i = 0; i < kCameras; ++i) {
      // They share weights and internal memory; each could have another model.
      cameras_.push_back(std::make_unique<Camera>(i, first.Duplicate()));
      expected_.push_back(AnswerOf(*cameras_.back()));
      Watch(cameras_.back()->timer.fd(), i);
    }
    Watch(queue_.fd(), kQueue);
  }

  // Until each camera has had its frames.
  void Run() {
    for (const auto& camera : cameras_) StartTimer(*camera);
    while (left_ > 0) {
      epoll_event event{};
      if (epoll_wait(epoll_.fd(), &event, 1, -1) != 1) continue;
      if (event.data.u32 == kQueue) {
        queue_.Dispatch();
      } else {
        OnFrame(*cameras_[event.data.u32]);
      }
    }
  }

  // Whether all answers were as they should be.
  bool Report() const {
    uint64_t wrong = 0, computed = 0;
    for (const auto& camera : cameras_) {
      std::printf(
          "camera %2u: %4llu frames computed, %llu lost, %5.1f ms each\n",
          camera->number, static_cast<unsigned long long>(camera->computed),
          static_cast<unsigned long long>(camera->lost),
          camera->computed == 0
              ? 0.0
              : camera->milliseconds / static_cast<double>(camera->computed));
      wrong += camera->wrong;
      computed += camera->computed;
    }
    std::printf("%llu answers, %llu of them wrong\n",
                static_cast<unsigned long long>(computed),
                static_cast<unsigned long long>(wrong));
    return wrong == 0 && computed > 0;
  }

 private:
  void Watch(int fd, uint32_t number) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = number;
    if (epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event) != 0) {
      throw std::runtime_error("epoll_ctl");
    }
  }

  static void StartTimer(const Camera& camera) {
    itimerspec times{};
    times.it_interval.tv_nsec = kFramePeriod;
    // One after the other, as cameras are that nobody has synchronised.
    times.it_value.tv_nsec = 1 + kFramePeriod / kCameras * camera.number;
    if (timerfd_settime(camera.timer.fd(), 0, &times, nullptr) != 0) {
      throw std::runtime_error("timerfd_settime");
    }
  }

  // What a camera's first picture gives, computed in the plain way.
  static uint64_t AnswerOf(Camera& camera) {
    Film(camera.slots[0].picture, camera.number, 0);
    camera.context.Run();
    return Digest(camera.slots[0]);
  }

  // A frame has come in.
  void OnFrame(Camera& camera) {
    uint64_t ticks = 0;
    if (read(camera.timer.fd(), &ticks, sizeof ticks) != sizeof ticks) return;
    if (camera.filmed == frames_) return;
    const uint32_t set = camera.busy[0] ? 1 : 0;
    ++camera.filmed;
    if (camera.busy[set]) {
      // Both frames are on their way: the camera is too fast for the board.
      ++camera.lost;
    } else {
      Film(camera.slots[set].picture, camera.number, 0);
      camera.busy[set] = true;
      camera.context.Submit(RunOptions().Set(set).Notify(
          queue_, [this, &camera](auto& run) { OnAnswer(camera, run); }));
    }
    EndIfDone(camera);
  }

  void OnAnswer(Camera& camera, const Completion& run) {
    if (!run.ok()) throw Error(run.code(), "a run failed");
    camera.busy[run.set()] = false;
    ++camera.computed;
    camera.milliseconds += static_cast<double>(run.total_time().count()) / 1e6;
    if (Digest(camera.slots[run.set()]) != expected_[camera.number]) {
      ++camera.wrong;
    }
    EndIfDone(camera);
  }

  void EndIfDone(const Camera& camera) {
    if (camera.filmed == frames_ &&
        camera.computed + camera.lost == camera.filmed) {
      --left_;
    }
  }

  const uint64_t frames_;
  uint32_t left_ = kCameras;
  Fence epoll_;
  std::vector<std::unique_ptr<Camera>> cameras_;
  std::vector<uint64_t> expected_;
  // Goes first: what is on its way then ends unheard.
  Queue queue_;
};

}  // namespace
}  // namespace rknnd::examples

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: event_loop MODEL [FRAMES]\n");
    return 2;
  }
  try {
    rknnd::examples::EventLoop loop(
        argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100);
    loop.Run();
    return loop.Report() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "event_loop: %s\n", error.what());
    return 1;
  }
}
