// Kernels without a system call that rknnd or a client would use: what can be
// done without it works, and for all else one sentence says what is missing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

using testing::HasSubstr;

constexpr char kNoMemfds[] =
    "this kernel has no memfd_create; it takes Linux 3.17 or later";

class OlderKernelTest : public IntegrationTest {
 protected:
  void SetUp() override {
    if (RunProgram(Without("memfd_create", {"/bin/true"}), "", {}, 77) != 0) {
      GTEST_SKIP() << "system calls cannot be filtered here";
    }
  }
  static std::vector<std::string> Without(
      const std::string& call, const std::vector<std::string>& command) {
    std::vector<std::string> whole = {
        ProgramPath("tests/integration_older_kernel"), call};
    whole.insert(whole.end(), command.begin(), command.end());
    return whole;
  }
  // A program in C that expects the model's stored answer.
  std::vector<std::string> Answers() {
    const TestModel model = MakeRelu(folder());
    return {ProgramPath("tests/integration_answers"),
            model.path,
            "bound",
            "fp32",
            "nchw",
            "1e-6",
            model.inputs[0],
            ":",
            model.outputs[0]};
  }
  [[nodiscard]] std::string Said() const {
    return ReadText(folder() + "/program.log");
  }
};

TEST_F(OlderKernelTest, DaemonWithoutMemfdsSaysSoAndDoesNotStart) {
  EXPECT_EQ(RunProgram(
                Without("memfd_create", {ProgramPath("rknnd"), "--socket",
                                         folder() + "/session.sock", "--device",
                                         "soft", "--cache-dir", ""}),
                "", {}, 1),
            1);
  EXPECT_THAT(Said(), HasSubstr(kNoMemfds));
}

TEST_F(OlderKernelTest, ClientWithoutMemfdsIsToldSo) {
  StartDaemon();
  EXPECT_NE(RunProgram(Without("memfd_create", Answers()), daemon().target(),
                       {}, 255),
            0);
  EXPECT_THAT(Said(), HasSubstr(kNoMemfds));
  StartNeighbour();
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(OlderKernelTest, NeitherEndNeedsPidfds) {
  DaemonOptions options;
  options.under = Without("pidfd_open", {});
  StartDaemon(std::move(options));
  EXPECT_EQ(RunProgram(Without("pidfd_open", Answers()), daemon().target()), 0);
}

}  // namespace
}  // namespace rknnd::integration
