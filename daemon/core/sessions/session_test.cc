// Tests of a session's verbs: numbers, limits, uploads, and its end.

#include "daemon/core/sessions/session.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/posix/memfd.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

class SessionTest : public testing::CoreTest {
 protected:
  static absl::Status UploadFd(const TestSession& session, base::UniqueFd fd,
                               const std::string& options = "") {
    absl::Status answer = absl::UnknownError("no answer");
    session->UploadModel(
        {ModelId{}, "m.onnx", options, std::move(fd)},
        [&answer](const absl::Status& status) { answer = status; });
    return answer;
  }
};

TEST_F(SessionTest, ContextNumberZeroIsRefused) {
  const TestSession session = Open();
  Upload(session, "x");
  EXPECT_EQ(Create(session, 0, "x")->code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionTest, UsedContextNumberIsRefused) {
  const TestSession session = Open();
  Upload(session, "x");
  ASSERT_EQ(Create(session, 1, "x"), absl::OkStatus());
  EXPECT_EQ(Create(session, 1, "x")->code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(session->DestroyContext(1).ok());
  EXPECT_EQ(Create(session, 1, "x"), absl::OkStatus());
}

TEST_F(SessionTest, NumberOfAContextBeingLoadedIsUsed) {
  const TestSession session = Open();
  std::vector<absl::Status> answers;
  StartUpload(session, "x", "x", &answers);
  StartCreate(session, 1, "x", &answers);
  StartCreate(session, 1, "x", &answers);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(SessionTest, ContextDestroyedWhileItsModelLoadsIsCancelled) {
  const TestSession session = Open();
  std::vector<absl::Status> uploaded;
  std::vector<absl::Status> answers;
  StartUpload(session, "x", "x", &uploaded);
  StartCreate(session, 1, "x", &answers);
  ASSERT_TRUE(session->DestroyContext(1).ok());
  RunLoops();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(service->Contexts().empty());
}

TEST_F(SessionTest, DestroyingAnUnknownContextIsNotFound) {
  const TestSession session = Open();
  EXPECT_EQ(session->DestroyContext(4).code(), absl::StatusCode::kNotFound);
}

TEST_F(SessionTest, ContextLimitNamesLimitAndHolder) {
  options.limits.contexts = 1;
  StartService();
  const TestSession session = Open(42);
  Upload(session, "x");
  ASSERT_EQ(Create(session, 1, "x"), absl::OkStatus());
  const auto refused = Create(session, 2, "x");
  EXPECT_EQ(refused->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused->message().find("'contexts' is 1"), std::string::npos);
  EXPECT_NE(refused->message().find("pid 42 'cam'"), std::string::npos);
}

TEST_F(SessionTest, BadFlagsAndMasksAreRefusedBeforeTheModelIsLookedUp) {
  const TestSession session = Open();
  EXPECT_EQ(Create(session, 1, "x", 0x20000)->code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Create(session, 1, "x", 0, 5)->code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionTest, DuplicateOfAnUnknownContextIsNoCallToUpload) {
  const TestSession session = Open();
  ContextRequest request;
  request.number = 2;
  request.duplicate_of = 1;
  absl::Status answer;
  session->CreateContext(request,
                         [&](const auto& info) { answer = info.status(); });
  EXPECT_EQ(answer.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionTest, PriorityAndMaskAreReported) {
  const TestSession session = Open();
  Upload(session, "x");
  ASSERT_EQ(Create(session, 1, "x", 2, 2), absl::OkStatus());
  const auto contexts = service->Contexts();
  ASSERT_EQ(contexts.size(), 1U);
  EXPECT_EQ(contexts[0].priority, Priority::kLow);
  EXPECT_EQ(contexts[0].core_mask, 2U);
  EXPECT_EQ(contexts[0].session, session->id());
}

TEST_F(SessionTest, EmptyModelIsRefused) {
  const TestSession session = Open();
  auto empty = base::MakeImmutableMemfd("model", {});
  ASSERT_TRUE(empty.ok());
  const absl::Status status = UploadFd(session, *std::move(empty));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("empty"), std::string::npos);
}

TEST_F(SessionTest, ModelThatCouldStillChangeIsRefused) {
  const TestSession session = Open();
  auto writable = base::MakeMemfd("model", 100);
  ASSERT_TRUE(writable.ok());
  EXPECT_EQ(UploadFd(session, *std::move(writable)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(UploadFd(session, base::UniqueFd()).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionTest, ModelThatIsNoFileIsNamedByItsHash) {
  const TestSession session = Open();
  absl::Status answer;
  session->UploadModel(
      {ModelId{0x1f, 0x8b, 3, 0xc4}, "", "", base::UniqueFd()},
      [&answer](const absl::Status& status) { answer = status; });
  EXPECT_NE(answer.message().find("model 'bytes-1f8b03c4'"), std::string::npos)
      << answer;
}

TEST_F(SessionTest, ModelAboveTheLimitIsRefusedByName) {
  options.limits.model_bytes = 10;
  StartService();
  const TestSession session = Open();
  const auto status = Upload(session, "12345678901");
  EXPECT_EQ(status->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status->message().find("'model_bytes'"), std::string::npos);
}

TEST_F(SessionTest, OptionsThatAreNoTextAreRefused) {
  const TestSession session = Open();
  EXPECT_EQ(Upload(session, "x", std::string("a\0b", 3))->code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Upload(session, "x", "a:\n\t- b\r\n"), absl::OkStatus());
}

TEST_F(SessionTest, MemorySizeAddsUp) {
  const TestSession session = Open();
  MakeReady(session, 1, "weight=1000 internal=5000");
  const auto size = session->GetMemorySize(1);
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(size->weight, 1000U);
  EXPECT_EQ(size->internal, 5000U);
  EXPECT_EQ(size->dma_total, 1000U + 5000U + 2 * 4096U);
  EXPECT_EQ(session->GetMemorySize(2).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(SessionTest, MemorySizeCountsWhatModelsTakeOnce) {
  const TestSession session = Open();
  MakeReady(session, 1, "weight=1000 internal=5000");
  ASSERT_EQ(Create(session, 2, "weight=1000 internal=5000"), absl::OkStatus());
  Upload(session, "weight=300 internal=70");
  ASSERT_EQ(Create(session, 3, "weight=300 internal=70"), absl::OkStatus());
  const TestSession other = Open();
  ASSERT_TRUE(AllocateNow(other, 1, 4096, 0).ok());
  for (const uint32_t context : {1, 2, 3}) {
    const auto size = session->GetMemorySize(context);
    ASSERT_TRUE(size.ok());
    EXPECT_EQ(size->dma_total, 1000U + 5000U + 300U + 70U + 2 * 4096U);
  }
}

TEST_F(SessionTest, SramBelongsToWhoOpenedWithItUntilThatIsDestroyed) {
  const std::string model = "sram=8192";
  const TestSession session = Open();
  Upload(session, model);
  ASSERT_EQ(Create(session, 1, model), absl::OkStatus());
  const auto free = [&] { return session->GetMemorySize(1)->sram_free; };
  const uint64_t total = session->GetMemorySize(1)->sram_total;
  EXPECT_EQ(free(), total);

  ASSERT_EQ(Create(session, 2, model, kEnableSram), absl::OkStatus());
  EXPECT_EQ(free(), total - 8192);
  EXPECT_EQ(service->Status().sram_free, total - 8192);

  ASSERT_TRUE(session->DestroyContext(2).ok());
  EXPECT_EQ(free(), total);
}

TEST_F(SessionTest, ClosedSessionLeavesTheModelAlone) {
  const size_t fds = OpenFds();
  {
    const TestSession session = Open();
    MakeReady(session, 1, "weight=1000 internal=5000");
    MakeReady(session, 2, "weight=1000 internal=5000");
    service->CloseSession(session->id());
    EXPECT_TRUE(service->Sessions().empty());
    EXPECT_EQ(memory().io, 0U);
    EXPECT_EQ(memory().weight, 1000U);
  }
  Advance(options.model_grace);
  EXPECT_EQ(memory().total(), 0U);
  EXPECT_EQ(device.memories(), 0U);
  EXPECT_EQ(OpenFds(), fds);
}

TEST_F(SessionTest, JobOfAClosedSessionEndsIntoMemoryThatIsFreedAfterIt) {
  const size_t fds = OpenFds();
  {
    const TestSession session = Open();
    MakeReady(session, 1, "weight=1000 internal=5000");
    device.HoldJobs(true);
    ASSERT_TRUE(Submit(session, 1, 0).ok());
    ASSERT_TRUE(Submit(session, 1, 1).ok());
    RunReady();
    service->CloseSession(session->id());
    Advance(options.model_grace);
    EXPECT_TRUE(service->Models().empty());
    EXPECT_EQ(memory().io, 2 * 4096U);
    EXPECT_EQ(memory().weight, 1000U);

    ASSERT_TRUE(device.Release());

    EXPECT_EQ(session.sink->count(), 0U);
    EXPECT_EQ(memory().total(), 0U);
    EXPECT_EQ(device.memories(), 0U);
    EXPECT_EQ(device.models(), 0U);
  }
  EXPECT_EQ(OpenFds(), fds);
}

TEST_F(SessionTest, JobMayOutliveTheService) {
  const TestSession session = Open();
  MakeReady(session, 1, "weight=1000 internal=5000");
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  service->CloseSession(session->id());
  StopService();
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(device.memories(), 0U);
  EXPECT_EQ(device.models(), 0U);
}

TEST_F(SessionTest, EndedSessionRefusesEverything) {
  const TestSession session = Open();
  service->CloseSession(session->id());
  EXPECT_EQ(Create(session, 1, "x")->code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Upload(session, "x")->code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(AllocateNow(session, 1, 4096, 0).ok());
  EXPECT_FALSE(session->Bind({}).ok());
  EXPECT_FALSE(session->DestroyContext(1).ok());
}

class OneCoreTest : public testing::CoreTest {
 protected:
  OneCoreTest() : CoreTest(1) {}
};

TEST_F(OneCoreTest, CoreMaskIsIgnoredAndLogged) {
  const TestSession session = Open();
  MakeReady(session, 1, "x");
  EXPECT_TRUE(SetCoreMaskNow(session, 1, 7).ok());
  ASSERT_EQ(session.log->lines.size(), 1U);
  EXPECT_EQ(session.log->lines[0],
            "4 core mask 7 ignored, rk3588 has one core");
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_EQ(session.sink->last().status, absl::OkStatus());
}

}  // namespace
}  // namespace rknnd::core
