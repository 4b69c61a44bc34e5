// Tests of internal and weight memory that programs bring.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/memory/buffer_table.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

constexpr uint32_t kAllOutside = 0x10;
constexpr char kSessionModel[] = "bytes=16 internal=5000 weight=300";

class SessionMemoryTest : public testing::CoreTest {
 protected:
  SessionMemoryTest() : session_(Open()) {}

  // Memory that several sessions can import.
  static base::UniqueFd Shareable(uint64_t size) {
    base::UniqueFd fd(memfd_create("m", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    return fd;
  }
  void Import(const TestSession& session, uint32_t buffer,
              const base::UniqueFd& fd) {
    auto copy = base::Duplicate(fd.get());
    ASSERT_TRUE(ImportNow(session, buffer, *std::move(copy), 0).ok());
  }
  static absl::Status SetInternal(const TestSession& session, uint32_t context,
                                  uint32_t buffer, uint64_t offset,
                                  uint64_t size) {
    return session->SetInternalMemory({context, buffer, offset, size});
  }
  absl::Status SetWeights(const TestSession& session, uint32_t context,
                          uint32_t buffer, uint64_t size) {
    std::vector<absl::Status> answers;
    session->SetWeightMemory({context, buffer, 0, size},
                             [&](absl::Status s) { answers.push_back(s); });
    RunLoops();
    if (answers.size() != 1) return absl::UnknownError("not answered once");
    return answers[0];
  }
  static bool Mentions(const absl::Status& status, const std::string& text) {
    return status.message().find(text) != std::string::npos;
  }
  // The answer to a run.
  absl::Status Run(const TestSession& session, uint32_t context) {
    const size_t before = session.sink->count();
    EXPECT_TRUE(Submit(session, context, 0, ++sequence_).ok());
    RunReady();
    EXPECT_EQ(session.sink->count(), before + 1);
    return session.sink->all().back().status;
  }

  TestSession session_;
  uint32_t sequence_ = 0;
};

TEST_F(SessionMemoryTest, ContextRunsInTheMemoryItWasGiven) {
  MakeReady(session_, 1, kSessionModel, kInternalOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  ASSERT_TRUE(SetInternal(session_, 1, 5, 64, 5000).ok());
  EXPECT_TRUE(Run(session_, 1).ok());
  EXPECT_EQ(device.runs().back().internal_size, 8192U);
  EXPECT_EQ(device.violations(), 0U);
}

TEST_F(SessionMemoryTest, SuchContextNeedsNoArena) {
  MakeReady(session_, 1, kSessionModel, kAllOutside);
  EXPECT_EQ(memory().internal, 0U);
  ASSERT_TRUE(SetCoreMaskNow(session_, 1, 7).ok());
  EXPECT_EQ(memory().internal, 0U);
}

TEST_F(SessionMemoryTest, ProgramsMemoryIsNeverCleared) {
  MakeReady(session_, 1, kSessionModel, kInternalOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  ASSERT_TRUE(SetInternal(session_, 1, 5, 0, 8192).ok());
  ASSERT_TRUE(Run(session_, 1).ok());
  service->runner().ClearIdle();
  EXPECT_EQ(device.cleared(), 0U);
}

TEST_F(SessionMemoryTest, RunWithoutInternalMemorySaysWhatToCall) {
  MakeReady(session_, 1, kSessionModel, kInternalOutside);
  const absl::Status refused = Run(session_, 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Mentions(refused, "rknn_set_internal_mem")) << refused;
  EXPECT_TRUE(Mentions(refused, "5000")) << refused;
}

TEST_F(SessionMemoryTest, MemoryIsTakenAwayByNumberZero) {
  MakeReady(session_, 1, kSessionModel, kInternalOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  ASSERT_TRUE(SetInternal(session_, 1, 5, 0, 8192).ok());
  ASSERT_TRUE(SetInternal(session_, 1, 0, 0, 0).ok());
  EXPECT_FALSE(Run(session_, 1).ok());
}

TEST_F(SessionMemoryTest, ModelWithoutIntermediatesNeedsNone) {
  MakeReady(session_, 1, "bytes=16", kInternalOutside);
  EXPECT_TRUE(Run(session_, 1).ok());
}

TEST_F(SessionMemoryTest, TooSmallMemoryIsRefusedWithBothNumbers) {
  MakeReady(session_, 1, kSessionModel, kInternalOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  const absl::Status refused = SetInternal(session_, 1, 5, 0, 4999);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Mentions(refused, "4999")) << refused;
  EXPECT_TRUE(Mentions(refused, "5000")) << refused;
}

TEST_F(SessionMemoryTest, DynamicModelNeedsRoomForItsLargestShape) {
  const std::string model = "bytes=16 internal=1000 row=64 row=32";
  MakeReady(session_, 1, model, kInternalOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  EXPECT_TRUE(Mentions(SetInternal(session_, 1, 5, 0, 3999), "4000 needed"));
  EXPECT_TRUE(SetInternal(session_, 1, 5, 0, 4000).ok());
}

TEST_F(SessionMemoryTest, RangesOutsideTheBufferAreRefused) {
  MakeReady(session_, 1, kSessionModel, kInternalOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  EXPECT_FALSE(SetInternal(session_, 1, 5, 4096, 5000).ok());
  EXPECT_FALSE(SetInternal(session_, 1, 5, UINT64_MAX - 63, 5000).ok());
  EXPECT_FALSE(SetInternal(session_, 1, 5, 64, UINT64_MAX).ok());
  EXPECT_FALSE(SetInternal(session_, 1, 5, 8256, 0).ok());
  EXPECT_TRUE(Mentions(SetInternal(session_, 1, 5, 8, 5000), "multiple of 64"));
  EXPECT_EQ(SetInternal(session_, 1, 6, 0, 5000).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(SetInternal(session_, 2, 5, 0, 5000).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(SessionMemoryTest, ReadOnlyMemoryIsRefused) {
  MakeReady(session_, 1, kSessionModel, kAllOutside);
  const base::UniqueFd fd = Shareable(8192);
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  base::UniqueFd reading(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(ImportNow(session_, 5, std::move(reading), 0).ok());
  EXPECT_TRUE(Mentions(SetInternal(session_, 1, 5, 0, 8192), "reading only"));
  EXPECT_TRUE(Mentions(SetWeights(session_, 1, 5, 8192), "reading only"));
}

TEST_F(SessionMemoryTest, ContextsWithoutTheFlagAreToldWhichToUse) {
  MakeReady(session_, 1, kSessionModel);
  MakeReady(session_, 2, kSessionModel, kInternalOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  const absl::Status internal = SetInternal(session_, 1, 5, 0, 8192);
  EXPECT_EQ(internal.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Mentions(internal, "RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE"));
  for (uint32_t context : {1U, 2U}) {
    const absl::Status weights = SetWeights(session_, context, 5, 8192);
    EXPECT_EQ(weights.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(Mentions(weights, "RKNN_FLAG_MEM_ALLOC_OUTSIDE"));
  }
}

TEST_F(SessionMemoryTest, ContextsThatShareRunOneAfterTheOther) {
  for (uint32_t context : {1U, 2U}) {
    MakeReady(session_, context, kSessionModel, kInternalOutside);
  }
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  for (uint32_t context : {1U, 2U}) {
    ASSERT_TRUE(SetInternal(session_, context, 5, 0, 8192).ok());
  }
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  ASSERT_TRUE(Submit(session_, 2, 1).ok());
  RunReady();
  EXPECT_EQ(device.held(), 1U);
  ASSERT_TRUE(device.Release());
  RunReady();
  EXPECT_EQ(device.held(), 1U);
  EXPECT_EQ(session_.sink->count(), 1U);
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(session_.sink->count(), 2U);
}

TEST_F(SessionMemoryTest, SoDoContextsOfOtherSessionsByTheirImports) {
  const TestSession other = Open(200);
  const base::UniqueFd fd = Shareable(16384);
  Import(session_, 5, fd);
  Import(other, 9, fd);
  MakeReady(session_, 1, kSessionModel, kInternalOutside);
  MakeReady(other, 1, kSessionModel, kInternalOutside);
  ASSERT_TRUE(SetInternal(session_, 1, 5, 0, 8192).ok());
  ASSERT_TRUE(SetInternal(other, 1, 9, 4096, 8192).ok());
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  ASSERT_TRUE(Submit(other, 1, 0).ok());
  RunReady();
  EXPECT_EQ(device.held(), 1U);
  // Beside each other they run at once.
  ASSERT_TRUE(SetInternal(other, 1, 9, 8192, 8192).ok());
  ASSERT_TRUE(device.Release());
  RunReady();
  ASSERT_TRUE(device.Release());
  ASSERT_TRUE(Submit(session_, 1, 0, 2).ok());
  ASSERT_TRUE(Submit(other, 1, 0, 2).ok());
  RunReady();
  EXPECT_EQ(device.held(), 2U);
  while (device.Release()) {
  }
}

TEST_F(SessionMemoryTest, AllocationsOfOurOwnAreNeverTakenForEachOther) {
  for (uint32_t context : {1U, 2U}) {
    MakeReady(session_, context, kSessionModel, kInternalOutside);
    ASSERT_TRUE(AllocateNow(session_, 5 + context, 8192, 0).ok());
    ASSERT_TRUE(SetInternal(session_, context, 5 + context, 0, 8192).ok());
  }
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  ASSERT_TRUE(Submit(session_, 2, 1).ok());
  RunReady();
  EXPECT_EQ(device.held(), 2U);
  while (device.Release()) {
  }
}

TEST_F(SessionMemoryTest, MemoryOfUnknownIdentityIsLikeNoOther) {
  const auto live = std::make_shared<std::atomic<uint32_t>>(0);
  Buffer::Parts parts, others;
  parts.live = others.live = live;
  const Buffer one(std::move(parts)), other(std::move(others));
  EXPECT_NE(one.identity(), other.identity());
  EXPECT_NE(one.identity(), driver::MemoryIdentity());
}

TEST_F(SessionMemoryTest, InternalMemoryCountsAsABindingInReports) {
  MakeReady(session_, 1, kSessionModel, kInternalOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  ASSERT_TRUE(SetInternal(session_, 1, 5, 0, 8192).ok());
  EXPECT_EQ(service->Buffers()[0].bindings, 1U);
}

TEST_F(SessionMemoryTest, BatchOfAGangComputesSliceAfterSlice) {
  MakeReady(session_, 1, "bytes=16 internal=5000 batch=4", kInternalOutside, 7);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  ASSERT_TRUE(SetInternal(session_, 1, 5, 0, 8192).ok());
  ASSERT_TRUE(Run(session_, 1).ok());
  EXPECT_EQ(device.runs().back().core_mask, 7U);
  EXPECT_EQ(device.runs().back().gang_internal, 0U);
}

TEST_F(SessionMemoryTest, RunningJobKeepsMemoryThatIsReleasedOrReplaced) {
  MakeReady(session_, 1, kSessionModel, kInternalOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  ASSERT_TRUE(AllocateNow(session_, 6, 8192, 0).ok());
  ASSERT_TRUE(SetInternal(session_, 1, 5, 0, 8192).ok());
  const uint32_t before = device.memories();
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  RunReady();
  ASSERT_TRUE(SetInternal(session_, 1, 6, 0, 8192).ok());
  ASSERT_TRUE(session_->ReleaseBuffer(5).ok());
  EXPECT_EQ(device.memories(), before);
  ASSERT_TRUE(device.Release());
  EXPECT_TRUE(session_.sink->last().status.ok());
  RunLoops();
  EXPECT_EQ(device.memories(), before - 1);
}

TEST_F(SessionMemoryTest, ReleasedMemoryServesUntilItIsReplaced) {
  MakeReady(session_, 1, kSessionModel, kInternalOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  ASSERT_TRUE(SetInternal(session_, 1, 5, 0, 8192).ok());
  ASSERT_TRUE(session_->ReleaseBuffer(5).ok());
  EXPECT_FALSE(session_->ReleaseBuffer(5).ok());
  EXPECT_TRUE(Run(session_, 1).ok());
}

TEST_F(SessionMemoryTest, EndedSessionLeavesItsTurnToOthers) {
  const TestSession other = Open(200);
  const base::UniqueFd fd = Shareable(8192);
  Import(session_, 5, fd);
  Import(other, 5, fd);
  for (const TestSession& session : {session_, other}) {
    MakeReady(session, 1, kSessionModel, kInternalOutside);
    ASSERT_TRUE(SetInternal(session, 1, 5, 0, 8192).ok());
  }
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  RunReady();
  ASSERT_TRUE(Submit(other, 1, 0).ok());
  RunReady();
  ASSERT_EQ(device.held(), 1U);
  service->CloseSession(session_->id());
  RunReady();
  EXPECT_EQ(device.held(), 1U);
  ASSERT_TRUE(device.Release());
  RunReady();
  EXPECT_EQ(device.held(), 1U);
  ASSERT_TRUE(device.Release());
  EXPECT_TRUE(other.sink->last().status.ok());
}

TEST_F(SessionMemoryTest, InputAndOutputInOneMemoryAreRefusedAtTheRun) {
  MakeReady(session_, 1, "bytes=16");
  ASSERT_TRUE(AllocateNow(session_, 5, 4096, 0).ok());
  ASSERT_TRUE(
      session_->Bind(BindTo(1, driver::Direction::kInput, 0, 5, 4096)).ok());
  // Not here: programs exchange buffers one by one.
  BindRequest output = BindTo(1, driver::Direction::kOutput, 0, 5, 100);
  output.offset = 15;
  ASSERT_TRUE(session_->Bind(output).ok());
  const absl::Status refused = Run(session_, 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Mentions(refused, "input 0 'in0' and output 0 'out0'"))
      << refused;
  // Only what a run touches counts, not what the program says is there.
  output.offset = 16;
  ASSERT_TRUE(session_->Bind(output).ok());
  EXPECT_TRUE(Run(session_, 1).ok());
}

TEST_F(SessionMemoryTest, OverlapsAreFoundThroughDifferentImports) {
  MakeReady(session_, 1, "bytes=16 outputs=2");
  const base::UniqueFd fd = Shareable(4096);
  Import(session_, 5, fd);
  Import(session_, 6, fd);
  ASSERT_TRUE(
      session_->Bind(BindTo(1, driver::Direction::kOutput, 0, 5, 4096)).ok());
  ASSERT_TRUE(
      session_->Bind(BindTo(1, driver::Direction::kOutput, 1, 6, 4096)).ok());
  EXPECT_TRUE(
      Mentions(Run(session_, 1), "output 0 'out0' and output 1 'out1'"));
}

TEST_F(SessionMemoryTest, InternalMemoryUnderATensorIsRefusedAtTheRun) {
  MakeReady(session_, 1, kSessionModel, kInternalOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  ASSERT_TRUE(SetInternal(session_, 1, 5, 0, 5000).ok());
  BindRequest input = BindTo(1, driver::Direction::kInput, 0, 5, 100);
  input.offset = 4999;
  ASSERT_TRUE(session_->Bind(input).ok());
  EXPECT_TRUE(Mentions(Run(session_, 1), "and the internal memory of model"));
  input.offset = 5000;
  ASSERT_TRUE(session_->Bind(input).ok());
  EXPECT_TRUE(Run(session_, 1).ok());
}

TEST_F(SessionMemoryTest, WeightMemoryIsFilledAndNotRead) {
  MakeReady(session_, 1, kSessionModel, kAllOutside);
  auto weights = AllocateNow(session_, 5, 4096, 0);
  ASSERT_TRUE(weights.ok());
  ASSERT_TRUE(AllocateNow(session_, 6, 8192, 0).ok());
  ASSERT_TRUE(SetInternal(session_, 1, 6, 0, 8192).ok());
  ASSERT_TRUE(SetWeights(session_, 1, 5, 300).ok());
  const auto bytes = base::Mapping::OfFd(weights->fd.get(), 0, 4096,
                                         base::Mapping::Access::kRead);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->data()[299], std::byte{0x57});
  EXPECT_EQ(bytes->data()[300], std::byte{0});
  EXPECT_TRUE(session_->ReleaseBuffer(5).ok());
  EXPECT_TRUE(Run(session_, 1).ok());
}

TEST_F(SessionMemoryTest, WeightMemoryTooSmallIsRefusedWithBothNumbers) {
  MakeReady(session_, 1, kSessionModel, kAllOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 4096, 0).ok());
  const absl::Status refused = SetWeights(session_, 1, 5, 299);
  EXPECT_TRUE(Mentions(refused, "299 bytes, 300 needed")) << refused;
}

TEST_F(SessionMemoryTest, WeightMemoryMayGoWhileItIsFilled) {
  MakeReady(session_, 1, kSessionModel, kAllOutside);
  ASSERT_TRUE(AllocateNow(session_, 5, 4096, 0).ok());
  bool answered = false;
  session_->SetWeightMemory({1, 5, 0, 4096},
                            [&](const absl::Status&) { answered = true; });
  ASSERT_TRUE(session_->ReleaseBuffer(5).ok());
  ASSERT_TRUE(session_->DestroyContext(1).ok());
  service->CloseSession(session_->id());
  RunLoops();
  EXPECT_FALSE(answered);
}

TEST_F(SessionMemoryTest, ContextThatOnlyAnswersQueriesKeepsNoWeights) {
  Upload(session_, kSessionModel);
  ASSERT_TRUE(Create(session_, 1, kSessionModel, kInfoOnly)->ok());
  const auto size = session_->GetMemorySize(1);
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(size->weight, 300U);
  EXPECT_EQ(size->internal, 5000U);
  EXPECT_EQ(size->dma_total, 0U);
  // Its model stays for the grace period, as one without contexts.
  EXPECT_GT(memory().weight, 0U);
  Advance(options.model_grace + 1);
  RunLoops();
  EXPECT_EQ(memory().weight, 0U);
  EXPECT_EQ(session_->GetMemorySize(1)->weight, 300U);
  ASSERT_TRUE(AllocateNow(session_, 5, 8192, 0).ok());
  EXPECT_FALSE(SetInternal(session_, 1, 5, 0, 8192).ok());
  EXPECT_FALSE(
      session_->Bind(BindTo(1, driver::Direction::kInput, 0, 5, 4096)).ok());
  EXPECT_TRUE(Mentions(Run(session_, 1), "INFO_ONLY"));
}

TEST_F(SessionMemoryTest, ContextThatOnlyAnswersQueriesTakesAnyCoreMask) {
  Upload(session_, kSessionModel);
  ASSERT_TRUE(Create(session_, 1, kSessionModel, kInfoOnly)->ok());
  for (const uint32_t mask : {1U, 2U, 7U, 0U}) {
    EXPECT_EQ(SetCoreMaskNow(session_, 1, mask), absl::OkStatus()) << mask;
  }
  EXPECT_FALSE(SetCoreMaskNow(session_, 1, 1U << 31).ok());
  EXPECT_TRUE(Mentions(Run(session_, 1), "INFO_ONLY"));
}

TEST_F(SessionMemoryTest, ContextsThatOnlyAnswerQueriesShareWhatTheyTell) {
  Upload(session_, kSessionModel);
  for (uint32_t context = 1; context <= 50; ++context) {
    ASSERT_TRUE(Create(session_, context, kSessionModel, kInfoOnly)->ok());
  }
  // One that runs is another matter.
  ASSERT_TRUE(Create(session_, 51, kSessionModel)->ok());
  EXPECT_EQ(session_->GetMemorySize(51)->dma_total,
            session_->GetMemorySize(1)->dma_total);
  EXPECT_EQ(session_->GetMemorySize(1)->dma_total, 300U + 5000U);
}

}  // namespace
}  // namespace rknnd::core
