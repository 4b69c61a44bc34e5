// dma-bufs of other drivers, from other processes, as memory of a context; and
// what is none of them.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/vm/guest_test.h"

namespace rknnd::vm {
namespace {

using integration::ClientProcess;
using integration::MakeRelu;
using integration::ReadText;
using integration::TestModel;
using testing::Contains;
using testing::HasSubstr;

constexpr char kWhatItMustBe[] =
    "a buffer must be a dma-buf, or a memfd on tmpfs sealed with F_SEAL_SHRINK";
// No exporter gives less.
const auto kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

class BuffersTest : public GuestTest {
 protected:
  void SetUp() override {
    before_ = DmaBufs();
    StartDaemon();
    StartNeighbour();
    model_ = MakeRelu(folder());  // 16 numbers in, 16 out
    client_ = StartClient();
    ASSERT_TRUE(Done(client_->Do("init m " + model_.path)));
  }

  // Input and output are buffers of `kind`, written and read by the process
  // that made them.
  void ExpectComputesBetween(const std::string& kind,
                             const std::string& exporter) {
    // The daemon's own heap may be of the same kind.
    const auto daemons = [&] {
      const std::vector<std::string> all = Exporters(daemon().pid());
      return std::count(all.begin(), all.end(), exporter);
    };
    const auto daemons_before = daemons();
    const size_t before = DmaBufsOf(exporter);
    const auto giver = StartGiver({kind, std::to_string(kPage), "2"});
    ASSERT_TRUE(Done(Import(*client_, *giver, 0, "in m", kPage)));
    ASSERT_TRUE(Done(Import(*client_, *giver, 1, "out m", kPage)));
    ASSERT_TRUE(Done(client_->Do("bind m in in 0")));
    ASSERT_TRUE(Done(client_->Do("bind m out out 0")));
    EXPECT_THAT(Heaps(), Contains("dma-buf:" + exporter).Times(2));
    EXPECT_GT(daemons(), daemons_before);

    giver->Do("load 0 " + model_.inputs[0]);
    ASSERT_TRUE(Done(client_->Do("run m")));
    const std::string answer = folder() + "/answer";
    giver->Do("save 1 " + answer);
    const std::string wanted = ReadText(model_.outputs[0]);
    EXPECT_EQ(ReadText(answer).substr(0, wanted.size()), wanted);
    EXPECT_TRUE(NeighbourIsWell());

    // Killed as it stands, bindings and all.
    client_->Kill();
    giver->Kill();
    EXPECT_TRUE(OnlyNeighbourIsLeft());
    EXPECT_TRUE(NeighbourIsWell());
    EXPECT_TRUE(Eventually([&] {
      return daemons() <= daemons_before && DmaBufsOf(exporter) <= before;
    })) << ListOfDmaBufs();
  }

  void ExpectRefused(const Reply& reply, const std::string& words) {
    EXPECT_THAT(reply, Fails(RKNN_ERR_FAIL, words));
    EXPECT_THAT(reply, Fails(RKNN_ERR_FAIL, kWhatItMustBe));
    EXPECT_EQ(Status().buffer_count, 2U);  // the neighbour's
    EXPECT_TRUE(NeighbourIsWell());
  }

  static std::string ListOfDmaBufs() {
    return ReadText("/sys/kernel/debug/dma_buf/bufinfo");
  }
  // How many of all there are.
  static size_t DmaBufsOf(const std::string& exporter) {
    std::istringstream words(ListOfDmaBufs());
    return std::count(std::istream_iterator<std::string>(words), {}, exporter);
  }

  size_t before_ = 0;
  TestModel model_;
  std::unique_ptr<ClientProcess> client_;
};

TEST_F(BuffersTest, UdmabufsOfAnotherProcessAreInputAndOutput) {
  ExpectComputesBetween("udmabuf", "udmabuf");
}

TEST_F(BuffersTest, PrimeBuffersOfAnotherProcessAreInputAndOutput) {
  ExpectComputesBetween("prime", "drm");
}

TEST_F(BuffersTest, MemoryOutlivesTheProcessThatMadeIt) {
  const auto giver = StartGiver({"prime", std::to_string(kPage), "1"});
  ASSERT_TRUE(Done(Import(*client_, *giver, 0, "in m", kPage)));
  ASSERT_TRUE(Done(client_->Do("create out m 64")));
  ASSERT_TRUE(Done(client_->Do("bind m in in 0")));
  ASSERT_TRUE(Done(client_->Do("bind m out out 0")));
  giver->Do("load 0 " + model_.inputs[0]);
  giver->Kill();
  ASSERT_TRUE(Done(client_->Do("run m")));
  EXPECT_TRUE(Right(client_->Do("compare_mem out" + model_.output_list())));
}

TEST_F(BuffersTest, SizeAndOffsetPastTheEndOfADmaBufAreRefused) {
  const auto giver = StartGiver({"udmabuf", std::to_string(kPage), "1"});
  EXPECT_THAT(
      Import(*client_, *giver, 0, "in m", 2 * kPage),
      Fails(RKNN_ERR_FAIL, "which has " + std::to_string(kPage) + " bytes"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BuffersTest, WhatIsNoDmaBufIsRefusedWithWhatItIs) {
  ExpectRefused(client_->Do("import i m pipe 65536 65536 0"), "a pipe");
  ExpectRefused(client_->Do("import i m socket 65536 65536 0"), "a socket");
  // An ordinary file; all of the guest's are in a tmpfs.
  ExpectRefused(client_->Do("import i m file 4096 4096 0"),
                "memory on tmpfs that can be truncated");
  ExpectRefused(client_->Do("import i m eventfd 4096 4096 0"), "an eventfd");
}

TEST_F(BuffersTest, DeviceThatHasBuffersIsNoBuffer) {
  for (const std::string node : {"/dev/dri/card0", "/dev/dri/renderD128",
                                 "/dev/video0", "/dev/udmabuf"}) {
    const auto giver = StartGiver({"node", node});
    ExpectRefused(Import(*client_, *giver, 0, "i m", kPage),
                  "a character device");
  }
}

TEST_F(BuffersTest, NothingIsLeftWhenDaemonAndClientsAreKilled) {
  const auto giver = StartGiver({"udmabuf", std::to_string(kPage), "1"});
  ASSERT_TRUE(Done(Import(*client_, *giver, 0, "in m", kPage)));
  ASSERT_TRUE(Done(client_->Do("create out m 64")));
  ASSERT_TRUE(Done(client_->Do("bind m in in 0")));
  client_->Kill();
  giver->Kill();
  ASSERT_TRUE(OnlyNeighbourIsLeft());
  EndNeighbour();
  KillDaemon();
  EXPECT_TRUE(Eventually([this] { return DmaBufs() == before_; }))
      << ListOfDmaBufs();
}

}  // namespace
}  // namespace rknnd::vm
