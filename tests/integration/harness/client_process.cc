#include "tests/integration/harness/client_process.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ostream>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/patience.h"

namespace rknnd::integration {

ClientProcess::ClientProcess(Options options) : options_(std::move(options)) {
  base::ChildProcess::Options start;
  start.arguments = options_.command;
  if (start.arguments.empty()) {
    start.arguments = {ProgramPath("tests/integration_runner")};
  }
  start.environment = options_.environment;
  start.environment.emplace_back("RKNND_TARGET", options_.target);
  start.error_file = options_.log_file;
  auto process = base::ChildProcess::Start(start);
  if (!process.ok()) {
    ADD_FAILURE() << process.error().message;
    return;
  }
  process_ = *std::move(process);
}

ClientProcess::~ClientProcess() {
  if (process_.running()) {
    EXPECT_EQ(Exit(), 0) << "the client did not end well";
  }
  if (testing::Test::HasFailure()) {
    std::fprintf(stderr, "---- a client said:\n%s----\n", log().c_str());
  }
}

Reply ClientProcess::Do(const std::string& command) {
  SCOPED_TRACE(command);
  Send(command);
  return Receive();
}

void ClientProcess::Send(const std::string& command) {
  const auto sent = process_.WriteLine(command);
  EXPECT_TRUE(sent.ok()) << command << ": " << sent.error().message;
}

Reply ClientProcess::Receive() {
  const auto line = process_.ReadLine(kPatience);
  if (!line.ok()) return {kBadCommand, line.error().message};
  const size_t space = line->find(' ');
  return {std::atoi(line->c_str()),
          space == std::string::npos ? "" : line->substr(space + 1)};
}

void ClientProcess::Kill() {
  process_.Signal(SIGKILL);
  const auto code = process_.Wait(kPatience);
  EXPECT_TRUE(code.ok());
}

int ClientProcess::Exit() {
  // It may have closed its end already.
  (void)process_.WriteLine("exit").ok();
  const auto code = process_.Wait(kPatience);
  return code.ok() ? *code : -1;
}

std::string ClientProcess::log() const { return ReadText(options_.log_file); }

void PrintTo(const Reply& reply, std::ostream* stream) {
  *stream << reply.code << " '" << reply.text << "'";
}

testing::AssertionResult Done(const Reply& reply) {
  if (reply.code == RKNN_SUCC) return testing::AssertionSuccess();
  return testing::AssertionFailure() << reply.code << " '" << reply.text << "'";
}

testing::AssertionResult Right(const Reply& reply, double tolerance) {
  if (testing::AssertionResult done = Done(reply); !done) return done;
  const double error = std::strtod(reply.text.c_str(), nullptr);
  if (!reply.text.empty() && error <= tolerance) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << "the answer is wrong: relative error '" << reply.text << "'";
}

}  // namespace rknnd::integration
