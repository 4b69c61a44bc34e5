// Descriptors, sizes and offsets that a program gets wrong: each is refused
// with the reason, and its neighbour goes on.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

class BadMemoryTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    StartNeighbour();
    model_ = MakeRelu(folder());  // 16 numbers in, 16 out
    client_ = StartClient();
    ASSERT_TRUE(Done(client_->Do("init m " + model_.path)));
  }

  void ExpectRefused(const std::string& kind, const std::string& words) {
    const Reply reply = client_->Do("import i m " + kind + " 65536 65536 0");
    if (reply.code == kNotOnThisMachine) GTEST_SKIP() << reply.text;
    EXPECT_THAT(reply, Fails(RKNN_ERR_FAIL, words));
    EXPECT_EQ(Status().buffer_count, 2U);  // the neighbour's
    EXPECT_TRUE(NeighbourIsWell());
  }

  TestModel model_;
  std::unique_ptr<ClientProcess> client_;
};

constexpr char kWhatItMustBe[] =
    "a buffer must be a dma-buf, or a memfd on tmpfs sealed with F_SEAL_SHRINK";

TEST_F(BadMemoryTest, UnsealedMemfdIsRefused) {
  ExpectRefused("unsealed", "can be truncated; seal it with F_SEAL_SHRINK");
}

TEST_F(BadMemoryTest, UnsealableMemfdIsRefused) {
  ExpectRefused("unsealable", "can be truncated; seal it with F_SEAL_SHRINK");
}

TEST_F(BadMemoryTest, HugetlbMemfdIsRefused) {
  ExpectRefused("hugetlb", "in hugetlbfs");
}

TEST_F(BadMemoryTest, PipeIsRefused) {
  ExpectRefused("pipe", std::string("the fd is a pipe: ") + kWhatItMustBe);
}

TEST_F(BadMemoryTest, SocketIsRefused) {
  ExpectRefused("socket", std::string("the fd is a socket: ") + kWhatItMustBe);
}

TEST_F(BadMemoryTest, DeviceIsRefused) {
  ExpectRefused("device", "the fd is a character device");
}

TEST_F(BadMemoryTest, EventfdIsRefused) {
  ExpectRefused("eventfd", "an eventfd");
}

TEST_F(BadMemoryTest, OrdinaryFileIsRefused) {
  ExpectRefused("file", kWhatItMustBe);
}

TEST_F(BadMemoryTest, ClosedDescriptorIsRefused) {
  EXPECT_THAT(client_->Do("import i m closed 4096 4096 0"),
              Fails(RKNN_ERR_FAIL, "Bad file descriptor"));
  EXPECT_THAT(client_->Do("import i m sealed 4096 0 0"),
              Fails(RKNN_ERR_FAIL, "size is 0"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadMemoryTest, SizeAndOffsetPastTheEndAreRefused) {
  EXPECT_THAT(client_->Do("import i m sealed 4096 8192 0"),
              Fails(RKNN_ERR_FAIL, "which has 4096 bytes"));
  EXPECT_THAT(client_->Do("import i m sealed 4096 4096 4096"),
              Fails(RKNN_ERR_FAIL, "which has 4096 bytes"));
  EXPECT_THAT(client_->Do("import i m sealed 4096 4294967295 2147483647"),
              Fails(RKNN_ERR_FAIL, "which has 4096 bytes"));
  EXPECT_THAT(client_->Do("import i m sealed 4096 4096 -1"),
              Fails(RKNN_ERR_FAIL, "offset -1 is negative"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadMemoryTest, SizesOfFourGibibytesAreRefused) {
  EXPECT_THAT(client_->Do("create c m 4294967296"),
              Fails(RKNN_ERR_FAIL, "a memory of 4294967296 bytes"));
  EXPECT_THAT(client_->Do("create c m 18446744073709551615"),
              Fails(RKNN_ERR_FAIL, "a memory of 18446744073709551615 bytes"));
  EXPECT_THAT(client_->Do("create c m 0"),
              Fails(RKNN_ERR_FAIL, "a memory of 0 bytes"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadMemoryTest, SparseMemfdIsRefusedBeforeItIsFilled) {
  // A tebibyte that nobody has.
  EXPECT_THAT(client_->Do("import i m sealed 1099511627776 4096 0"),
              Fails(RKNN_ERR_FAIL, "'buffer_bytes'"));
  EXPECT_EQ(Status().buffer_count, 2U);
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadMemoryTest, HolePunchedAfterTheImportHurtsNobody) {
  ASSERT_TRUE(Done(client_->Do("import in m sealed 65536 65536 0")));
  ASSERT_TRUE(Done(client_->Do("import out m sealed 65536 65536 0")));
  ASSERT_TRUE(Done(client_->Do("bind m in in 0")));
  ASSERT_TRUE(Done(client_->Do("bind m out out 0")));
  ASSERT_TRUE(Done(client_->Do("fill in" + model_.input_list())));
  ASSERT_TRUE(Done(client_->Do("punch in")));
  ASSERT_TRUE(Done(client_->Do("punch out")));
  const Reply run = client_->Do("run m");
  // Zeros came in; or it is an error that says so.
  if (run.code != RKNN_SUCC) {
    EXPECT_NE(run.text, "");
  }
  EXPECT_TRUE(NeighbourIsWell());
  // With its bytes back it is good memory.
  ASSERT_TRUE(Done(client_->Do("fill in" + model_.input_list())));
  ASSERT_TRUE(Done(client_->Do("run m")));
  EXPECT_TRUE(Right(client_->Do("compare_mem out" + model_.output_list())));
}

TEST_F(BadMemoryTest, BindingLessThanTheTensorIsRefusedWithBothSizes) {
  ASSERT_TRUE(Done(client_->Do("create c m 63")));
  EXPECT_THAT(client_->Do("bind m c in 0"),
              Fails(RKNN_ERR_PARAM_INVALID,
                    "buffer bound to input 0 'x' has 63 bytes, 64 needed"));
  EXPECT_THAT(client_->Do("bind m c out 0"),
              Fails(RKNN_ERR_PARAM_INVALID,
                    "buffer bound to output 0 'y' has 63 bytes, 64 needed"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadMemoryTest, BindingOfATypeThatDoesNotFitIsRefused) {
  ASSERT_TRUE(Done(client_->Do("create c m 4096")));
  EXPECT_THAT(client_->Do("bind m c in 0 " + std::to_string(RKNN_TENSOR_INT64)),
              Fails(RKNN_ERR_PARAM_INVALID, "(INT64) cannot be bound here"));
  EXPECT_THAT(client_->Do("bind m c in 0 4711"),
              Fails(RKNN_ERR_PARAM_INVALID, "4711"));
}

TEST_F(BadMemoryTest, BindingToNoTensorNamesThoseThereAre) {
  ASSERT_TRUE(Done(client_->Do("create c m 4096")));
  EXPECT_THAT(client_->Do("bind m c in 7"),
              Fails(RKNN_ERR_PARAM_INVALID, "only 'x', 'y'"));
}

TEST_F(BadMemoryTest, MemoryDestroyedTwiceIsFoundOut) {
  ASSERT_TRUE(Done(client_->Do("create c m 4096")));
  ASSERT_TRUE(Done(client_->Do("destroy_mem m c")));
  EXPECT_THAT(client_->Do("destroy_mem m c"),
              Fails(RKNN_ERR_PARAM_INVALID, "was destroyed already"));
  EXPECT_THAT(client_->Do("bind m c in 0"),
              Fails(RKNN_ERR_PARAM_INVALID, "was destroyed already"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadMemoryTest, MemfdCannotShrinkAfterTheImport) {
  ASSERT_TRUE(Done(client_->Do("import in m sealed 65536 65536 0")));
  ASSERT_TRUE(Done(client_->Do("bind m in in 0")));
  // The seal that import insists on.
  EXPECT_EQ(client_->Do("shrink in").code, RKNN_ERR_FAIL);
  ASSERT_TRUE(Done(client_->Do("fill in" + model_.input_list())));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadMemoryTest, MemoryThatMayOnlyBeReadIsAnInputAndNoOutput) {
  ASSERT_TRUE(Done(client_->Do("import in m readonly 65536 65536 0")));
  ASSERT_TRUE(Done(client_->Do("create out m 64")));
  ASSERT_TRUE(Done(client_->Do("bind m in in 0")));
  EXPECT_THAT(client_->Do("bind m in out 0"),
              Fails(RKNN_ERR_PARAM_INVALID, "whose fd allows reading only"));
  ASSERT_TRUE(Done(client_->Do("bind m out out 0")));
  ASSERT_TRUE(Done(client_->Do("run m")));
  EXPECT_EQ(client_->Do("peek out 0 8").text, "0000000000000000");
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadMemoryTest, DescriptorClosedWhileBoundIsNotMissed) {
  ASSERT_TRUE(Done(client_->Do("import in m sealed 65536 65536 0")));
  ASSERT_TRUE(Done(client_->Do("import out m sealed 65536 65536 0")));
  ASSERT_TRUE(Done(client_->Do("bind m in in 0")));
  ASSERT_TRUE(Done(client_->Do("bind m out out 0")));
  ASSERT_TRUE(Done(client_->Do("fill in" + model_.input_list())));
  ASSERT_TRUE(Done(client_->Do("close_fd in")));
  ASSERT_TRUE(Done(client_->Do("close_fd out")));
  ASSERT_TRUE(Done(client_->Do("run m")));
  EXPECT_TRUE(Right(client_->Do("compare_mem out" + model_.output_list())));
  ASSERT_TRUE(Done(client_->Do("destroy_mem m in")));
  ASSERT_TRUE(Done(client_->Do("destroy_mem m out")));
  EXPECT_EQ(Status().buffer_count, 2U);  // the neighbour's
}

TEST_F(BadMemoryTest, MemoryDestroyedWhileAJobRunsStaysUntilItsEnd) {
  const TestModel slow = MakeSlow(folder());
  ASSERT_TRUE(Done(client_->Do("init s " + slow.path)));
  ASSERT_TRUE(Done(client_->Do("bind_all s")));
  client_->Send("start run s");
  ASSERT_TRUE(Done(client_->Receive()));
  ASSERT_TRUE(SeesJobRunning());
  ASSERT_TRUE(Done(client_->Do("destroy_mem s s.in0")));
  ASSERT_TRUE(Done(client_->Do("destroy_mem s s.out0")));
  const Reply run = client_->Do("finish");
  if (run.code != RKNN_SUCC) {
    EXPECT_NE(run.text, "");
  }
  EXPECT_TRUE(NeighbourIsWell());
  ASSERT_TRUE(Done(client_->Do("destroy s")));
  EXPECT_TRUE(Eventually([&] { return Status().buffer_count == 2; }));
}

TEST_F(BadMemoryTest, MemoryDestroyedWhileBoundStaysGoodForTheRun) {
  ASSERT_TRUE(Done(client_->Do("bind_all m")));
  ASSERT_TRUE(Done(client_->Do("fill m.in0" + model_.input_list())));
  ASSERT_TRUE(Done(client_->Do("destroy_mem m m.in0")));
  const Reply run = client_->Do("run m");
  if (run.code == RKNN_SUCC) {
    EXPECT_TRUE(
        Right(client_->Do("compare_mem m.out0" + model_.output_list())));
  } else {
    EXPECT_NE(run.text, "");
  }
  EXPECT_TRUE(NeighbourIsWell());
}

}  // namespace
}  // namespace rknnd::integration
