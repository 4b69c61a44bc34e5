// A fault campaign: a service of its own under load, everything that may happen
// to it, and a check of every answer.

#ifndef TESTS_TORTURE_CAMPAIGN_H_
#define TESTS_TORTURE_CAMPAIGN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/interrupts.h"
#include "tests/torture/schedule.h"

namespace rknnd::torture {

struct CampaignOptions {
  base::Nanoseconds length = 0;
  uint64_t seed = 1;
  int clients = 8;
  bool socket_units = true;  // else the daemon makes its own sockets
  std::string folder;        // for sockets, logs, ledgers
  const base::Interrupts* interrupts = nullptr;  // borrowed
};

// What it will do. The time begins after a warm-up.
std::vector<Event> ScheduleOf(const CampaignOptions& options);

// Prints what it finds and a report. Whether it found nothing. Thread: one, of
// a program that has no other. Throws std::runtime_error when it cannot work.
bool RunCampaign(const CampaignOptions& options);

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_CAMPAIGN_H_
