// The daemon is lost at every point of an exchange with a client: after each
// message of either side, and as it begins each of its system calls. Programs
// get right answers and no error.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/session_relay.h"
#include "tests/integration/harness/syscalls.h"

namespace rknnd::integration {
namespace {

using From = SessionRelay::From;

// All system calls of a program, with RKNND_TEST_EVERY_POINT in the
// environment; else some, spread over them.
bool TakesEveryCall() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread
  return getenv("RKNND_TEST_EVERY_POINT") != nullptr;
}

struct Exchange {
  const char* name;
  // The program's name and its words, with capital ones for models.
  std::vector<std::string> arguments;

  friend void PrintTo(const Exchange& exchange, std::ostream* stream) {
    *stream << exchange.name;
  }
};

class RestartPointsTest : public IntegrationTest,
                          public testing::WithParamInterface<Exchange> {
 protected:
  void SetUp() override {
    StartDaemon();
    for (const std::string& word : GetParam().arguments) {
      program_.push_back(program_.empty()
                             ? ProgramPath("tests/integration_" + word)
                             : ModelOr(word));
    }
  }

  // A word of Exchange, or the model it means.
  std::string ModelOr(const std::string& word) {
    if (word == "RELU") return MakeRelu(folder()).path;
    if (word == "CHAIN") return MakeChain(folder()).path;
    if (word == "LISTED") return MakeListedConvNet(folder(), {8, 12}).path;
    if (word == "SIDE_8") return MakeConvNetOfSide(folder(), 8).path;
    if (word == "SIDE_12") return MakeConvNetOfSide(folder(), 12).path;
    if (word == "OWNER") return MakeResolution(folder(), 40).path;
    if (word == "BARE") return MakeResolution(folder(), 24, false).path;
    if (word == "WHOLE") return MakeResolution(folder(), 24).path;
    return word;
  }

  // Runs the program once for each point at which its connection is lost, until
  // it ends before it comes to one; how many there were.
  int64_t LoseAtEachMessage(From from, bool handed_on) {
    const std::string path = folder() + "/relay.sock";
    SessionRelay relay(path, daemon().socket());
    int64_t count = 1;
    for (;; ++count) {
      const int lost = relay.lost();
      relay.LoseAt(from, count, handed_on);
      if (RunProgram(program_, "unix:" + path) != 0) {
        ADD_FAILURE() << "with its connection lost at message " << count;
        break;
      }
      if (relay.lost() == lost) break;
    }
    EXPECT_TRUE(OnlyNeighbourIsLeft());
    return count - 1;
  }

  std::vector<std::string> program_;
};

TEST_P(RestartPointsTest, ConnectionLostBeforeEachMessageIsNotNoticed) {
  const int64_t clients = LoseAtEachMessage(From::kClient, false);
  const int64_t daemons = LoseAtEachMessage(From::kDaemon, false);
  EXPECT_GT(clients, 10);
  EXPECT_GT(daemons, 10);
  std::printf("%s: %lld and %lld messages\n", GetParam().name,
              static_cast<long long>(clients), static_cast<long long>(daemons));
}

TEST_P(RestartPointsTest, ConnectionLostAfterEachMessageIsNotNoticed) {
  EXPECT_GT(LoseAtEachMessage(From::kClient, true), 10);
  EXPECT_GT(LoseAtEachMessage(From::kDaemon, true), 10);
}

TEST_P(RestartPointsTest, DaemonKilledAtEachSystemCallIsNotNoticed) {
  constexpr uint64_t kSome = 8;
  uint64_t all = 0;
  uint64_t stride = 1;
  int deaths = 0;
  // The first time it lives: how many calls there are. That is not the same
  // each time, as the daemon has threads.
  for (uint64_t call = 0; call <= all; call += stride) {
    // One that has no model in memory: loading is a part of the exchange.
    if (call != 0) {
      KillDaemon();
      RestartDaemon();
    }
    DeathAtSyscall death(daemon().pid(), call == 0 ? UINT64_MAX : call);
    if (!death.problem().empty()) GTEST_SKIP() << death.problem();
    int code = -1;
    std::thread program([&] {
      code = RunProgram(program_, daemon().target());
      death.Stop();
    });
    if (death.Await()) {
      KillDaemon();
      RestartDaemon();
      ++deaths;
    }
    program.join();
    ASSERT_EQ(code, 0) << "with the daemon killed at its system call " << call;
    if (call != 0) continue;
    all = death.seen();
    if (!TakesEveryCall()) stride = std::max<uint64_t>(all / kSome, 1);
  }
  EXPECT_GT(deaths, 4);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
  std::printf("%s: %llu system calls, %d deaths\n", GetParam().name,
              static_cast<unsigned long long>(all), deaths);
}

INSTANTIATE_TEST_SUITE_P(
    , RestartPointsTest,
    testing::Values(
        Exchange{"Rebound", {"async_runs", "rebound", "RELU", "5"}},
        Exchange{"Flag", {"async_runs", "async", "RELU"}},
        Exchange{"Shapes", {"dynamic_shapes", "LISTED", "SIDE_8", "SIDE_12"}},
        Exchange{"Copy", {"restart_load", "--frames", "3", "copy", "CHAIN"}},
        Exchange{"Fences", {"restart_load", "--frames", "3", "fences", "RELU"}},
        Exchange{"Internal",
                 {"restart_load", "--frames", "3", "internal", "CHAIN"}},
        Exchange{"Queue", {"restart_load", "--frames", "4", "queue", "RELU"}},
        Exchange{"Stream",
                 {"restart_load", "--frames", "3", "stream", "CHAIN"}},
        Exchange{"Weights",
                 {"restart_load", "--frames", "3", "weights", "OWNER", "BARE",
                  "WHOLE"}}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace rknnd::integration
