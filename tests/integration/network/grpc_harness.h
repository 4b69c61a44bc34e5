// A daemon with a gRPC port, for the tests of that port.

#ifndef TESTS_INTEGRATION_NETWORK_GRPC_HARNESS_H_
#define TESTS_INTEGRATION_NETWORK_GRPC_HARNESS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/grpc_client.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {

class GrpcTest : public IntegrationTest {
 protected:
  // With a port of the kernel's choice; `config`: lines under [grpc].
  void Serve(const std::string& config = "") {
    StartDaemon({.more = {"--config",
                          WriteConfig("listen = \"127.0.0.1:0\"\n" + config)}});
  }
  std::string WriteConfig(const std::string& config) {
    return WriteFile(folder() + "/rknnd.toml", "[grpc]\n" + config);
  }

  // "127.0.0.1:43211".
  std::string Address() { return daemon().grpc_address(); }
  std::string Port() {
    const std::string address = Address();
    return address.substr(address.rfind(':') + 1);
  }

  // What rknnd says about options that it does not start with.
  std::string Complaint(std::vector<std::string> arguments) {
    base::ChildProcess::Options options;
    options.arguments = {ProgramPath("rknnd"), "--socket",
                         folder() + "/other.sock"};
    options.arguments.insert(options.arguments.end(), arguments.begin(),
                             arguments.end());
    options.error_file = folder() + "/complaint";
    auto process = base::ChildProcess::Start(options);
    EXPECT_TRUE(process.ok());
    const auto code = process->Wait(kPatience);
    // 78: the configuration is wrong.
    EXPECT_TRUE(code.ok() && (*code == 1 || *code == 78))
        << "it should not have started";
    return ReadText(options.error_file);
  }

  static GrpcJson Metadata(const GrpcClient& client) {
    return client.AskOip("ServerMetadata");
  }
};

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_NETWORK_GRPC_HARNESS_H_
