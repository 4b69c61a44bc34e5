// Internal and weight memory that programs bring: shared between contexts of
// one process and of two, too small, taken away, changed.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/integration/harness/faults.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

using driver::FaultKind;

constexpr char kAllOutside[] = " 0x10";
constexpr char kInternalOutside[] = " 0x200";

class OutsideMemoryTest : public IntegrationTest {
 protected:
  void SetUp() override {
    small_ = MakeConvNet(folder());
    large_ = MakeConvNetOfSide(folder(), 64);
    other_ = MakeOtherConvNet(folder());
  }

  // A context with its inputs set, and the bytes of internal memory it needs.
  std::string Open(ClientProcess& client, const std::string& name,
                   const TestModel& model, const std::string& flags) {
    EXPECT_TRUE(Done(client.Do("init " + name + " " + model.path + flags)));
    EXPECT_TRUE(Done(client.Do("inputs " + name + model.input_list())));
    const Reply size = client.Do("internal_size " + name);
    EXPECT_TRUE(Done(size));
    return size.text;
  }
  static std::string Larger(const std::string& a, const std::string& b) {
    return std::stoul(a) > std::stoul(b) ? a : b;
  }
  static testing::AssertionResult RunsRight(ClientProcess& client,
                                            const std::string& name,
                                            const TestModel& model) {
    if (auto run = Done(client.Do("run " + name)); !run) return run;
    return Right(client.Do("compare " + name + model.output_list()));
  }
  // The guide's own example, in one process: contexts a and b.
  void ShareInOneProcess(ClientProcess& client, const TestModel& a,
                         const TestModel& b) {
    const std::string size_a = Open(client, "a", a, kAllOutside);
    const std::string size_b = Open(client, "b", b, kAllOutside);
    ASSERT_TRUE(Done(client.Do("create max a " + Larger(size_a, size_b))));
    ASSERT_TRUE(Done(client.Do("import_of ia a max " + size_a)));
    ASSERT_TRUE(Done(client.Do("internal a ia")));
    ASSERT_TRUE(Done(client.Do("import_of ib b max " + size_b)));
    ASSERT_TRUE(Done(client.Do("internal b ib")));
  }
  // One hangs in the daemon; the other is to wait for its memory and does not
  // run, though there are free cores.
  bool OneRunsAndOneWaits() {
    return Eventually([this] {
      const wire::Report status = Status();
      return status.jobs_running == 1 && status.jobs_queued == 1;
    });
  }

  TestModel small_, large_, other_;
};

TEST_F(OutsideMemoryTest, GuidesExampleRunsBothModelsInOneMemory) {
  StartDaemon();
  const auto client = StartClient();
  ShareInOneProcess(*client, small_, large_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(RunsRight(*client, "a", small_));
    EXPECT_TRUE(RunsRight(*client, "b", large_));
  }
  // The NPU has none of its own for them.
  EXPECT_EQ(Status().memory.internal, 0U);
}

TEST_F(OutsideMemoryTest, TwoProcessesShareOneMemoryByItsFd) {
  StartDaemon();
  StartNeighbour();
  const auto a = StartClient();
  const auto b = StartClient();
  const std::string size_a = Open(*a, "a", small_, kInternalOutside);
  const std::string size_b = Open(*b, "b", large_, kInternalOutside);
  const std::string size = Larger(size_a, size_b);
  const std::string path = folder() + "/hand";
  ASSERT_TRUE(Done(a->Do("create max a " + size)));
  ASSERT_TRUE(Done(a->Do("internal a max")));
  ASSERT_TRUE(Done(a->Do("listen " + path)));
  a->Send("hand max");
  ASSERT_TRUE(Done(
      b->Do("import i b from:" + path + ":0 " + size + " " + size_b + " 0")));
  ASSERT_TRUE(Done(a->Receive()));
  ASSERT_TRUE(Done(b->Do("internal b i")));
  // Both at once: each finds what it left there itself.
  for (int i = 0; i < 50; ++i) {
    a->Send("run a");
    b->Send("run b");
    EXPECT_TRUE(Done(a->Receive()));
    EXPECT_TRUE(Done(b->Receive()));
    EXPECT_TRUE(Right(a->Do("compare a" + small_.output_list())));
    EXPECT_TRUE(Right(b->Do("compare b" + large_.output_list())));
  }
  // Whose memory it was is gone: it lives on in the other.
  a->Kill();
  EXPECT_TRUE(RunsRight(*b, "b", large_));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(OutsideMemoryTest, ContextsOfTwoProcessesNeverRunAtOnce) {
  StartDaemon(WithFaults(folder(), {.give_up = 0}));
  const auto a = StartClient();
  const auto b = StartClient();
  const std::string size = Open(*a, "a", small_, kInternalOutside);
  Open(*b, "b", other_, kInternalOutside);
  const std::string path = folder() + "/hand";
  ASSERT_TRUE(Done(a->Do("create max a " + size)));
  ASSERT_TRUE(Done(a->Do("internal a max")));
  ASSERT_TRUE(Done(a->Do("listen " + path)));
  a->Send("hand max");
  ASSERT_TRUE(Done(
      b->Do("import i b from:" + path + ":0 " + size + " " + size + " 0")));
  ASSERT_TRUE(Done(a->Receive()));
  ASSERT_TRUE(Done(b->Do("internal b i")));
  // On different cores.
  ASSERT_TRUE(Done(a->Do("mask a 1")));
  ASSERT_TRUE(Done(b->Do("mask b 2")));

  SetFault(folder(), daemon().target(),
           {.kind = FaultKind::kHang, .model = "conv_net"});
  a->Send("run a");
  ASSERT_TRUE(SeesJobRunning());
  b->Send("run b");
  EXPECT_TRUE(OneRunsAndOneWaits());
  ClearFault(folder(), daemon().target());
  EXPECT_TRUE(Done(a->Receive()));
  EXPECT_TRUE(Done(b->Receive()));
  EXPECT_TRUE(Right(a->Do("compare a" + small_.output_list())));
  EXPECT_TRUE(Right(b->Do("compare b" + other_.output_list())));
}

TEST_F(OutsideMemoryTest, WhoDiesInItsTurnLeavesItToTheNext) {
  StartDaemon(WithFaults(folder(), {.give_up = 0}));
  const auto client = StartClient();
  ShareInOneProcess(*client, small_, other_);
  const auto b = StartClient();
  const std::string size = Open(*b, "b", other_, kInternalOutside);
  const std::string path = folder() + "/hand";
  ASSERT_TRUE(Done(client->Do("listen " + path)));
  client->Send("hand max");
  ASSERT_TRUE(Done(
      b->Do("import i b from:" + path + ":0 " + size + " " + size + " 0")));
  ASSERT_TRUE(Done(client->Receive()));
  ASSERT_TRUE(Done(b->Do("internal b i")));
  SetFault(folder(), daemon().target(),
           {.kind = FaultKind::kHang, .model = "conv_net"});
  client->Send("run a");
  ASSERT_TRUE(SeesJobRunning());
  b->Send("run b");
  EXPECT_TRUE(OneRunsAndOneWaits());
  client->Kill();
  ClearFault(folder(), daemon().target());
  EXPECT_TRUE(Done(b->Receive()));
  EXPECT_TRUE(Right(b->Do("compare b" + other_.output_list())));
}

TEST_F(OutsideMemoryTest, RunWithoutInternalMemoryNamesTheCall) {
  StartDaemon();
  const auto client = StartClient();
  Open(*client, "a", small_, kAllOutside);
  EXPECT_THAT(client->Do("run a"),
              Fails(RKNN_ERR_FAIL, "call rknn_set_internal_mem"));
}

TEST_F(OutsideMemoryTest, TooSmallMemoryIsRefusedWithBothNumbers) {
  StartDaemon();
  StartNeighbour();
  const auto client = StartClient();
  const std::string size = Open(*client, "a", small_, kAllOutside);
  ASSERT_TRUE(Done(client->Do("create m a " + size)));
  const std::string less = std::to_string(std::stoul(size) - 1);
  ASSERT_TRUE(Done(client->Do("import_of i a m " + less)));
  EXPECT_THAT(client->Do("internal a i"),
              Fails(RKNN_ERR_PARAM_INVALID,
                    "has " + less + " bytes, " + size + " needed"));
  EXPECT_THAT(client->Do("internal a nothing"),
              Fails(RKNN_ERR_PARAM_INVALID, "mem is NULL"));
  ASSERT_TRUE(Done(client->Do("internal a m")));
  EXPECT_TRUE(RunsRight(*client, "a", small_));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(OutsideMemoryTest, ContextWithoutTheFlagIsToldSo) {
  StartDaemon();
  const auto client = StartClient();
  Open(*client, "a", small_, "");
  ASSERT_TRUE(Done(client->Do("create m a 1000000")));
  EXPECT_THAT(client->Do("internal a m"),
              Fails(RKNN_ERR_FAIL, "RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE"));
  EXPECT_THAT(client->Do("weights a m"),
              Fails(RKNN_ERR_FAIL, "RKNN_FLAG_MEM_ALLOC_OUTSIDE"));
  EXPECT_TRUE(RunsRight(*client, "a", small_));
}

TEST_F(OutsideMemoryTest, DynamicModelIsSizedForItsLargestShape) {
  StartDaemon();
  const TestModel listed = MakeListedConvNet(folder(), {8, 32, 16});
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + listed.path + kAllOutside)));
  const Reply size = client->Do("internal_size a");
  ASSERT_TRUE(Done(client->Do("create m a " + size.text)));
  ASSERT_TRUE(Done(client->Do("internal a m")));
  for (size_t row = 0; row < 3; ++row) {
    const std::string side = row == 0 ? "8" : row == 1 ? "32" : "16";
    ASSERT_TRUE(Done(client->Do("shape a 1 1 " + side + " " + side + " 3")));
    ASSERT_TRUE(Done(client->Do("inputs a " + listed.inputs[row])));
    ASSERT_TRUE(Done(client->Do("run a")));
    EXPECT_TRUE(Right(client->Do("compare a " + listed.outputs[row])));
  }
}

TEST_F(OutsideMemoryTest, InputAndOutputInOneMemoryAreRefusedAtTheRun) {
  StartDaemon();
  StartNeighbour();
  const TestModel relu = MakeRelu(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + relu.path)));
  ASSERT_TRUE(Done(client->Do("create m a 4096")));
  ASSERT_TRUE(Done(client->Do("create n a 4096")));
  ASSERT_TRUE(Done(client->Do("bind a m in 0")));
  ASSERT_TRUE(Done(client->Do("bind a m out 0")));
  EXPECT_THAT(client->Do("run a"), Fails(RKNN_ERR_FAIL, "in the same memory"));
  ASSERT_TRUE(Done(client->Do("bind a n out 0")));
  EXPECT_TRUE(Done(client->Do("run a")));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(OutsideMemoryTest, InternalMemoryUnderAnInputIsRefusedAtTheRun) {
  StartDaemon();
  const auto client = StartClient();
  const std::string size = Open(*client, "a", small_, kInternalOutside);
  ASSERT_TRUE(Done(client->Do("create m a 1000000")));
  ASSERT_TRUE(Done(client->Do("internal a m")));
  ASSERT_TRUE(Done(client->Do("bind a m in 0")));
  EXPECT_THAT(client->Do("run a"), Fails(RKNN_ERR_FAIL, "internal memory"));
}

TEST_F(OutsideMemoryTest, MemoryDestroyedUnderARunningJobServesItToTheEnd) {
  StartDaemon(WithFaults(folder(), {.give_up = 0}));
  StartNeighbour();
  const auto client = StartClient();
  ShareInOneProcess(*client, small_, large_);
  ASSERT_TRUE(Done(client->Do("bind_all a")));
  ASSERT_TRUE(Done(client->Do("fill a.in0" + small_.input_list())));
  const uint64_t fault =
      SetFault(folder(), daemon().target(),
               {.kind = FaultKind::kHang, .model = "conv_net", .times = 1});
  ASSERT_TRUE(Done(client->Do("start run a")));
  ASSERT_TRUE(SeesJobRunning());
  for (const std::string memory : {"ia", "ib", "max", "a.in0"}) {
    EXPECT_TRUE(Done(client->Do("destroy_mem a " + memory))) << memory;
    EXPECT_THAT(client->Do("destroy_mem a " + memory),
                Fails(RKNN_ERR_PARAM_INVALID, "destroyed already"));
  }
  ClearFault(folder(), daemon().target(), fault);
  EXPECT_TRUE(Done(client->Do("finish")));
  EXPECT_TRUE(Right(client->Do("compare_mem a.out0" + small_.output_list())));
  // What it was bound to is there until it is bound to something else.
  EXPECT_TRUE(Done(client->Do("run a")));
  EXPECT_TRUE(RunsRight(*client, "b", large_));
  EXPECT_TRUE(NeighbourIsWell());
  client->Kill();
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

TEST_F(OutsideMemoryTest, MemoryReplacedUnderARunningJobIsTheNextOnes) {
  StartDaemon(WithFaults(folder(), {.give_up = 0}));
  const auto client = StartClient();
  const std::string size = Open(*client, "a", small_, kInternalOutside);
  ASSERT_TRUE(Done(client->Do("create m a " + size)));
  ASSERT_TRUE(Done(client->Do("create n a " + size)));
  ASSERT_TRUE(Done(client->Do("internal a m")));
  const uint64_t fault =
      SetFault(folder(), daemon().target(),
               {.kind = FaultKind::kHang, .model = "conv_net", .times = 1});
  ASSERT_TRUE(Done(client->Do("start run a")));
  ASSERT_TRUE(SeesJobRunning());
  ASSERT_TRUE(Done(client->Do("internal a n")));
  ASSERT_TRUE(Done(client->Do("destroy_mem a m")));
  ClearFault(folder(), daemon().target(), fault);
  EXPECT_TRUE(Done(client->Do("finish")));
  EXPECT_TRUE(Right(client->Do("compare a" + small_.output_list())));
  EXPECT_TRUE(RunsRight(*client, "a", small_));
}

TEST_F(OutsideMemoryTest, FdClosedAndHolePunchedWhileBoundHarmNobody) {
  StartDaemon();
  StartNeighbour();
  const auto client = StartClient();
  const std::string size = Open(*client, "a", small_, kInternalOutside);
  ASSERT_TRUE(
      Done(client->Do("import i a sealed " + size + " " + size + " 0")));
  ASSERT_TRUE(Done(client->Do("internal a i")));
  const Reply punched = client->Do("punch i");
  EXPECT_TRUE(punched.code == RKNN_SUCC || punched.code == kNotOnThisMachine);
  EXPECT_TRUE(RunsRight(*client, "a", small_));
  ASSERT_TRUE(Done(client->Do("close_fd i")));
  EXPECT_TRUE(RunsRight(*client, "a", small_));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(OutsideMemoryTest, FlippedWeightsChangeNothing) {
  StartDaemon();
  StartNeighbour();
  const auto client = StartClient();
  const std::string internal = Open(*client, "a", small_, kAllOutside);
  const Reply weight = client->Do("memory_size a");
  ASSERT_TRUE(Done(client->Do("create w a " + weight.text)));
  ASSERT_TRUE(Done(client->Do("create i a " + internal)));
  ASSERT_TRUE(Done(client->Do("weights a w")));
  ASSERT_TRUE(Done(client->Do("internal a i")));
  const Reply filled = client->Do("flip w");
  ASSERT_TRUE(Done(filled));
  EXPECT_GT(std::stoul(filled.text), 100U);
  EXPECT_TRUE(RunsRight(*client, "a", small_));
  // What the NPU has is what others get.
  EXPECT_EQ(client->Do("model_memory a w").text, "same " + weight.text);
  const auto other = StartClient();
  Open(*other, "b", small_, "");
  EXPECT_TRUE(RunsRight(*other, "b", small_));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(OutsideMemoryTest, WeightMemoryTooSmallIsRefusedWithBothNumbers) {
  StartDaemon();
  const auto client = StartClient();
  Open(*client, "a", small_, kAllOutside);
  const Reply weight = client->Do("memory_size a");
  const std::string less = std::to_string(std::stoul(weight.text) - 1);
  ASSERT_TRUE(Done(client->Do("create w a " + less)));
  EXPECT_THAT(client->Do("weights a w"),
              Fails(RKNN_ERR_PARAM_INVALID,
                    "has " + less + " bytes, " + weight.text + " needed"));
}

TEST_F(OutsideMemoryTest, DuplicateNeedsMemoryOfItsOwn) {
  StartDaemon();
  const auto client = StartClient();
  const std::string size = Open(*client, "a", small_, kInternalOutside);
  ASSERT_TRUE(Done(client->Do("create m a " + size)));
  ASSERT_TRUE(Done(client->Do("internal a m")));
  ASSERT_TRUE(Done(client->Do("dup b a")));
  ASSERT_TRUE(Done(client->Do("dup c b")));
  ASSERT_TRUE(Done(client->Do("destroy a")));
  for (const std::string name : {"b", "c"}) {
    ASSERT_TRUE(Done(client->Do("inputs " + name + small_.input_list())));
    EXPECT_THAT(client->Do("run " + name),
                Fails(RKNN_ERR_FAIL, "rknn_set_internal_mem"));
    ASSERT_TRUE(Done(client->Do("internal " + name + " m")));
    EXPECT_TRUE(RunsRight(*client, name, small_));
  }
}

TEST_F(OutsideMemoryTest, InternalMemoryIsSetAgainAfterARestart) {
  StartDaemon();
  const auto client = StartClient();
  ShareInOneProcess(*client, small_, large_);
  EXPECT_TRUE(RunsRight(*client, "a", small_));
  KillDaemon();
  RestartDaemon();
  EXPECT_TRUE(RunsRight(*client, "a", small_));
  EXPECT_TRUE(RunsRight(*client, "b", large_));
}

TEST_F(OutsideMemoryTest, BatchRunsSliceAfterSliceInIt) {
  StartDaemon();
  const TestModel batch = MakeBatchConvNet(folder(), 4);
  const auto client = StartClient();
  const std::string size = Open(*client, "a", batch, kInternalOutside);
  ASSERT_TRUE(Done(client->Do("create m a " + size)));
  ASSERT_TRUE(Done(client->Do("internal a m")));
  ASSERT_TRUE(Done(client->Do("batch_cores a 3")));
  EXPECT_TRUE(RunsRight(*client, "a", batch));
}

TEST_F(OutsideMemoryTest, MemoryThatChangesUnderTheJobCrashesNothing) {
  StartDaemon();
  StartNeighbour();
  const auto client = StartClient();
  const std::string size = Open(*client, "a", large_, kInternalOutside);
  ASSERT_TRUE(Done(client->Do("create m a " + size)));
  ASSERT_TRUE(Done(client->Do("internal a m")));
  // One that writes all over it, while the other runs.
  const auto scribbler = StartClient();
  ASSERT_TRUE(Done(scribbler->Do("init s " + small_.path)));
  const std::string path = folder() + "/hand";
  ASSERT_TRUE(Done(client->Do("listen " + path)));
  client->Send("hand m");
  ASSERT_TRUE(Done(scribbler->Do("import m s from:" + path + ":0 " + size +
                                 " " + size + " 0")));
  ASSERT_TRUE(Done(client->Receive()));
  for (int i = 0; i < 20; ++i) {
    client->Send("run a");
    EXPECT_TRUE(Done(scribbler->Do("flip m")));
    EXPECT_TRUE(Done(client->Receive()));
  }
  EXPECT_TRUE(RunsRight(*client, "a", large_));
  EXPECT_TRUE(NeighbourIsWell());
}

}  // namespace
}  // namespace rknnd::integration
