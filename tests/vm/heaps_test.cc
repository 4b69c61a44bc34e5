// The daemon's own heaps on a kernel that has them.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "tests/integration/harness/files.h"
#include "tests/vm/guest_test.h"

namespace rknnd::vm {
namespace {

using integration::MakeConvNet;
using integration::TestModel;
using integration::WriteFile;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;

class HeapsTest : public GuestTest {
 protected:
  static constexpr char kDmaHeaps[] = "/dev/dma_heap";
  static constexpr char kHidden[] = "/dev/no_dma_heap";

  ~HeapsTest() override {
    if (std::filesystem::exists(kHidden)) {
      std::filesystem::rename(kHidden, kDmaHeaps);
    }
  }

  // Debian's kernels for boards have none.
  static bool HasDmaHeaps() { return std::filesystem::exists(kDmaHeaps); }
  static std::string BestHeap() {
    return HasDmaHeaps() ? "dma_heap:system" : "udmabuf";
  }
  // As on a kernel without them.
  static void HideDmaHeaps() {
    if (HasDmaHeaps()) std::filesystem::rename(kDmaHeaps, kHidden);
  }

  // A client computes in memory of `heap`, which `exporter` is to the kernel.
  void ExpectServed(const std::string& heap, const std::string& exporter,
                    const std::string& config = "") {
    const size_t before = DmaBufs();
    StartDaemon(
        {.more = {"--config", WriteFile(folder() + "/config.toml", config)}});
    // The line that it serves follows the socket.
    EXPECT_TRUE(Eventually([&] {
      return testing::Value(daemon().log(), HasSubstr(heap + " (cached)"));
    })) << daemon().log();
    const TestModel model = MakeConvNet(folder());
    const auto client = StartClient();
    ASSERT_TRUE(Done(client->Do("init c " + model.path)));
    ASSERT_TRUE(Done(client->Do("bind_all c")));
    ASSERT_TRUE(Done(client->Do("fill c.in0" + model.input_list())));
    ASSERT_TRUE(Done(client->Do("run c")));
    EXPECT_TRUE(Right(client->Do("compare_mem c.out0" + model.output_list())));

    EXPECT_THAT(Heaps(), Each(heap));
    EXPECT_THAT(Exporters(client->pid()), Contains(exporter));
    EXPECT_TRUE(MapsDmaBufs(client->pid()));
    EXPECT_GE(DmaBufs(), before + 2);  // in, out
    EXPECT_EQ(client->Exit(), 0);
    EXPECT_TRUE(OnlyNeighbourIsLeft());
    EXPECT_EQ(EndDaemon(), 0);
    EXPECT_EQ(DmaBufs(), before);
  }
};

TEST_F(HeapsTest, DmaHeapServesWhereThereIsOne) {
  if (!HasDmaHeaps()) GTEST_SKIP() << "this kernel has no dma-heaps";
  ExpectServed("dma_heap:system", "system");
}

TEST_F(HeapsTest, UdmabufServesWhereThereIsNoDmaHeap) {
  HideDmaHeaps();
  ExpectServed("udmabuf", "udmabuf");
}

TEST_F(HeapsTest, ConfigurationSaysWhichHeap) {
  ExpectServed("udmabuf", "udmabuf", "[memory]\nheaps = [\"udmabuf\"]\n");
}

TEST_F(HeapsTest, WishThatNoHeapMeetsIsServedByAnotherAndSaid) {
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + MakeConvNet(folder()).path)));
  ASSERT_TRUE(Done(client->Do("create m c 4096 " +
                              std::to_string(RKNN_FLAG_MEMORY_NON_CACHEABLE))));
  EXPECT_THAT(Heaps(), Contains(BestHeap() + " (not uncached)"));
  EXPECT_TRUE(Eventually([this] {
    return testing::Value(daemon().log(),
                          HasSubstr("'" + BestHeap() + "' is used instead"));
  })) << daemon().log();
}

TEST_F(HeapsTest, ArenasAreNeverMappedInAClient) {
  StartDaemon();
  const TestModel model = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + model.path)));
  ASSERT_TRUE(Done(client->Do("inputs c" + model.input_list())));
  ASSERT_TRUE(Done(client->Do("run c")));
  const size_t daemons = Exporters(daemon().pid()).size();
  const size_t clients = Exporters(client->pid()).size();
  // The client has what backs its inputs and outputs; internal memory is the
  // daemon's alone.
  EXPECT_LE(clients, 2U);
  EXPECT_GT(daemons, 0U);
}

}  // namespace
}  // namespace rknnd::vm
