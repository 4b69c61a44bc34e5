#include "tests/integration/harness/integration_test.h"

#include "tests/integration/harness/files.h"

namespace rknnd::integration {
namespace {

base::TemporaryFolder MakeFolder() {
  auto folder = base::TemporaryFolder::Make();
  EXPECT_TRUE(folder.ok()) << folder.error().message;
  return *std::move(folder);
}

std::string HoldingText(uint32_t sessions, uint32_t contexts, uint32_t buffers,
                        bool memory) {
  return "sessions " + std::to_string(sessions) + ", contexts " +
         std::to_string(contexts) + ", buffers " + std::to_string(buffers) +
         (memory ? ", and memory" : ", no memory");
}

}  // namespace

IntegrationTest::IntegrationTest() : folder_(MakeFolder()) {}

IntegrationTest::~IntegrationTest() {
  // The neighbour ends before the daemon, which else it would wait for.
  neighbour_.reset();
  observer_.reset();
  daemon_.reset();
}

void IntegrationTest::StartDaemon(DaemonOptions options) {
  daemon_ = std::make_unique<DaemonProcess>(folder(), std::move(options));
  daemon_->Start();
}

void IntegrationTest::KillDaemon() {
  observer_.reset();
  daemon_->Kill();
}

int IntegrationTest::EndDaemon(base::Nanoseconds within) {
  observer_.reset();
  daemon_->AskToEnd();
  return daemon_->WaitForEnd(within);
}

void IntegrationTest::RestartDaemon() { daemon_->Start(); }

std::unique_ptr<ClientProcess> IntegrationTest::StartClient(
    const Environment& more, const std::string& target) {
  ClientProcess::Options options;
  options.target = target.empty() ? daemon_->target() : target;
  options.log_file =
      folder() + "/client_" + std::to_string(++clients_) + ".log";
  options.environment = more;
  return std::make_unique<ClientProcess>(std::move(options));
}

wire::Report IntegrationTest::Ask(rknnd_v1_ReportKind kind) {
  if (!observer_) {
    observer_.emplace(daemon_->socket());
    observer_->SayHello();
  }
  wire::Report report = observer_->Report(kind);
  if (report.session_count > 0) --report.session_count;
  return report;
}

testing::AssertionResult IntegrationTest::RunsRight(ClientProcess& client,
                                                    const std::string& context,
                                                    const TestModel& model,
                                                    double tolerance) {
  if (auto set = Done(client.Do("inputs " + context + model.input_list()));
      !set) {
    return set;
  }
  if (auto run = Done(client.Do("run " + context)); !run) return run;
  return Right(client.Do("compare " + context + model.output_list()),
               tolerance);
}

std::string IntegrationTest::Held() {
  const wire::Report status = Status();
  return HoldingText(status.session_count, status.context_count,
                     status.buffer_count,
                     status.memory.io != 0 || status.memory.other != 0);
}

std::string IntegrationTest::Holding(uint32_t sessions, uint32_t contexts,
                                     uint32_t buffers) {
  return HoldingText(sessions, contexts, buffers, buffers > 0);
}

bool IntegrationTest::SeesJobRunning() {
  return Eventually([this] { return Status().jobs_running > 0; });
}

testing::AssertionResult IntegrationTest::OnlyNeighbourIsLeft() {
  const std::string wanted =
      neighbour_ == nullptr ? Holding(0, 0, 0) : neighbour_holds_;
  std::string last;
  if (Eventually([&] { return (last = Held()) == wanted; })) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << "still held: " << last << "; wanted: " << wanted;
}

int IntegrationTest::RunProgram(const std::vector<std::string>& arguments,
                                const std::string& target,
                                const Environment& more, int most) {
  base::ChildProcess::Options options;
  options.arguments = arguments;
  options.environment = more;
  options.environment.emplace_back("RKNND_TARGET", target);
  options.error_file = folder() + "/program.log";
  auto process = base::ChildProcess::Start(options);
  if (!process.ok()) {
    ADD_FAILURE() << process.error().message;
    return -1;
  }
  const auto out = process->ReadAll(kPatience);
  const auto code = process->Wait(kPatience);
  const int result = code.ok() ? *code : -1;
  if (result < 0 || result > most) {
    ADD_FAILURE() << (out.ok() ? *out : out.error().message)
                  << ReadText(options.error_file);
  }
  return result;
}

int IntegrationTest::RunOverDeaths(const std::vector<std::string>& arguments,
                                   int lives) {
  base::ChildProcess::Options options;
  options.arguments = arguments;
  options.environment = {{"RKNND_TARGET", daemon().target()}};
  options.error_file = folder() + "/program.log";
  auto process = base::ChildProcess::Start(options);
  const auto fail = [&](const base::Error& error) {
    ADD_FAILURE() << error.message << '\n' << ReadText(options.error_file);
    return -1;
  };
  if (!process.ok()) return fail(process.error());
  for (int life = 0; life < lives; ++life) {
    if (life != 0) {
      KillDaemon();
      RestartDaemon();
      if (const auto told = process->WriteLine(""); !told.ok()) {
        return fail(told.error());
      }
    }
    const auto line = process->ReadLine(kPatience);
    if (!line.ok()) return fail(line.error());
    EXPECT_EQ(*line, "run");
  }
  const auto code = process->Wait(kPatience);
  if (!code.ok()) return fail(code.error());
  EXPECT_EQ(*code, 0) << ReadText(options.error_file);
  return *code;
}

void IntegrationTest::StartNeighbour() {
  neighbour_model_ = MakeRelu(folder());
  neighbour_ = StartClient();
  ASSERT_TRUE(Done(neighbour_->Do("init n " + neighbour_model_.path)));
  ASSERT_TRUE(Done(neighbour_->Do("bind_all n")));
  neighbour_holds_ = Held();
  ASSERT_TRUE(
      Done(neighbour_->Do("fill n.in0" + neighbour_model_.input_list())));
  ASSERT_TRUE(NeighbourIsWell());
}

void IntegrationTest::EndNeighbour() { neighbour_.reset(); }

testing::AssertionResult IntegrationTest::NeighbourIsWell() {
  if (!daemon_->alive()) {
    return testing::AssertionFailure() << "the daemon has died";
  }
  if (auto run = Done(neighbour_->Do("run n")); !run) return run;
  return Right(
      neighbour_->Do("compare_mem n.out0" + neighbour_model_.output_list()));
}

}  // namespace rknnd::integration
