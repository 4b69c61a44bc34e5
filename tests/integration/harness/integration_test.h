// The fixture of all end-to-end tests: a folder, a daemon, clients, and a
// neighbour, who is a client that has nothing to do with what is being tested
// and must never notice it.

#ifndef TESTS_INTEGRATION_HARNESS_INTEGRATION_TEST_H_
#define TESTS_INTEGRATION_HARNESS_INTEGRATION_TEST_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "tests/integration/harness/client_process.h"
#include "tests/integration/harness/daemon_process.h"
#include "tests/integration/harness/models.h"
#include "tests/integration/harness/patience.h"
#include "tests/integration/harness/raw_client.h"

namespace rknnd::integration {

class IntegrationTest : public testing::Test {
 protected:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  IntegrationTest();
  ~IntegrationTest() override;

  [[nodiscard]] const std::string& folder() const { return folder_.path(); }

  // The only daemon of the test.
  void StartDaemon(DaemonOptions options = {});
  DaemonProcess& daemon() { return *daemon_; }
  void KillDaemon();
  // In order; its exit code.
  int EndDaemon(base::Nanoseconds within = kPatience);
  // After either, at the same socket.
  void RestartDaemon();

  // Of this daemon, or of another target.
  std::unique_ptr<ClientProcess> StartClient(const Environment& more = {},
                                             const std::string& target = "");

  // Runs a program to its end against this target; its exit code, or -1. What
  // it printed is a failure when the code is not from 0 to `most`.
  int RunProgram(const std::vector<std::string>& arguments,
                 const std::string& target, const Environment& more = {},
                 int most = 0);

  // The same against this daemon, which dies and comes back whenever the
  // program has said "run" and waits for a line, `lives` - 1 times.
  int RunOverDeaths(const std::vector<std::string>& arguments, int lives);

  // Asks the daemon over a connection of the test's own, which is left out of
  // the count of sessions.
  wire::Report Ask(rknnd_v1_ReportKind kind);
  wire::Report Status() { return Ask(rknnd_v1_ReportKind_REPORT_STATUS); }
  // Sets a model's inputs, runs it, and compares its outputs.
  static testing::AssertionResult RunsRight(ClientProcess& client,
                                            const std::string& context,
                                            const TestModel& model,
                                            double tolerance = 0);
  // What clients hold: "sessions 1, contexts 2, buffers 0, io 0, other 0".
  std::string Held();
  static std::string Holding(uint32_t sessions, uint32_t contexts,
                             uint32_t buffers);
  // Waits until a job runs, or none of all clients is left.
  bool SeesJobRunning();
  // Waits until all that is left is the neighbour's, if there is one.
  testing::AssertionResult OnlyNeighbourIsLeft();

  // A second client at work on memory of its own, from now on.
  void StartNeighbour();
  // In order; from then on there is none.
  void EndNeighbour();
  // It runs once more, with the right answer, and the daemon lives.
  testing::AssertionResult NeighbourIsWell();

 private:
  base::TemporaryFolder folder_;
  std::unique_ptr<DaemonProcess> daemon_;
  std::optional<RawClient> observer_;
  std::unique_ptr<ClientProcess> neighbour_;
  TestModel neighbour_model_;
  std::string neighbour_holds_;
  int clients_ = 0;
};

// How a client reaches a daemon.
inline constexpr char kLocal[] = "local:";

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_INTEGRATION_TEST_H_
