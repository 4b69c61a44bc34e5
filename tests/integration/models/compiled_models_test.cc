// What the daemon keeps of models over its lives, and what it does not keep of
// them in memory: compiled forms in the cache folder, whatever becomes of it,
// and preloaded models.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/models.h"
#include "tests/integration/harness/patience.h"

namespace rknnd::integration {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CompiledModelsTest : public IntegrationTest {
 protected:
  void SetUp() override {
    model_ = MakeConvNet(folder());
    cache_ = folder() + "/cache";
  }

  void StartWithCache(std::vector<std::string> more = {}) {
    DaemonOptions options;
    options.cache_dir = cache_;
    options.more = std::move(more);
    StartDaemon(options);
  }
  // A client of its own: loads the model and gets the right answer.
  testing::AssertionResult Serves(const TestModel& model) {
    const auto client = StartClient();
    if (auto done = Done(client->Do("init c " + model.path)); !done) {
      return done;
    }
    if (auto done = Done(client->Do("bind_all c")); !done) return done;
    if (auto done = Done(client->Do("fill c.in0" + model.input_list()));
        !done) {
      return done;
    }
    if (auto done = Done(client->Do("run c")); !done) return done;
    auto right = Right(client->Do("compare_mem c.out0" + model.output_list()));
    if (right) client->Exit();
    return right;
  }
  std::vector<fs::path> Files(const std::string& ending) const {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(cache_, error)) {
      if (file.path().extension() == ending) files.push_back(file.path());
    }
    return files;
  }
  // The form is written behind the answer.
  fs::path AwaitCompiled() {
    EXPECT_TRUE(Eventually([this] { return !Files(".compiled").empty(); }));
    const auto files = Files(".compiled");
    return files.empty() ? fs::path() : files[0];
  }
  // Loaded once, kept, and the daemon gone.
  fs::path KeepCompiled() {
    EXPECT_TRUE(Serves(model_));
    const fs::path form = AwaitCompiled();
    KillDaemon();
    return form;
  }
  // Bytes of mappings with this in their name.
  static uint64_t MappedBytes(pid_t pid, const std::string& name) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
    uint64_t bytes = 0;
    for (std::string line; std::getline(file, line);) {
      if (line.find(name) == std::string::npos) continue;
      unsigned long begin = 0;
      unsigned long end = 0;
      if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2) {
        bytes += end - begin;
      }
    }
    return bytes;
  }
  static size_t OpenFiles(pid_t pid, const std::string& name) {
    size_t count = 0;
    for (const auto& fd :
         fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
      std::error_code error;
      const fs::path target = fs::read_symlink(fd.path(), error);
      count += target.string().find(name) != std::string::npos ? 1 : 0;
    }
    return count;
  }

  TestModel model_;
  std::string cache_;
};

TEST_F(CompiledModelsTest, ServeAfterARestartWithoutTheirBytes) {
  StartWithCache();
  KeepCompiled();
  for (const fs::path& bytes : Files(".model")) fs::remove(bytes);
  RestartDaemon();
  EXPECT_TRUE(Serves(model_));
  // Nothing was uploaded: it would be kept again.
  EXPECT_THAT(Files(".model"), IsEmpty());
}

TEST_F(CompiledModelsTest, SpoiltFormIsMadeAgain) {
  StartWithCache();
  const fs::path form = KeepCompiled();
  {
    std::fstream file(form, std::ios::in | std::ios::out);
    file.seekp(100);
    file << "spoilt";
  }
  RestartDaemon();
  EXPECT_TRUE(Serves(model_));
  AwaitCompiled();
  KillDaemon();
  for (const fs::path& bytes : Files(".model")) fs::remove(bytes);
  RestartDaemon();
  EXPECT_TRUE(Serves(model_));
  EXPECT_THAT(Files(".model"), IsEmpty());
}

TEST_F(CompiledModelsTest, FormThatEndsTooEarlyIsMadeAgain) {
  StartWithCache();
  const fs::path form = KeepCompiled();
  const uint64_t whole = fs::file_size(form);
  fs::resize_file(form, whole / 2);
  RestartDaemon();
  EXPECT_TRUE(Serves(model_));
  EXPECT_TRUE(Eventually([&] {
    std::error_code error;
    return fs::file_size(form, error) == whole;
  }));
}

TEST_F(CompiledModelsTest, DaemonKilledInTheMiddleOfAWriteLeavesNothingBad) {
  StartWithCache();
  const TestModel heavy = MakeHeavy(folder());
  const auto client = StartClient();
  client->Send("init c " + heavy.path);
  // As soon as a file is being written; a second later at the latest.
  const bool caught = Eventually([this] { return !Files(".tmp").empty(); });
  KillDaemon();
  EXPECT_TRUE(caught);
  // And what a power cut may leave under the right name.
  const fs::path torn = cache_ + "/" + std::string(64, 'a') + ".model";
  std::ofstream(torn) << "half of a mo";

  RestartDaemon();

  EXPECT_THAT(Files(".tmp"), IsEmpty());
  EXPECT_TRUE(Done(client->Receive()));
  EXPECT_TRUE(Serves(model_));
  EXPECT_TRUE(Done(client->Do("destroy c")));
}

TEST_F(CompiledModelsTest, FolderThatVanishesIsToldOfOnceAndNothingElse) {
  StartWithCache();
  fs::remove_all(cache_);
  EXPECT_TRUE(Serves(model_));
  EXPECT_TRUE(Serves(MakeRelu(folder())));
  EXPECT_TRUE(Eventually([this] {
    return daemon().log().find("not kept in the cache") != std::string::npos;
  }));
  const std::string log = daemon().log();
  const size_t first = log.find("not kept in the cache");
  EXPECT_EQ(log.find("not kept in the cache", first + 1), std::string::npos);
}

TEST_F(CompiledModelsTest, NobodyKeepsTheFilesBytesInMemory) {
  StartWithCache();
  const TestModel heavy = MakeHeavy(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + heavy.path)));
  AwaitCompiled();
  EXPECT_TRUE(Eventually([this] {
    return MappedBytes(daemon().pid(), "rknnd-model") == 0 &&
           OpenFiles(daemon().pid(), "rknnd-model") == 0;
  }));
  EXPECT_EQ(MappedBytes(client->pid(), "rknnd-model"), 0U);
  EXPECT_EQ(OpenFiles(client->pid(), "rknnd-model"), 0U);

  // Nor the compiled form, once its kernels are made.
  KillDaemon();
  RestartDaemon();
  const auto other = StartClient();
  ASSERT_TRUE(Done(other->Do("init c " + heavy.path)));
  EXPECT_TRUE(Eventually(
      [this] { return MappedBytes(daemon().pid(), ".compiled") == 0; }));
  EXPECT_EQ(MappedBytes(other->pid(), "rknnd-model"), 0U);
}

TEST_F(CompiledModelsTest, PreloadedModelIsThereBeforeAnyClient) {
  const std::string config = folder() + "/rknnd.toml";
  std::ofstream(config) << "[models]\npreload = [\"" << model_.path
                        << "\", \"/no/such/model.onnx\"]\n";
  StartWithCache({"--config", config});
  EXPECT_TRUE(Eventually([this] {
    return Ask(rknnd_v1_ReportKind_REPORT_MODELS).models.size() == 1;
  }));
  EXPECT_TRUE(Eventually([this] {
    return daemon().log().find("/no/such/model.onnx' is not preloaded") !=
           std::string::npos;
  }));
  EXPECT_TRUE(Serves(model_));
  // It stays without a context.
  EXPECT_THAT(Ask(rknnd_v1_ReportKind_REPORT_MODELS).models, SizeIs(1));
}

}  // namespace
}  // namespace rknnd::integration
