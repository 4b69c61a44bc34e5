// Node's gRPC client, unchanged, from the npm registry: with the protocol's
// .proto, and with none, by reflection.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/posix/unique_fd.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/interop/programs.h"

namespace rknnd::integration {
namespace {

constexpr char kSources[] = RKNND_SOURCE_ROOT "/tests/interop/";
constexpr char kModules[] = RKNND_BINARY_ROOT "/interop";

class NodeTest : public IntegrationTest {
 protected:
  // Fetches the modules once for this build tree; why it cannot, or "".
  static const std::string& Missing() {
    static const std::string kWhy = [] {
      if (FindProgram("node").empty() || FindProgram("npm").empty()) {
        return std::string("node and npm are not installed");
      }
      namespace fs = std::filesystem;
      std::error_code error;
      fs::create_directories(kModules, error);
      // Tests are processes of their own, at the same time: one fetches them.
      const base::UniqueFd lock(open((std::string(kModules) + "/lock").c_str(),
                                     O_RDWR | O_CREAT | O_CLOEXEC, 0644));
      if (!lock.valid() || flock(lock.get(), LOCK_EX) != 0) {
        return std::string(kModules) + " cannot be written";
      }
      const std::string list = std::string(kModules) + "/package.json";
      const std::string wanted =
          ReadText(std::string(kSources) + "package.json");
      const bool known = fs::exists(list) && ReadText(list) == wanted;
      if (known && fs::exists(std::string(kModules) + "/complete")) {
        return std::string();
      }
      WriteFile(list, wanted);
      if (RunToEnd({"/bin/sh", "-c",
                    std::string("cd '") + kModules +
                        "' && npm install --no-audit --no-fund --loglevel "
                        "error >&2"},
                   std::string(kModules) + "/npm.log") != 0) {
        return std::string("npm cannot fetch the modules");
      }
      WriteFile(std::string(kModules) + "/complete", "");
      return std::string();
    }();
    return kWhy;
  }

  // Exit code of a script that is run where its modules are.
  int RunScript(const std::string& script, const std::string& arguments) {
    log_ = folder() + "/" + script + ".log";
    return RunToEnd({"/bin/sh", "-c",
                     std::string("cd '") + kModules +
                         "' && exec env no_proxy=127.0.0.1 node '" + kSources +
                         script + "' " + arguments + " >&2"},
                    log_);
  }
  [[nodiscard]] std::string Said() const { return ReadText(log_); }

  [[nodiscard]] std::string Address() {
    return "127.0.0.1:" + std::to_string(GrpcPortOf(daemon()));
  }

 private:
  std::string log_;
};

TEST_F(NodeTest, ServesTheProtocolsOwnClient) {
  if (!Missing().empty()) GTEST_SKIP() << Missing();
  const TestModel model = MakeConvNet(folder());
  const std::string repository = folder() + "/repository/net/1";
  std::filesystem::create_directories(repository);
  std::filesystem::copy(model.path, repository + "/model.onnx");
  StartDaemon(WithGrpc({"--model-repository", folder() + "/repository"}));
  EXPECT_EQ(RunScript("inference.mjs",
                      Address() +
                          " " RKNND_SOURCE_ROOT
                          "/proto/inference/open_inference.proto net " +
                          model.inputs[0] + " " + model.outputs[0]),
            0)
      << Said();
}

TEST_F(NodeTest, ReflectionIsEnoughForAClientWithoutAnyProto) {
  if (!Missing().empty()) GTEST_SKIP() << Missing();
  StartDaemon(WithGrpc());
  EXPECT_EQ(RunScript("reflection.mjs", Address()), 0) << Said();
}

}  // namespace
}  // namespace rknnd::integration
