// Tests of what a daemon does with compiled models: after a restart it compiles
// nothing, whatever became of its cache folder it serves, and what it is told
// to preload is there.

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/values/model_options.h"
#include "daemon/core/testing/core_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TestSession;

constexpr char kCompiledModel[] = "weight=1000 internal=5000 name=net";

class CompiledModelsTest : public testing::CoreTest {
 protected:
  CompiledModelsTest() {
    device.set_compiler("compiler 1");
    options.cache_dir = folder_.path() + "/cache";
    options.log = &log_;
    options.model_grace = 0;
    Restart();
  }
  ~CompiledModelsTest() override { StopService(); }

  void Restart() {
    StopService();
    StartService();
    RunLoops();
  }
  // A daemon that has the model, and then another one.
  void LoadAndRestart() {
    {
      const TestSession session = Open();
      EXPECT_EQ(Upload(session, kCompiledModel), absl::OkStatus());
      EXPECT_EQ(Create(session, 1, kCompiledModel), absl::OkStatus());
      service->CloseSession(session->id());
    }
    Restart();
  }
  std::vector<fs::path> Files(const std::string& ending) const {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(options.cache_dir)) {
      if (file.path().extension() == ending) files.push_back(file.path());
    }
    return files;
  }
  static void Spoil(const fs::path& path) {
    std::fstream file(path, std::ios::in | std::ios::out);
    file.put('#');
  }
  std::string FileOf(const std::string& name, const std::string& text) const {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  testing::TemporaryFolder folder_;
  testing::RecordingLog log_;
};

TEST_F(CompiledModelsTest, AreNotCompiledAgainAfterARestart) {
  LoadAndRestart();
  const uint32_t before = device.loads();

  EXPECT_EQ(Create(Open(), 1, kCompiledModel), absl::OkStatus());

  EXPECT_EQ(device.loads() - before, 1U);
  EXPECT_EQ(device.restores(), 1U);
  EXPECT_EQ(service->Models()[0].name, "m.onnx");
  EXPECT_EQ(service->Models()[0].weight, 1000U);
  EXPECT_EQ(service->Models()[0].weight_held, memory().weight);
}

TEST_F(CompiledModelsTest, AreFinishedAfterTheirClientIsAnswered) {
  const TestSession session = Open();
  Upload(session, kCompiledModel);
  EXPECT_EQ(device.finished(), 1U);
  Create(session, 1, kCompiledModel);
  EXPECT_EQ(device.finished(), 1U);
}

TEST_F(CompiledModelsTest, FromTheCacheAreFinishedWhenTheirClientHasItsAnswer) {
  LoadAndRestart();
  const uint32_t before = device.finished();
  EXPECT_EQ(Create(Open(), 1, kCompiledModel), absl::OkStatus());
  EXPECT_EQ(device.finished(), before);
  Advance(base::kSecond);
  EXPECT_EQ(device.finished(), before + 1);
}

TEST_F(CompiledModelsTest, ModelThatIsGoneIsNotFinished) {
  LoadAndRestart();
  const uint32_t before = device.finished();
  const TestSession session = Open();
  EXPECT_EQ(Create(session, 1, kCompiledModel), absl::OkStatus());
  service->CloseSession(session->id());
  Advance(base::kSecond);
  EXPECT_EQ(device.finished(), before);
  EXPECT_EQ(device.models(), 0U);
}

TEST_F(CompiledModelsTest, SpoiltFormIsCompiledAndReplaced) {
  LoadAndRestart();
  Spoil(Files(".compiled")[0]);

  EXPECT_EQ(Create(Open(), 1, kCompiledModel), absl::OkStatus());
  EXPECT_EQ(device.restores(), 0U);

  Restart();
  EXPECT_EQ(Create(Open(), 1, kCompiledModel), absl::OkStatus());
  EXPECT_EQ(device.restores(), 1U);
}

TEST_F(CompiledModelsTest, FormTheDeviceRefusesIsCompiledAndReplaced) {
  // It writes forms as compiler 2, and reads them so.
  LoadAndRestart();
  const fs::path form = Files(".compiled")[0];
  device.set_compiler("compiler 2");
  EXPECT_EQ(Create(Open(), 1, kCompiledModel), absl::OkStatus());

  EXPECT_EQ(device.restores(), 1U);
  EXPECT_TRUE(fs::exists(form));
  EXPECT_THAT(log_.lines,
              ElementsAre(HasSubstr("not taken from its compiled form")));
}

TEST_F(CompiledModelsTest, AnotherCompilerCompilesFromTheBytes) {
  LoadAndRestart();
  device.set_compiler("compiler 2");
  Restart();
  EXPECT_EQ(Create(Open(), 1, kCompiledModel), absl::OkStatus());
  EXPECT_EQ(device.restores(), 0U);
  EXPECT_EQ(Files(".compiled").size(), 2U);
}

TEST_F(CompiledModelsTest, FormIsEnoughWithoutTheBytes) {
  LoadAndRestart();
  fs::remove(Files(".model")[0]);
  EXPECT_EQ(Create(Open(), 1, kCompiledModel), absl::OkStatus());
  EXPECT_EQ(device.restores(), 1U);
}

TEST_F(CompiledModelsTest, FollowerNeedsItsOwnersFileNoMore) {
  const std::string follower = "name=follower";
  const std::string shares = base::WithWeightsOf("", Id(kCompiledModel));
  {
    const TestSession session = Open();
    EXPECT_EQ(Upload(session, kCompiledModel), absl::OkStatus());
    EXPECT_EQ(Upload(session, follower, shares), absl::OkStatus());
  }
  for (const fs::path& bytes : Files(".model")) fs::remove(bytes);
  Restart();

  const TestSession session = Open();
  ContextRequest request;
  request.number = 1;
  request.model = Id(follower, shares);
  absl::Status answer = absl::UnknownError("none");
  session->CreateContext(request,
                         [&](const auto& info) { answer = info.status(); });
  RunLoops();

  EXPECT_EQ(answer, absl::OkStatus());
  EXPECT_EQ(device.restores(), 1U);
}

TEST_F(CompiledModelsTest, BothSpoiltIsAskedForAgain) {
  LoadAndRestart();
  Spoil(Files(".compiled")[0]);
  Spoil(Files(".model")[0]);
  const TestSession session = Open();
  EXPECT_EQ(Create(session, 1, kCompiledModel)->code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Upload(session, kCompiledModel), absl::OkStatus());
  EXPECT_EQ(Create(session, 1, kCompiledModel), absl::OkStatus());
}

TEST_F(CompiledModelsTest, FormWhoseKernelsCannotBeMadeGoes) {
  LoadAndRestart();
  device.FailFinish(absl::DataLossError("a kernel does not fit"));
  const TestSession first = Open();
  EXPECT_EQ(Create(first, 1, kCompiledModel), absl::OkStatus());
  Advance(base::kSecond);
  EXPECT_THAT(Files(".compiled"), IsEmpty());
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("a kernel does not fit")));

  // The next one is compiled, and the first goes with its context.
  EXPECT_EQ(Create(Open(2), 1, kCompiledModel), absl::OkStatus());
  EXPECT_EQ(device.restores(), 1U);
  EXPECT_EQ(device.models(), 2U);
  EXPECT_TRUE(first->DestroyContext(1).ok());
  EXPECT_EQ(device.models(), 1U);
}

TEST_F(CompiledModelsTest, FolderThatIsGoneIsToldOfOnce) {
  fs::remove_all(options.cache_dir);
  const TestSession session = Open();
  EXPECT_EQ(Upload(session, "name=a"), absl::OkStatus());
  EXPECT_EQ(Upload(session, "name=b"), absl::OkStatus());
  EXPECT_EQ(Create(session, 1, "name=a"), absl::OkStatus());
  EXPECT_EQ(Create(session, 2, "name=b"), absl::OkStatus());
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("not kept in the cache")));

  fs::create_directories(options.cache_dir);
  EXPECT_EQ(Upload(session, "name=c"), absl::OkStatus());
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("not kept"),
                                      HasSubstr("in the cache folder again")));
}

TEST_F(CompiledModelsTest, BytesAreFreedAfterTheLoad) {
  const TestSession session = Open();
  const uint64_t before = memory().other;
  const size_t fds = OpenFds();
  EXPECT_EQ(Upload(session, kCompiledModel), absl::OkStatus());
  EXPECT_EQ(memory().other, before);
  EXPECT_EQ(OpenFds(), fds);
}

TEST_F(CompiledModelsTest, PreloadedModelIsThereWithoutAContext) {
  options.preload = {FileOf("a.onnx", kCompiledModel)};
  Restart();
  ASSERT_EQ(service->Models().size(), 1U);
  EXPECT_EQ(service->Models()[0].name, "a.onnx");
  EXPECT_EQ(service->Models()[0].contexts, 0U);
  EXPECT_TRUE(service->Models()[0].preloaded);

  Advance(3600 * base::kSecond);
  EXPECT_EQ(Create(Open(), 1, kCompiledModel), absl::OkStatus());

  EXPECT_EQ(device.loads(), 1U);
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(CompiledModelsTest, PreloadedModelStaysWhenItsContextsGo) {
  options.preload = {FileOf("a.onnx", kCompiledModel)};
  Restart();
  const TestSession session = Open();
  EXPECT_EQ(Create(session, 1, kCompiledModel), absl::OkStatus());
  EXPECT_TRUE(session->DestroyContext(1).ok());
  Advance(3600 * base::kSecond);
  EXPECT_EQ(service->Models().size(), 1U);
  StopService();
  EXPECT_EQ(device.models(), 0U);
}

TEST_F(CompiledModelsTest, PreloadTakesTheOptionsBesideTheFile) {
  options.preload = {FileOf("a.onnx", kCompiledModel)};
  FileOf("a.yml", "mean: 1");
  Restart();
  ASSERT_EQ(service->Models().size(), 1U);
  EXPECT_EQ(service->Models()[0].id, Id(kCompiledModel, "mean: 1"));
}

TEST_F(CompiledModelsTest, EmptyFileOfOptionsIsNone) {
  options.preload = {FileOf("a.onnx", kCompiledModel)};
  FileOf("a.yml", "");
  Restart();
  ASSERT_EQ(service->Models().size(), 1U);
  EXPECT_EQ(service->Models()[0].id, Id(kCompiledModel));
}

TEST_F(CompiledModelsTest, PreloadIsRestoredAfterARestart) {
  options.preload = {FileOf("a.onnx", kCompiledModel)};
  Restart();
  Restart();
  EXPECT_EQ(service->Models().size(), 1U);
  EXPECT_EQ(device.restores(), 1U);
  EXPECT_EQ(device.loads(), 2U);
}

TEST_F(CompiledModelsTest, PreloadWhoseKernelsCannotBeMadeIsLoadedAnew) {
  {
    const TestSession session = Open();
    EXPECT_EQ(Upload(session, kCompiledModel), absl::OkStatus());
  }
  options.preload = {FileOf("a.onnx", kCompiledModel)};
  device.FailFinish(absl::DataLossError("a kernel does not fit"));
  Restart();
  Advance(base::kSecond);

  ASSERT_EQ(service->Models().size(), 1U);
  EXPECT_TRUE(service->Models()[0].preloaded);
  EXPECT_EQ(device.models(), 1U);
  Advance(3600 * base::kSecond);
  EXPECT_EQ(service->Models().size(), 1U);
}

TEST_F(CompiledModelsTest, ModelThatCameAgainMeanwhileIsFinishedOnce) {
  LoadAndRestart();
  const uint32_t before = device.finished();
  const TestSession session = Open();
  EXPECT_EQ(Create(session, 1, kCompiledModel), absl::OkStatus());
  EXPECT_TRUE(session->DestroyContext(1).ok());
  EXPECT_EQ(device.models(), 0U);
  EXPECT_EQ(Create(session, 1, kCompiledModel), absl::OkStatus());

  Advance(base::kSecond);

  EXPECT_EQ(device.finished(), before + 1);
  EXPECT_FALSE(service->Models()[0].preloaded);
}

TEST_F(CompiledModelsTest, LackOfMemoryToFinishCostsNoForm) {
  LoadAndRestart();
  device.FailFinish(absl::ResourceExhaustedError("no memory"));
  const TestSession session = Open();
  EXPECT_EQ(Create(session, 1, kCompiledModel), absl::OkStatus());
  Advance(base::kSecond);
  EXPECT_EQ(Files(".compiled").size(), 1U);
}

TEST_F(CompiledModelsTest, ContextOfAModelThatFailedHasItsInternalMemory) {
  LoadAndRestart();
  device.FailFinish(absl::ResourceExhaustedError("no memory"));
  const TestSession session = Open();
  EXPECT_EQ(Create(session, 1, kCompiledModel), absl::OkStatus());
  const uint64_t internal = memory().internal;
  ASSERT_GT(internal, 0U);
  Advance(base::kSecond);
  EXPECT_TRUE(service->Models().empty()) << "it is of no use";
  // What its jobs fail with, if they do, is what the device says.
  EXPECT_EQ(memory().internal, internal);
  EXPECT_TRUE(session->DestroyContext(1).ok());
  RunLoops();
  EXPECT_EQ(memory().internal, 0U);
}

TEST_F(CompiledModelsTest, PreloadThatFailsIsOneLineAndNoMore) {
  options.preload = {
      folder_.path() + "/missing.onnx", FileOf("broken.onnx", "refuse=Foo"),
      FileOf("empty.onnx", ""), FileOf("good.onnx", kCompiledModel)};
  Restart();
  EXPECT_EQ(service->Models().size(), 1U);
  EXPECT_THAT(log_.lines, ::testing::UnorderedElementsAre(
                              AllOf(HasSubstr("missing.onnx' is not preloaded"),
                                    HasSubstr("No such file")),
                              AllOf(HasSubstr("broken.onnx' is not preloaded"),
                                    HasSubstr("Foo")),
                              HasSubstr("empty.onnx' is not preloaded")));
}

}  // namespace
}  // namespace rknnd::core
