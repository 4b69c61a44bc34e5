// Programs of other versions than the daemon's: those of one minor version
// older or newer work, others are told who is to be updated.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "base/values/sha256.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

std::string HashOf(const std::string& file) {
  const std::string bytes = ReadText(file);
  return base::ToHex(base::Sha256Of(std::as_bytes(std::span(bytes))));
}

std::vector<float> Floats(const std::string& file) {
  const std::string bytes = ReadText(file);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

class VersionsTest : public IntegrationTest {
 protected:
  // Exit code and stderr of the old program; `more` are its last arguments.
  std::pair<int, std::string> RunFrozen(const TestModel& model,
                                        std::vector<std::string> more = {}) {
    base::ChildProcess::Options options;
    options.arguments = {ProgramPath("tests/integration_frozen_client"),
                         daemon().socket(),
                         model.path,
                         HashOf(model.path),
                         model.inputs[0],
                         output_};
    for (std::string& word : more) options.arguments.push_back(std::move(word));
    options.error_file = folder() + "/frozen.log";
    auto program = base::ChildProcess::Start(options);
    EXPECT_TRUE(program.ok());
    const auto code = program->Wait(kPatience);
    return {code.ok() ? *code : -1, ReadText(options.error_file)};
  }

  const std::string output_ = folder() + "/frozen.bin";
};

TEST_F(VersionsTest, OldProgramWorksAsItAlwaysDid) {
  StartDaemon();
  const TestModel model = MakeConvNet(folder());
  const auto [code, said] = RunFrozen(model);
  ASSERT_EQ(code, 0) << said;
  EXPECT_THAT(Floats(output_),
              Pointwise(FloatNear(1e-4F), Floats(model.outputs[0])));
  // Once more, with the model there already.
  EXPECT_EQ(RunFrozen(model).first, 0);
}

TEST_F(VersionsTest, NewerProgramsWordsThatNobodyKnowsAreSkipped) {
  StartDaemon();
  const TestModel model = MakeConvNet(folder());
  const auto [code, said] = RunFrozen(model, {"1", "2", "extra"});
  ASSERT_EQ(code, 0) << said;
  EXPECT_THAT(Floats(output_),
              Pointwise(FloatNear(1e-4F), Floats(model.outputs[0])));
}

TEST_F(VersionsTest, MismatchNamesBothSidesAndWhoIsToBeUpdated) {
  StartDaemon();
  const TestModel model = MakeConvNet(folder());
  const auto [code, said] = RunFrozen(model, {"7", "9"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(said, HasSubstr("this client, rknnd 0.1.0, speaks 7"));
  EXPECT_THAT(said, HasSubstr("board rknnd"));
  EXPECT_THAT(said, HasSubstr("speaks 1..1; update the board side"));
}

}  // namespace
}  // namespace rknnd::integration
