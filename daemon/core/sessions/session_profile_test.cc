// Tests of what a session is told of its runs: layer times, memory, dumps.

#include <gmock/gmock.h>
#include <unistd.h>

#include <string>

#include "base/posix/memfd.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::TestSession;

constexpr uint32_t kCollectPerf = 0x8;

class ProfileTest : public testing::CoreTest {
 protected:
  void Run(const TestSession& session) {
    ASSERT_TRUE(Submit(session, 1, 0, ++sequence_).ok());
    RunReady();
  }

 private:
  uint32_t sequence_ = 0;
};

// ---- layer times ------------------------------------------------------------

TEST_F(ProfileTest, TableHasALinePerLayerAndTheirSum) {
  const TestSession session = Open();
  MakeReady(session, 1, "layers=3", kCollectPerf);
  EXPECT_THAT(*session->contexts().PerfDetail(1), HasSubstr("no run yet"));
  Run(session);

  const auto text = session->contexts().PerfDetail(1);

  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("Conv:node2"));
  EXPECT_THAT(*text, HasSubstr("(1,3,8,8)"));
  EXPECT_THAT(*text,
              HasSubstr("Total Operator Elapsed Per Frame Time(us): 6\n"));
}

TEST_F(ProfileTest, RowsAreTheTablesOwn) {
  const TestSession session = Open();
  MakeReady(session, 1, "layers=3", kCollectPerf);
  Run(session);

  const auto rows = session->contexts().PerfLayers(1);

  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_THAT(*rows, SizeIs(3));
  EXPECT_EQ((*rows)[2].layer->name, "node2");
  EXPECT_EQ((*rows)[2].time, 3 * base::kMicrosecond);
}

TEST_F(ProfileTest, ContextWithoutTheFlagSaysThatNothingWasRecorded) {
  const TestSession session = Open();
  MakeReady(session, 1, "layers=3");
  Run(session);
  EXPECT_THAT(*session->contexts().PerfDetail(1),
              HasSubstr("RKNN_FLAG_COLLECT_PERF_MASK"));
  EXPECT_EQ(session->contexts().PerfLayers(1).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ProfileTest, FailedRunKeepsTheTimesOfTheLastGoodOne) {
  const TestSession session = Open();
  MakeReady(session, 1, "layers=3", kCollectPerf);
  Run(session);
  device.FailJobs(absl::InternalError("broken"));
  Run(session);
  EXPECT_THAT(*session->contexts().PerfDetail(1), HasSubstr("Time(us): 6\n"));
}

TEST_F(ProfileTest, ModelDetailNamesTheModelAndItsMemory) {
  const TestSession session = Open();
  MakeReady(session, 1, "name=net weight=1000 internal=4096");

  const auto text = session->contexts().ModelDetail(1);

  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("name: net"));
  EXPECT_THAT(*text, HasSubstr("Total Weight Memory Size: 1000\n"));
  EXPECT_THAT(*text, HasSubstr("Total Internal Memory Size: 4096\n"));
}

TEST_F(ProfileTest, LayersAreToldOfAContextThatNeverRuns) {
  const TestSession session = Open();
  const std::string model = "layers=3 slow=1";
  ASSERT_TRUE(Upload(session, model)->ok());
  ASSERT_TRUE(Create(session, 1, model, kInfoOnly)->ok());

  const auto layers = session->contexts().ModelLayers(1);

  ASSERT_TRUE(layers.ok()) << layers.status();
  ASSERT_THAT(*layers, SizeIs(3));
  EXPECT_EQ((*layers)[0].kernel, "reference");
  EXPECT_TRUE((*layers)[0].is_slow);
  EXPECT_FALSE((*layers)[2].is_slow);
}

TEST_F(ProfileTest, ContextsThatDoNotExistAreNamed) {
  const TestSession session = Open();
  EXPECT_EQ(session->contexts().ModelLayers(7).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(session->contexts().PerfDetail(7).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(session->contexts().PerfLayers(7).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(session->contexts().ModelDetail(7).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(session->ArmDump(7).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(session->contexts().TakeDump(7).status().code(),
            absl::StatusCode::kNotFound);
}

// ---- dumps ------------------------------------------------------------------

TEST_F(ProfileTest, DumpHasTheOutputOfEachLayer) {
  const TestSession session = Open();
  MakeReady(session, 1, "layers=3");
  ASSERT_TRUE(session->ArmDump(1).ok());
  Run(session);

  auto report = session->contexts().TakeDump(1);

  ASSERT_TRUE(report.ok()) << report.status();
  const Dump& dump = report->dump;
  EXPECT_EQ(dump.size, 3 * sizeof(float));
  ASSERT_THAT(dump.tensors, SizeIs(3));
  EXPECT_EQ(dump.tensors[2].layer, 2U);
  EXPECT_EQ(dump.tensors[2].name, "node2");
  EXPECT_EQ(report->program->layers[2].type, "Conv");
  float value = 0;
  ASSERT_EQ(pread(dump.bytes.get(), &value, sizeof value,
                  static_cast<off_t>(dump.tensors[2].offset)),
            static_cast<ssize_t>(sizeof value));
  EXPECT_EQ(value, 2.0F);
  EXPECT_TRUE(base::HasSeals(dump.bytes.get(), base::Seals::kImmutable));
}

TEST_F(ProfileTest, OnlyTheNextRunIsDumped) {
  const TestSession session = Open();
  MakeReady(session, 1, "layers=3");
  ASSERT_TRUE(session->ArmDump(1).ok());
  Run(session);
  Run(session);
  EXPECT_TRUE(session->contexts().TakeDump(1).ok());
  EXPECT_EQ(session->contexts().TakeDump(1).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ProfileTest, RunWithoutADumpLeavesNone) {
  const TestSession session = Open();
  MakeReady(session, 1, "layers=3");
  Run(session);
  EXPECT_THAT(std::string(session->contexts().TakeDump(1).status().message()),
              HasSubstr("has no dump"));
}

TEST_F(ProfileTest, DumpIsChargedToItsSession) {
  const TestSession session = Open();
  MakeReady(session, 1, "layers=3");
  const uint64_t before = service->Sessions()[0].memory;
  ASSERT_TRUE(session->ArmDump(1).ok());
  Run(session);
  EXPECT_EQ(service->Sessions()[0].memory, before + 3 * sizeof(float));
  ASSERT_TRUE(session->DestroyContext(1).ok());
  EXPECT_EQ(service->Sessions()[0].memory, before);
}

TEST_F(ProfileTest, DumpBeyondItsLimitEndsTheRunWithItsName) {
  options.limits.dump_bytes = 2 * sizeof(float);
  StartService();
  const TestSession session = Open();
  MakeReady(session, 1, "layers=3");
  ASSERT_TRUE(session->ArmDump(1).ok());
  Run(session);
  const JobCompletion completion = session.sink->last();
  EXPECT_EQ(completion.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(completion.status.message()),
              HasSubstr("limit 'dump_bytes'"));
  // What came before is to be had.
  const auto report = session->contexts().TakeDump(1);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->dump.tensors, SizeIs(2));
}

// ---- models that can only be described --------------------------------------

TEST_F(ProfileTest, DescribedModelAnswersAndDoesNotRun) {
  const TestSession session = Open();
  ASSERT_TRUE(Upload(session, "described=rk3588 weight=1000")->ok());

  EXPECT_TRUE(
      Create(session, 1, "described=rk3588 weight=1000", kInfoOnly)->ok());

  EXPECT_EQ(session->GetMemorySize(1)->weight, 1000U);
  EXPECT_EQ(memory().weight, 0U);
  EXPECT_EQ(session->ArmDump(1).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ProfileTest, ContextThatOnlyAnswersIsNotSaidToSaveInternalMemory) {
  const TestSession session = Open();
  const std::string model = "weight=1000 internal=4096";
  ASSERT_TRUE(Upload(session, model)->ok());
  const uint64_t before = service->Memory().unshared_total;
  ASSERT_TRUE(Create(session, 1, model, kInfoOnly)->ok());
  EXPECT_EQ(service->Memory().unshared_total, before + 1000);
}

TEST_F(ProfileTest, NamesInADumpAreBounded) {
  auto dump = *LayerDump::Create(*Ledger::Create()->Open("test"), 1024);
  const std::string name(100'000, 'n');
  driver::LayerTensor tensor;
  tensor.name = name;
  ASSERT_TRUE(dump->OnLayer(tensor).ok());
  const auto taken = dump->Take();
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->tensors[0].name.size(), 255U);
}

TEST_F(ProfileTest, DescribedModelIsRefusedWithItsReasonAndNotKept) {
  const TestSession session = Open();
  ASSERT_TRUE(Upload(session, "described=rk3588")->ok());

  const auto created = Create(session, 1, "described=rk3588");

  ASSERT_TRUE(created.has_value());
  EXPECT_EQ(created->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(created->message()),
              HasSubstr("compiled for rk3588"));
  EXPECT_THAT(service->Models(), SizeIs(0));
}

}  // namespace
}  // namespace rknnd::core
