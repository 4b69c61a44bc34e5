// One run for two programs that read the same frame, and what becomes of the
// one when the other dies or lies elsewhere. Runs are counted by the cores.

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "tests/integration/harness/faults.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

constexpr uint64_t kOutputBytes = 4096;

// Of integration_shared_reader.
class Reader {
 public:
  Reader(const std::string& target, const std::string& model, int memory) {
    base::ChildProcess::Options options;
    options.arguments = {
        base::ProgramFolder() + "/integration_shared_reader", model,
        "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(memory)};
    options.environment = {{"RKNND_TARGET", target}};
    options.dies_with_parent = true;
    auto started = base::ChildProcess::Start(options);
    EXPECT_TRUE(started.ok());
    if (started.ok()) process_ = *std::move(started);
    EXPECT_EQ(NextLine(), "ready");
  }

  void Submit(int frame) {
    EXPECT_EQ(Ask("submit " + std::to_string(frame)), "0");
  }
  std::string Wait(int frame) { return Ask("wait " + std::to_string(frame)); }
  void Kill() {
    process_.Signal(SIGKILL);
    EXPECT_TRUE(process_.Wait(kPatience).ok());
  }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }

 private:
  std::string Ask(const std::string& command) {
    EXPECT_TRUE(process_.WriteLine(command).ok());
    return NextLine();
  }
  std::string NextLine() {
    auto line = process_.ReadLine(kPatience);
    return line.ok() ? *line : line.error().message;
  }

  base::ChildProcess process_;
};

class SharedRunsTest : public IntegrationTest {
 protected:
  SharedRunsTest()
      : model_(MakeRelu(folder()).path),
        camera_(*base::MakeMemfd("camera", kOutputBytes)),
        frame_(*base::Mapping::OfFd(camera_.get(), 0, kOutputBytes,
                                    base::Mapping::Access::kReadWrite)) {
    Show(2.5F);
    StartDaemon(WithFaults(folder()));
  }

  // What the camera sees from now on.
  void Show(float number) {
    std::memcpy(frame_.data(), &number, sizeof number);
  }
  Reader MakeReader(const base::UniqueFd& memory) {
    return {daemon().target(), model_, memory.get()};
  }
  Reader MakeReader() { return MakeReader(camera_); }
  // The next run is on its way until LetRun.
  void HoldNextRun() {
    driver::Fault fault;
    fault.kind = driver::FaultKind::kHang;
    fault.times = 1;
    SetFault(folder(), daemon().target(), fault);
  }
  void LetRun() { ClearFault(folder(), daemon().target()); }
  [[nodiscard]] bool SeesQueued(uint64_t jobs) {
    return Eventually([&] { return Status().jobs_queued == jobs; });
  }
  uint64_t Runs() {
    uint64_t runs = 0;
    for (const auto& core : Status().core_reports) runs += core.jobs;
    return runs;
  }

  const std::string model_;
  const base::UniqueFd camera_;
  const base::Mapping frame_;
};

TEST_F(SharedRunsTest, TwoProgramsGetOneRunAndTwoAnswers) {
  Reader a = MakeReader(), b = MakeReader();
  HoldNextRun();
  a.Submit(7);
  ASSERT_TRUE(SeesJobRunning());
  b.Submit(7);
  ASSERT_TRUE(SeesQueued(1));
  LetRun();
  EXPECT_EQ(a.Wait(7), "0 2.5");
  EXPECT_EQ(b.Wait(7), "0 2.5");
  EXPECT_EQ(Runs(), 1U);
  EXPECT_EQ(Status().jobs_shared, 1U);
  for (const auto& session :
       Ask(rknnd_v1_ReportKind_REPORT_SESSIONS).sessions) {
    if (session.pid == a.pid()) {
      EXPECT_EQ(session.shared, 0U);
    }
    if (session.pid != b.pid()) continue;
    EXPECT_EQ(session.shared, 1U);
    EXPECT_EQ(session.npu_us, 0U);
  }
}

TEST_F(SharedRunsTest, ProgramIsAnsweredThoughItsFellowIsKilledMidway) {
  Reader a = MakeReader(), b = MakeReader();
  HoldNextRun();
  a.Submit(7);
  ASSERT_TRUE(SeesJobRunning());
  b.Submit(7);
  ASSERT_TRUE(SeesQueued(1));
  a.Kill();
  LetRun();
  EXPECT_EQ(b.Wait(7), "0 2.5");
  EXPECT_EQ(Runs(), 1U);
}

TEST_F(SharedRunsTest, OtherFramesAndOtherMemoryAreRunByThemselves) {
  const base::UniqueFd other = *base::MakeMemfd("camera", kOutputBytes);
  Reader a = MakeReader(), b = MakeReader(), c = MakeReader(other);
  HoldNextRun();
  a.Submit(7);
  ASSERT_TRUE(SeesJobRunning());
  b.Submit(8);
  c.Submit(7);
  EXPECT_EQ(b.Wait(8), "0 2.5");
  EXPECT_EQ(c.Wait(7), "0 0");
  LetRun();
  EXPECT_EQ(a.Wait(7), "0 2.5");
  EXPECT_EQ(Runs(), 3U);
}

TEST_F(SharedRunsTest, EachFrameHasItsOwnAnswer) {
  Reader a = MakeReader(), b = MakeReader();
  for (int frame = 1; frame <= 50; ++frame) {
    Show(static_cast<float>(frame));
    Reader& first = frame % 2 == 0 ? a : b;
    Reader& second = frame % 2 == 0 ? b : a;
    first.Submit(frame);
    second.Submit(frame);
    EXPECT_EQ(first.Wait(frame), "0 " + std::to_string(frame));
    EXPECT_EQ(second.Wait(frame), "0 " + std::to_string(frame));
  }
  // Most of them were in time for the other's.
  EXPECT_LT(Runs(), 100U);
}

}  // namespace
}  // namespace rknnd::integration
