// Tests of models through sessions: loaded once, kept while used and a grace
// period longer, wrong bytes and refusals told to those concerned.

#include "daemon/core/models/model_registry.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "base/values/sha256.h"
#include "daemon/core/testing/core_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TestSession;

constexpr char kRegisteredModel[] = "weight=1000 internal=5000 name=net";

class ModelRegistryTest : public testing::CoreTest {};

TEST_F(ModelRegistryTest, UnknownModelIsNotFound) {
  const TestSession session = Open();
  EXPECT_EQ(Create(session, 1, kRegisteredModel)->code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ModelRegistryTest, UploadedModelServesAContext) {
  const TestSession session = Open();
  EXPECT_EQ(Upload(session, kRegisteredModel), absl::OkStatus());
  EXPECT_EQ(Create(session, 1, kRegisteredModel), absl::OkStatus());
}

TEST_F(ModelRegistryTest, SecondSessionUsesTheSameWeights) {
  const TestSession first = Open(1);
  const TestSession second = Open(2);
  Upload(first, kRegisteredModel);
  Create(first, 1, kRegisteredModel);

  EXPECT_EQ(Create(second, 1, kRegisteredModel), absl::OkStatus());

  EXPECT_EQ(device.loads(), 1U);
  EXPECT_EQ(memory().weight, 1000U);
  const auto models = service->Models();
  ASSERT_EQ(models.size(), 1U);
  EXPECT_EQ(models[0].contexts, 2U);
  EXPECT_EQ(models[0].loads, 2U);
  EXPECT_EQ(models[0].name, "m.onnx");
}

TEST_F(ModelRegistryTest, DuplicatedContextIsNoLoad) {
  const TestSession session = Open();
  Upload(session, kRegisteredModel);
  Create(session, 1, kRegisteredModel);
  ContextRequest request;
  request.number = 2;
  request.duplicate_of = 1;
  session->CreateContext(request, [](const auto& info) {
    EXPECT_TRUE(info.ok()) << info.status();
  });
  EXPECT_EQ(service->Models()[0].loads, 1U);
  EXPECT_EQ(service->Models()[0].contexts, 2U);
}

TEST_F(ModelRegistryTest, EqualUploadsAtOneTimeAreLoadedOnce) {
  const TestSession first = Open(1);
  const TestSession second = Open(2);
  std::vector<absl::Status> answers;
  StartUpload(first, kRegisteredModel, kRegisteredModel, &answers);
  StartUpload(second, kRegisteredModel, kRegisteredModel, &answers);
  StartCreate(second, 1, kRegisteredModel, &answers);
  EXPECT_TRUE(answers.empty());

  RunLoops();

  EXPECT_EQ(answers, std::vector<absl::Status>(3));
  EXPECT_EQ(device.loads(), 1U);
}

TEST_F(ModelRegistryTest, WrongBytesAreTheUploadersFailureAlone) {
  const TestSession hostile = Open(1);
  const TestSession honest = Open(2);
  std::vector<absl::Status> hostile_answers;
  std::vector<absl::Status> honest_answers;
  StartUpload(hostile, kRegisteredModel, "something else", &hostile_answers);
  StartUpload(honest, kRegisteredModel, kRegisteredModel, &honest_answers);

  RunLoops();

  ASSERT_EQ(hostile_answers.size(), 1U);
  EXPECT_EQ(hostile_answers[0].code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(honest_answers, std::vector<absl::Status>(1));
  EXPECT_EQ(Create(honest, 1, kRegisteredModel), absl::OkStatus());
}

TEST_F(ModelRegistryTest, WhoWaitsForWrongBytesIsAskedToUpload) {
  const TestSession hostile = Open(1);
  const TestSession honest = Open(2);
  std::vector<absl::Status> ignored;
  std::vector<absl::Status> answers;
  StartUpload(hostile, kRegisteredModel, "something else", &ignored);
  StartCreate(honest, 1, kRegisteredModel, &answers);

  RunLoops();

  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].code(), absl::StatusCode::kNotFound);
}

TEST_F(ModelRegistryTest, RefusedModelTellsEveryWaiterTheDevicesReason) {
  const std::string model = "refuse=FooOp";
  const TestSession first = Open(1);
  const TestSession second = Open(2);
  std::vector<absl::Status> answers;
  StartUpload(first, model, model, &answers);
  StartUpload(second, model, model, &answers);
  StartCreate(second, 1, model, &answers);

  RunLoops();

  ASSERT_EQ(answers.size(), 3U);
  for (const auto& answer : answers) {
    EXPECT_EQ(answer.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(answer.message().find("operator 'FooOp' of model 'm.onnx'"),
              std::string::npos);
  }
  EXPECT_EQ(device.loads(), 1U);
  EXPECT_EQ(Create(second, 1, model)->code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(memory().total(), 0U);
}

TEST_F(ModelRegistryTest, ModelOutlivesItsLastContextByTheGracePeriod) {
  const TestSession session = Open();
  Upload(session, kRegisteredModel);
  Create(session, 1, kRegisteredModel);
  ASSERT_TRUE(session->DestroyContext(1).ok());

  Advance(options.model_grace - 1);
  EXPECT_EQ(service->Models().size(), 1U);
  EXPECT_EQ(device.models(), 1U);

  Advance(1);
  EXPECT_TRUE(service->Models().empty());
  EXPECT_EQ(device.models(), 0U);
  EXPECT_EQ(memory().total(), 0U);
}

TEST_F(ModelRegistryTest, ContextWithinTheGracePeriodNeedsNoLoad) {
  const TestSession session = Open();
  Upload(session, kRegisteredModel);
  Create(session, 1, kRegisteredModel);
  ASSERT_TRUE(session->DestroyContext(1).ok());
  Advance(options.model_grace / 2);

  EXPECT_EQ(Create(session, 1, kRegisteredModel), absl::OkStatus());

  Advance(2 * options.model_grace);
  EXPECT_EQ(service->Models().size(), 1U);
  EXPECT_EQ(device.loads(), 1U);
}

TEST_F(ModelRegistryTest, UploadedModelWaitsForItsFirstContextWithoutGrace) {
  options.model_grace = 0;
  StartService();
  const TestSession session = Open();
  Upload(session, kRegisteredModel);
  EXPECT_EQ(Create(session, 1, kRegisteredModel), absl::OkStatus());
  ASSERT_TRUE(session->DestroyContext(1).ok());
  EXPECT_TRUE(service->Models().empty());
}

TEST_F(ModelRegistryTest, UploadedModelGoesWithTheLastWhoAskedForIt) {
  options.model_grace = 0;
  StartService();
  const TestSession first = Open(), second = Open(), other = Open();
  Upload(first, kRegisteredModel);
  Upload(second, kRegisteredModel);
  Upload(second, kRegisteredModel);
  for (const TestSession* session : {&other, &first}) {
    service->CloseSession((*session)->id());
    EXPECT_EQ(service->Models().size(), 1U);
  }
  service->CloseSession(second->id());
  EXPECT_TRUE(service->Models().empty());
}

TEST_F(ModelRegistryTest, ModelWhoseUploaderGoesWhileItIsLoadedGoesToo) {
  options.model_grace = 0;
  StartService();
  const TestSession session = Open();
  std::vector<absl::Status> answers;
  StartUpload(session, kRegisteredModel, kRegisteredModel, &answers);
  ASSERT_TRUE(loader.RunOne());
  service->CloseSession(session->id());
  RunLoops();
  EXPECT_EQ(device.loads(), 1U);
  EXPECT_TRUE(service->Models().empty());
}

TEST_F(ModelRegistryTest, GraceIsForThoseWhoseUploaderHasGoneAsWell) {
  const TestSession session = Open();
  Upload(session, kRegisteredModel);
  Advance(options.model_grace - 1);
  service->CloseSession(session->id());
  Advance(options.model_grace - 1);
  // Whoever goes later changes nothing.
  service->CloseSession(Open()->id());
  EXPECT_EQ(service->Models().size(), 1U);
  Advance(1);
  EXPECT_TRUE(service->Models().empty());
}

TEST_F(ModelRegistryTest, ModelThatNobodyAskedForGoesToo) {
  const TestSession session = Open();
  Upload(session, kRegisteredModel);
  Advance(options.model_grace);
  EXPECT_TRUE(service->Models().empty());
}

TEST_F(ModelRegistryTest, OptionsArePartOfTheIdentity) {
  const TestSession session = Open();
  EXPECT_EQ(Upload(session, kRegisteredModel), absl::OkStatus());
  EXPECT_EQ(Upload(session, kRegisteredModel, "mean_values: 127"),
            absl::OkStatus());
  EXPECT_EQ(service->Models().size(), 2U);
}

TEST_F(ModelRegistryTest, RestartedServiceLoadsFromTheCacheFolder) {
  const testing::TemporaryFolder folder;
  options.cache_dir = folder.path();
  StartService();
  EXPECT_TRUE(service->keeps_models());
  {
    const TestSession before = Open();
    ASSERT_EQ(Upload(before, kRegisteredModel), absl::OkStatus());
    service->CloseSession(before->id());
  }
  StartService();
  const TestSession after = Open();

  EXPECT_EQ(Create(after, 1, kRegisteredModel), absl::OkStatus());

  EXPECT_EQ(device.loads(), 2U);
  EXPECT_EQ(service->Models()[0].name, "m.onnx");
}

TEST_F(ModelRegistryTest, SpoiltCacheFileMeansUpload) {
  const testing::TemporaryFolder folder;
  options.cache_dir = folder.path();
  StartService();
  {
    const TestSession before = Open();
    Upload(before, kRegisteredModel);
    service->CloseSession(before->id());
  }
  StartService();
  const std::string path =
      folder.path() + "/" + base::ToHex(Id(kRegisteredModel)) + ".model";
  ASSERT_EQ(truncate(path.c_str(), 10), 0);
  const TestSession after = Open();
  EXPECT_EQ(Create(after, 1, kRegisteredModel)->code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Upload(after, kRegisteredModel), absl::OkStatus());
  EXPECT_EQ(Create(after, 1, kRegisteredModel), absl::OkStatus());
}

TEST_F(ModelRegistryTest, RefusedModelIsNotCached) {
  const testing::TemporaryFolder folder;
  options.cache_dir = folder.path();
  StartService();
  const TestSession session = Open();
  Upload(session, "refuse=Op");
  EXPECT_EQ(Create(session, 1, "refuse=Op")->code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ModelRegistryTest, ModelThatCannotBeKeptIsUsedAndLogged) {
  const testing::TemporaryFolder folder;
  options.cache_dir = folder.path();
  options.cache_limit = 10;
  StartService();
  const TestSession session = Open();
  EXPECT_EQ(Upload(session, kRegisteredModel), absl::OkStatus());
  EXPECT_EQ(Create(session, 1, kRegisteredModel), absl::OkStatus());
  ASSERT_EQ(session.log->lines.size(), 1U);
  EXPECT_NE(session.log->lines[0].find("'m.onnx' is not kept"),
            std::string::npos);
}

// ---- layers that no kernel is made for --------------------------------------

class SlowLayersTest : public testing::CoreTest {
 protected:
  SlowLayersTest() {
    options.log = &log_;
    StartService();
  }
  ~SlowLayersTest() override { StopService(); }

  testing::RecordingLog log_;
};

TEST_F(SlowLayersTest, LoadIsLoggedOnceHoweverManyContextsThereAre) {
  const std::string model = "layers=3 slow=1 row=32";
  const TestSession first = Open(1);
  const TestSession second = Open(2);
  ASSERT_TRUE(Upload(first, model)->ok());
  ASSERT_TRUE(Create(first, 1, model)->ok());
  ASSERT_TRUE(Create(first, 2, model)->ok());
  ASSERT_TRUE(Create(second, 1, model)->ok());

  const auto told = AllOf(HasSubstr("model 'm.onnx'"), HasSubstr("'node0'"),
                          HasSubstr("by reference"), Not(HasSubstr("'node1'")));
  EXPECT_THAT(log_.lines, ElementsAre(AllOf(StartsWith("1 "), told)));
  // Whoever brought the model hears it, too: with local: nobody else does.
  EXPECT_THAT(first.log->lines, ElementsAre(AllOf(StartsWith("2 "), told)));
  EXPECT_THAT(second.log->lines, IsEmpty());
}

TEST_F(SlowLayersTest, ModelOfKernelsIsNotLogged) {
  const TestSession session = Open();
  ASSERT_TRUE(Upload(session, kRegisteredModel)->ok());
  ASSERT_TRUE(Create(session, 1, kRegisteredModel)->ok());
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(SlowLayersTest, LoadFromTheCompiledFormIsLoggedToo) {
  const testing::TemporaryFolder folder;
  device.set_compiler("compiler 1");
  options.cache_dir = folder.path();
  StartService();
  const std::string model = "slow=1";
  ASSERT_TRUE(Upload(Open(), model)->ok());
  StartService();
  log_.lines.clear();
  ASSERT_TRUE(Create(Open(), 1, model)->ok());
  EXPECT_EQ(device.restores(), 1U);
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("'node0'")));
  StopService();
}

// ---- the cache folder -------------------------------------------------------

TEST_F(ModelRegistryTest, UnusableCacheFolderIsSaidAndSurvived) {
  options.cache_dir = "/proc/nowhere/models";
  StartService();
  EXPECT_FALSE(service->keeps_models());
  EXPECT_FALSE(service->cache_status().ok());
  const TestSession session = Open();
  EXPECT_EQ(Upload(session, kRegisteredModel), absl::OkStatus());
}

TEST_F(ModelRegistryTest, SessionClosedWhileItLoadsIsNotCalledBack) {
  const TestSession session = Open();
  std::vector<absl::Status> answers;
  StartUpload(session, kRegisteredModel, kRegisteredModel, &answers);
  StartCreate(session, 1, kRegisteredModel, &answers);
  service->CloseSession(session->id());
  RunLoops();
  EXPECT_TRUE(answers.empty());
  Advance(options.model_grace);
  EXPECT_EQ(memory().total(), 0U);
}

TEST_F(ModelRegistryTest, UploadIsChargedUntilItIsLoaded) {
  const TestSession session = Open();
  std::vector<absl::Status> answers;
  StartUpload(session, kRegisteredModel, kRegisteredModel, &answers);
  EXPECT_EQ(memory().other, sizeof kRegisteredModel - 1);
  RunLoops();
  EXPECT_EQ(memory().other, 0U);
}

TEST_F(ModelRegistryTest, VendorSharingLoadsOnceForEachInit) {
  options.vendor_sharing = true;
  StartService();
  const TestSession session = Open();
  MakeReady(session, 1, kRegisteredModel);
  EXPECT_EQ(Create(session, 2, kRegisteredModel)->code(),
            absl::StatusCode::kNotFound);
  MakeReady(session, 2, kRegisteredModel);

  EXPECT_EQ(device.loads(), 2U);
  EXPECT_EQ(memory().weight, 2000U);
  EXPECT_EQ(memory().internal, 2 * 8192U);

  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_EQ(session.sink->last().status, absl::OkStatus());
  ASSERT_TRUE(session->DestroyContext(1).ok());
  EXPECT_EQ(memory().weight, 1000U);
  EXPECT_EQ(memory().internal, 8192U);
}

TEST_F(ModelRegistryTest, VendorSharingDuplicatesShareWeightsOnly) {
  options.vendor_sharing = true;
  StartService();
  const TestSession session = Open();
  Upload(session, kRegisteredModel);
  Create(session, 1, kRegisteredModel);
  ContextRequest request;
  request.number = 2;
  request.duplicate_of = 1;
  session->CreateContext(request, [](const auto& info) {
    EXPECT_TRUE(info.ok()) << info.status();
  });
  EXPECT_EQ(memory().weight, 1000U);
  EXPECT_EQ(memory().internal, 2 * 8192U);
}

}  // namespace
}  // namespace rknnd::core
