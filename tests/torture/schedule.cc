// See schedule.h.

#include "tests/torture/schedule.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <utility>

namespace rknnd::torture {
namespace {

using base::kMillisecond;
using base::Nanoseconds;

struct Habit {
  const char* name;
  uint32_t weight;          // how often, beside the others
  Nanoseconds least, most;  // of its length
};

constexpr std::array<Habit, kEventKinds> kHabits = {{
    {"kill a client", 30, 0, 0},
    {"kill the daemon", 12, 0, 0},
    {"restart the daemon", 5, 0, 0},
    {"stop a client", 8, 20 * kMillisecond, 500 * kMillisecond},
    {"stop the daemon", 6, 20 * kMillisecond, 700 * kMillisecond},
    {"slow core", 5, 20 * kMillisecond, 300 * kMillisecond},
    {"hanging job", 4, 50 * kMillisecond, 600 * kMillisecond},
    {"job that hangs for good", 1, 0, 0},
    {"device lost", 4, 20 * kMillisecond, 300 * kMillisecond},
    {"failing calls", 10, 50 * kMillisecond, 600 * kMillisecond},
    {"few descriptors", 5, 50 * kMillisecond, 500 * kMillisecond},
    {"full disk", 5, 100 * kMillisecond, 800 * kMillisecond},
    {"clock jump", 5, 0, 0},
    {"hostile client", 12, 100 * kMillisecond, 800 * kMillisecond},
}};
constexpr Nanoseconds kFirst = 200 * kMillisecond;
constexpr Nanoseconds kLeastGap = 20 * kMillisecond;
constexpr Nanoseconds kMostGap = 240 * kMillisecond;
constexpr Nanoseconds kLongEnough = 10 * base::kSecond;

const Habit& HabitOf(EventKind kind) {
  return kHabits.at(static_cast<size_t>(kind));
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  uint64_t Throw() { return random_(); }
  // From least to most.
  Nanoseconds Between(Nanoseconds least, Nanoseconds most) {
    const auto range = static_cast<uint64_t>(most - least) + 1;
    return least + static_cast<Nanoseconds>(random_() % range);
  }
  EventKind Kind() {
    uint32_t all = 0;
    for (const Habit& habit : kHabits) all += habit.weight;
    auto left = static_cast<uint32_t>(random_() % all);
    size_t kind = 0;
    while (left >= kHabits.at(kind).weight) left -= kHabits.at(kind++).weight;
    return static_cast<EventKind>(kind);
  }

 private:
  std::mt19937_64 random_;
};

bool EndsDaemon(EventKind kind) {
  return kind == EventKind::kKillDaemon || kind == EventKind::kRestartDaemon;
}

}  // namespace

const char* NameOf(EventKind kind) { return HabitOf(kind).name; }

std::string Event::ToText() const {
  char text[96];
  if (length == 0) {
    std::snprintf(text, sizeof text, "%8.3f s  %s",
                  static_cast<double>(at) / base::kSecond, NameOf(kind));
  } else {
    std::snprintf(text, sizeof text, "%8.3f s  %s, %.0f ms",
                  static_cast<double>(at) / base::kSecond, NameOf(kind),
                  static_cast<double>(length) / kMillisecond);
  }
  return text;
}

std::vector<Event> MakeSchedule(uint64_t seed, Nanoseconds length) {
  Dice dice(seed);
  // Each kind once, in any order, before chance alone decides.
  std::vector<EventKind> first;
  for (int kind = 0; kind < kEventKinds && length >= kLongEnough; ++kind) {
    first.push_back(static_cast<EventKind>(kind));
  }
  for (size_t i = first.size(); i > 1; --i) {
    std::swap(first[i - 1], first[dice.Throw() % i]);
  }
  const Nanoseconds last_end = length * 3 / 4;
  std::vector<Event> events;
  for (Nanoseconds at = kFirst;; at += dice.Between(kLeastGap, kMostGap)) {
    Event event;
    event.at = at;
    event.kind =
        events.size() < first.size() ? first[events.size()] : dice.Kind();
    const Habit& habit = HabitOf(event.kind);
    event.length = dice.Between(habit.least, habit.most);
    event.dice = dice.Throw();
    if (at + event.length >= length) break;
    if (at > last_end && EndsDaemon(event.kind)) {
      event.kind = EventKind::kKillClient;
      event.length = 0;
    }
    events.push_back(event);
  }
  return events;
}

}  // namespace rknnd::torture
