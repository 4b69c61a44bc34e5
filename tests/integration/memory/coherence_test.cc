// CPU caches and heaps, from the program to rknnctl: on a software NPU whose
// cache is incoherent a program that forgets rknn_mem_sync gets wrong data, one
// that does not gets its answers; and what memory was asked for is what is
// reported.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/integration/harness/faults.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using testing::HasSubstr;
using testing::Not;

// RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE, _OUTPUT_MEM_CACHE.
constexpr char kNone[] = "0";
constexpr char kKeepInputs[] = "4000";
constexpr char kKeepOutputs[] = "8000";
constexpr char kKeepBoth[] = "c000";
constexpr int kFewFrames = 3;

class CoherenceTest : public IntegrationTest {
 protected:
  void StartIncoherent() {
    StartDaemon({.more = {"--cache", "incoherent"}});
    model_ = MakeRelu(folder());
  }
  // How many of its frames come out wrong.
  int WrongFrames(const std::string& flags, const std::string& habit) {
    return RunProgram({ProgramPath("tests/integration_cache_care"), model_.path,
                       flags, habit},
                      daemon().target(), {}, kFewFrames);
  }

  TestModel model_;
};

// ---- an incoherent cache ----------------------------------------------------

TEST_F(CoherenceTest, ProgramsThatSyncGetTheirAnswers) {
  StartIncoherent();
  EXPECT_EQ(WrongFrames(kKeepBoth, "careful"), 0);
  EXPECT_EQ(WrongFrames(kKeepBoth, "both"), 0);
  EXPECT_EQ(WrongFrames(kKeepInputs, "forgets-out"), 0);
  EXPECT_EQ(WrongFrames(kKeepOutputs, "forgets-in"), 0);
}

TEST_F(CoherenceTest, ForgottenSyncsShow) {
  StartIncoherent();
  EXPECT_EQ(WrongFrames(kKeepInputs, "forgets-in"), kFewFrames);
  EXPECT_EQ(WrongFrames(kKeepOutputs, "forgets-out"), kFewFrames);
  EXPECT_EQ(WrongFrames(kKeepBoth, "forgets-all"), kFewFrames);
}

TEST_F(CoherenceTest, RunSyncsWhatNobodyForbids) {
  StartIncoherent();
  EXPECT_EQ(WrongFrames(kNone, "forgets-all"), 0);
}

TEST_F(CoherenceTest, MemoryThatWasBroughtIsTheProgramsToSync) {
  StartIncoherent();
  EXPECT_EQ(WrongFrames(kNone, "brought"), 0);
  EXPECT_EQ(WrongFrames(kNone, "brought-forgets"), kFewFrames);
}

TEST_F(CoherenceTest, CopyingProgramsHaveNothingToSync) {
  StartIncoherent();
  EXPECT_EQ(WrongFrames(kNone, "copies"), 0);
  EXPECT_EQ(WrongFrames(kKeepBoth, "copies"), 0);
}

TEST_F(CoherenceTest, CoherentNpuForgivesEverything) {
  StartDaemon();
  model_ = MakeRelu(folder());
  for (const char* habit : {"careful", "forgets-all", "brought-forgets"}) {
    EXPECT_EQ(WrongFrames(kKeepBoth, habit), 0) << habit;
  }
}

TEST_F(CoherenceTest, ModeIsNoFaultOnDemand) {
  StartIncoherent();
  const nlohmann::json status =
      AskRknnctl(folder(), daemon().target(), {"status"});
  EXPECT_FALSE(status.contains("faults"));
  const RknnctlResult list = RunFault(folder(), daemon().target(), {"list"});
  EXPECT_EQ(list.exit_code, 1);
  EXPECT_THAT(list.err, HasSubstr("faults on demand are off"));
}

TEST_F(CoherenceTest, ConfigurationFileAsksForTheSame) {
  const std::string file = folder() + "/incoherent.toml";
  WriteFile(file, "cache = \"incoherent\"\n");
  StartDaemon({.more = {"--config", file}});
  model_ = MakeRelu(folder());
  EXPECT_EQ(WrongFrames(kKeepBoth, "forgets-all"), kFewFrames);
}

TEST_F(CoherenceTest, DaemonInTheProgramCanBeIncoherentToo) {
  model_ = MakeRelu(folder());
  const auto client = StartClient({{"RKNND_CACHE", "incoherent"}}, kLocal);
  ASSERT_TRUE(Done(client->Do("init v " + model_.path + " 0x4000")));
  ASSERT_TRUE(Done(client->Do("bind_all v")));
  ASSERT_TRUE(Done(client->Do("fill v.in0" + model_.input_list())));
  ASSERT_TRUE(Done(client->Do("run v")));
  EXPECT_TRUE(Right(client->Do("compare_mem v.out0" + model_.output_list())));
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(Done(client->Do("poke v.in0 " + std::to_string(i) + " 0")));
  }
  ASSERT_TRUE(Done(client->Do("run v")));
  EXPECT_TRUE(Right(client->Do("compare_mem v.out0" + model_.output_list())));
}

// ---- heaps ------------------------------------------------------------------

class HeapRequestTest : public IntegrationTest {
 protected:
  // rknn_create_mem2's flags: RKNN_FLAG_MEMORY_NON_CACHEABLE, and rknnd.h's.
  static constexpr char kUncached[] = "2";
  static constexpr char kDma32[] = "0x100000000000000";
  static constexpr char kContiguous[] = "0x200000000000000";

  void SetUp() override {
    const std::string file = folder() + "/heaps.toml";
    WriteFile(file, "[memory]\nheaps = [\"dma_heap:none-such\", \"memfd\"]\n");
    StartDaemon({.more = {"--config", file}});
    model_ = MakeRelu(folder());
    client_ = StartClient({{"RKNN_LOG_LEVEL", "2"}});
    ASSERT_TRUE(Done(client_->Do("init m " + model_.path)));
  }
  std::string HeapOf(size_t buffer) {
    return AskRknnctl(folder(), daemon().target(), {"buffers"})
        .at(buffer)
        .at("heap")
        .get<std::string>();
  }
  int Lines(const std::string& words) {
    const std::string log = daemon().log();
    int lines = 0;
    for (size_t at = log.find(words); at != std::string::npos;
         at = log.find(words, at + 1)) {
      ++lines;
    }
    return lines;
  }

  TestModel model_;
  std::unique_ptr<ClientProcess> client_;
};

TEST_F(HeapRequestTest, WhatThereIsAndWhatIsMissingIsSaidAtStart) {
  EXPECT_THAT(daemon().log(), HasSubstr("heaps, best first: memfd (cached)"));
  EXPECT_THAT(daemon().log(),
              HasSubstr("warning: heap 'dma_heap:none-such' cannot be used"));
}

TEST_F(HeapRequestTest, WhatServedInsteadIsInTheReportAndOnceInTheLog) {
  ASSERT_TRUE(Done(client_->Do("create a m 64")));
  EXPECT_EQ(HeapOf(0), "memfd");
  EXPECT_THAT(daemon().log(), Not(HasSubstr("is used instead")));

  ASSERT_TRUE(Done(client_->Do(std::string("create b m 64 ") + kUncached)));
  ASSERT_TRUE(Done(client_->Do(std::string("create c m 64 ") + kUncached)));
  EXPECT_EQ(HeapOf(1), "memfd (not uncached)");
  EXPECT_EQ(HeapOf(2), "memfd (not uncached)");
  EXPECT_EQ(Lines("no heap here gives memory that is uncached"), 1);
  EXPECT_EQ(Lines("'memfd' is used instead"), 1);

  ASSERT_TRUE(Done(client_->Do(std::string("create d m 64 ") + kDma32)));
  EXPECT_EQ(HeapOf(3), "memfd (not below 4 GiB)");
  ASSERT_TRUE(Done(client_->Do(std::string("create e m 64 ") + kContiguous)));
  EXPECT_EQ(HeapOf(4), "memfd (not contiguous)");
  EXPECT_EQ(Lines("is used instead"), 3);

  // The program hears of it too.
  EXPECT_TRUE(Eventually([this] {
    return client_->log().find("'memfd' is used instead") != std::string::npos;
  }));

  // Another session hears of it anew.
  const auto other = StartClient();
  ASSERT_TRUE(Done(other->Do("init m " + model_.path)));
  ASSERT_TRUE(Done(other->Do(std::string("create b m 64 ") + kUncached)));
  EXPECT_EQ(Lines("no heap here gives memory that is uncached"), 2);
}

TEST_F(HeapRequestTest, MemoryOfAllKindsComputes) {
  for (const std::string flags :
       {"0", "1", kUncached, "3", kDma32, kContiguous, "0x300000000000002"}) {
    SCOPED_TRACE(flags);
    ASSERT_TRUE(Done(client_->Do("create in m 64 " + flags)));
    ASSERT_TRUE(Done(client_->Do("create out m 64 " + flags)));
    ASSERT_TRUE(Done(client_->Do("bind m in in 0")));
    ASSERT_TRUE(Done(client_->Do("bind m out out 0")));
    ASSERT_TRUE(Done(client_->Do("fill in" + model_.input_list())));
    ASSERT_TRUE(Done(client_->Do("run m")));
    EXPECT_TRUE(Right(client_->Do("compare_mem out" + model_.output_list())));
  }
}

TEST_F(HeapRequestTest, MemfdsHaveNoSyncsToCount) {
  ASSERT_TRUE(Done(client_->Do("bind_all m")));
  ASSERT_TRUE(Done(client_->Do("fill m.in0" + model_.input_list())));
  ASSERT_TRUE(Done(client_->Do("run m")));
  const nlohmann::json syncs =
      AskRknnctl(folder(), daemon().target(), {"status"}).at("cache_syncs");
  EXPECT_EQ(syncs.at("done"), 0);
  EXPECT_EQ(syncs.at("skipped"), 0);
}

}  // namespace
}  // namespace rknnd::integration
