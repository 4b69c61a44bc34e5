#include "tests/integration/harness/rknnctl.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/posix/child_process.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/patience.h"

namespace rknnd::integration {

RknnctlResult RunRknnctl(const std::string& folder,
                         const std::vector<std::string>& arguments) {
  RknnctlResult result;
  const std::string errors = folder + "/rknnctl.err";
  std::filesystem::remove(errors);
  base::ChildProcess::Options options;
  options.arguments = {ProgramPath("rknnctl")};
  options.arguments.insert(options.arguments.end(), arguments.begin(),
                           arguments.end());
  options.environment = {{"RKNND_TARGET", ""}};
  options.error_file = errors;
  auto process = base::ChildProcess::Start(options);
  if (!process.ok()) {
    ADD_FAILURE() << process.error().message;
    return result;
  }
  if (auto out = process->ReadAll(kPatience); out.ok()) result.out = *out;
  if (auto code = process->Wait(kPatience); code.ok()) {
    result.exit_code = *code;
  }
  result.err = ReadText(errors);
  return result;
}

nlohmann::json AskRknnctl(const std::string& folder, const std::string& target,
                          const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"--target", target, "--json"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const RknnctlResult result = RunRknnctl(folder, all);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << result.out;
  return json;
}

}  // namespace rknnd::integration
