// When the software NPU has the kernel synchronise CPU caches: with a table in
// the kernel's place, which takes any memory for a dma-buf; and, where this
// kernel has them, on real ones.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "base/posix/unique_fd.h"
#include "driver/memory/cache_state.h"
#include "driver/memory/fault_guard.h"
#include "driver/memory/heap.h"
#include "driver/soft/soc.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/allocations.h"
#include "driver/soft/testing/onnx_builder.h"

namespace rknnd::soft {
namespace {

using driver::CacheSyncs;
using driver::CpuAccess;
using driver::MemoryOrigin;
using ::testing::ElementsAre;
using testing::OnnxBuilder;

constexpr uint64_t kPage = 4096;
constexpr driver::TensorFormat kFloatFormat{
    .type = driver::TensorType::kFloat32,
    .layout = driver::TensorLayout::kUndefined};

uint64_t InodeOf(int fd) {
  struct stat status = {};
  EXPECT_EQ(fstat(fd, &status), 0);
  return status.st_ino;
}

class Table final : public driver::CacheCalls {
 public:
  void Name(int fd, std::string name) { names_[InodeOf(fd)] = std::move(name); }
  // What was called since the last time.
  std::vector<std::string> Take() { return std::exchange(calls_, {}); }
  void FailAt(std::string call) { failing_ = std::move(call); }

  [[nodiscard]] bool IsDmaBuf(int) const override { return true; }
  absl::Status Begin(int fd, CpuAccess access) override {
    return Add("begin", fd, access);
  }
  absl::Status End(int fd, CpuAccess access) override {
    return Add("end", fd, access);
  }

 private:
  absl::Status Add(const char* call, int fd, CpuAccess access) {
    calls_.push_back(std::string(call) +
                     (access == CpuAccess::kRead ? " read " : " write ") +
                     names_[InodeOf(fd)]);
    return calls_.back() == failing_ ? absl::InternalError("no fence came")
                                     : absl::OkStatus();
  }

  std::map<uint64_t, std::string> names_;
  std::vector<std::string> calls_;
  std::string failing_;
};

// Four floats, as a program and the device see them.
struct Piece {
  base::UniqueFd fd;
  base::Mapping mapping;
  std::unique_ptr<driver::Memory> memory;

  void Write(float value) {
    const std::vector<float> values(4, value);
    std::memcpy(mapping.data(), values.data(), 16);
  }
  [[nodiscard]] float Read() const {
    float value = 0;
    std::memcpy(&value, mapping.data(), sizeof value);
    return value;
  }
};

class KeepStatus final : public driver::JobListener {
 public:
  void OnJobDone(driver::JobResult result) override {
    status = std::move(result.status);
  }
  absl::Status status = absl::UnknownError("no answer");
};

class CoherenceTest : public ::testing::Test {
 protected:
  CoherenceTest() : device_(*FindSoc("rk3588"), nullptr, false) {
    driver::InstallFaultGuard();
    device_.EnterWorker();
  }

  void SetUp() override { Load(1); }

  // y = x + 1 for four floats, and `batch` slices of them.
  void Load(uint32_t batch) {
    OnnxBuilder builder;
    builder.Input("x", {1, 4})
        .Floats("one", {1}, {1})
        .Node("Add", {"x", "one"}, {"y"})
        .Output("y", {1, 4});
    const std::string options =
        batch == 1 ? "" : "rknn_batch_size: " + std::to_string(batch);
    auto model = device_.Load({builder.Bytes(), options, "m.onnx"});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  Piece Wrap(base::UniqueFd fd, MemoryOrigin origin) {
    Piece piece;
    piece.mapping = *base::Mapping::OfFd(fd.get(), 0, kPage,
                                         base::Mapping::Access::kReadWrite);
    piece.memory = *device_.Attach({fd.get(), 0, kPage, origin},
                                   driver::MemoryAccess::kReadWrite);
    piece.fd = std::move(fd);
    return piece;
  }

  absl::Status Run(Piece& in, Piece& out, bool keep_inputs = false,
                   bool keep_outputs = false) {
    const driver::TensorBinding input{in.memory.get(), 0, kFloatFormat};
    const driver::TensorBinding output{out.memory.get(), 0, kFloatFormat};
    return RunOn({&input, 1}, {&output, 1}, keep_inputs, keep_outputs);
  }
  absl::Status RunOn(std::span<const driver::TensorBinding> inputs,
                     std::span<const driver::TensorBinding> outputs,
                     bool keep_inputs = false, bool keep_outputs = false) {
    driver::JobRequest job;
    job.model = model_.get();
    job.inputs = inputs;
    job.outputs = outputs;
    job.internal = arena_.memory.get();
    job.keep_input_caches = keep_inputs;
    job.keep_output_caches = keep_outputs;
    job.listener = &answer_;
    device_.Submit(job);
    return answer_.status;
  }

  SoftDevice device_;
  std::unique_ptr<driver::Model> model_;
  KeepStatus answer_;
  Piece arena_;
};

// ---- with a table -----------------------------------------------------------

class CacheTableTest : public CoherenceTest {
 protected:
  CacheTableTest() {
    device_.set_cache_calls(&table_);
    arena_ = Make("arena");
  }

  Piece Make(const std::string& name,
             MemoryOrigin origin = MemoryOrigin::kCachedHeap) {
    base::UniqueFd fd = *base::MakeMemfd("test", kPage);
    table_.Name(fd.get(), name);
    return Wrap(std::move(fd), origin);
  }
  void ExpectCounts(uint64_t done, uint64_t skipped) {
    EXPECT_EQ(device_.cache_syncs().done, done);
    EXPECT_EQ(device_.cache_syncs().skipped, skipped);
  }

  Table table_;
};

TEST_F(CacheTableTest, InputIsMadeVisibleBeforeAndOutputAfter) {
  Piece in = Make("in"), out = Make("out");
  in.Write(1);
  ASSERT_TRUE(Run(in, out).ok());
  EXPECT_EQ(out.Read(), 2);
  EXPECT_THAT(table_.Take(), ElementsAre("begin read in", "begin write out",
                                         "end read in", "end write out"));
  ExpectCounts(2, 0);
}

TEST_F(CacheTableTest, InternalMemoryIsNobodyElses) {
  Piece in = Make("in"), out = Make("out");
  ASSERT_TRUE(Run(in, out).ok());
  for (const std::string& call : table_.Take()) {
    EXPECT_EQ(call.find("arena"), std::string::npos) << call;
  }
}

TEST_F(CacheTableTest, OutputOfOneJobIsInputOfTheNextWithoutASync) {
  Piece in = Make("in"), between = Make("between"), out = Make("out");
  in.Write(1);
  ASSERT_TRUE(Run(in, between).ok());
  table_.Take();
  ASSERT_TRUE(Run(between, out).ok());
  EXPECT_EQ(out.Read(), 3);
  EXPECT_THAT(table_.Take(), ElementsAre("begin write out", "end write out"));
  ExpectCounts(3, 1);
}

TEST_F(CacheTableTest, MemoryTheProgramHasSyncedIsReadAfresh) {
  Piece in = Make("in"), between = Make("between"), out = Make("out");
  ASSERT_TRUE(Run(in, between).ok());
  between.memory->Synchronize(driver::CacheSide::kToDevice);
  table_.Take();
  ASSERT_TRUE(Run(between, out).ok());
  EXPECT_THAT(table_.Take(), ::testing::Contains("begin read between"));
}

TEST_F(CacheTableTest, ProgramsThatSyncByThemselvesAreLeftTo) {
  Piece in = Make("in"), out = Make("out");
  ASSERT_TRUE(Run(in, out, /*keep_inputs=*/true).ok());
  EXPECT_THAT(table_.Take(), ElementsAre("begin write out", "end write out"));
  ASSERT_TRUE(Run(in, out, false, /*keep_outputs=*/true).ok());
  EXPECT_THAT(table_.Take(), ElementsAre("begin read in", "end read in"));
  ASSERT_TRUE(Run(in, out, true, true).ok());
  EXPECT_THAT(table_.Take(), ElementsAre());
  ExpectCounts(2, 4);
}

TEST_F(CacheTableTest, ACamerasMemoryIsSynchronisedWhateverTheFlagsSay) {
  Piece in = Make("in", MemoryOrigin::kBrought);
  Piece out = Make("out", MemoryOrigin::kBrought);
  ASSERT_TRUE(Run(in, out, true, true).ok());
  ASSERT_TRUE(Run(out, in, true, true).ok());
  EXPECT_EQ(table_.Take().size(), 8U);
  ExpectCounts(4, 0);
}

TEST_F(CacheTableTest, UncachedMemoryNeedsNothingAndCountsNowhere) {
  Piece in = Make("in", MemoryOrigin::kUncachedHeap);
  Piece out = Make("out", MemoryOrigin::kUncachedHeap);
  ASSERT_TRUE(Run(in, out).ok());
  EXPECT_THAT(table_.Take(), ElementsAre());
  ExpectCounts(0, 0);
}

TEST_F(CacheTableTest, TensorsAndSlicesOfOneMemoryAreSyncedOnce) {
  Load(4);
  Piece in = Make("in"), out = Make("out");
  ASSERT_TRUE(Run(in, out).ok());
  EXPECT_THAT(table_.Take(), ElementsAre("begin read in", "begin write out",
                                         "end read in", "end write out"));
}

TEST_F(CacheTableTest, AFailedBeginEndsWhatWasBegunAndTheJob) {
  Piece in = Make("in"), out = Make("out");
  table_.FailAt("begin write out");
  EXPECT_EQ(Run(in, out).message(), "no fence came");
  EXPECT_THAT(table_.Take(),
              ElementsAre("begin read in", "begin write out", "end read in"));
  table_.FailAt("");
  EXPECT_TRUE(Run(in, out).ok());
}

TEST_F(CacheTableTest, AfterAFailedEndNothingIsTakenForKnown) {
  Piece in = Make("in"), between = Make("between"), out = Make("out");
  table_.FailAt("end write between");
  EXPECT_FALSE(Run(in, between).ok());
  table_.FailAt("");
  table_.Take();
  ASSERT_TRUE(Run(between, out).ok());
  EXPECT_THAT(table_.Take(), ::testing::Contains("begin read between"));
}

TEST_F(CacheTableTest, AJobThatFailsEndsItsSyncsAllTheSame) {
  Piece in = Make("in"), out = Make("out");
  const driver::TensorBinding input{in.memory.get(), 0, kFloatFormat};
  // Too little room: found out by the last layer.
  const driver::TensorBinding output{out.memory.get(), kPage - 4, kFloatFormat};
  EXPECT_FALSE(RunOn({&input, 1}, {&output, 1}).ok());
  EXPECT_EQ(table_.Take().size(), 4U);
}

TEST_F(CacheTableTest, PictureBesideAnAnswerInOneMemoryIsReadAfresh) {
  Piece both = Make("both"), out = Make("out");
  const driver::TensorBinding picture{both.memory.get(), 0, kFloatFormat};
  const driver::TensorBinding answer{both.memory.get(), 1024, kFloatFormat};
  const driver::TensorBinding last{out.memory.get(), 0, kFloatFormat};
  ASSERT_TRUE(RunOn({&picture, 1}, {&answer, 1}).ok());
  table_.Take();
  // Whoever writes pictures has been there again.
  ASSERT_TRUE(RunOn({&picture, 1}, {&answer, 1}).ok());
  EXPECT_THAT(table_.Take(), ::testing::Contains("begin read both"));
  ASSERT_TRUE(RunOn({&answer, 1}, {&last, 1}).ok());
  EXPECT_THAT(table_.Take(), ElementsAre("begin write out", "end write out"));
}

TEST_F(CacheTableTest, WhatAFailedJobWasToWriteIsNotTakenForItsOwn) {
  Piece in = Make("in"), between = Make("between"), out = Make("out");
  ASSERT_TRUE(Run(in, between).ok());
  const driver::TensorBinding input{in.memory.get(), kPage - 4, kFloatFormat};
  const driver::TensorBinding output{between.memory.get(), 0, kFloatFormat};
  EXPECT_FALSE(RunOn({&input, 1}, {&output, 1}).ok());
  table_.Take();
  ASSERT_TRUE(Run(between, out).ok());
  EXPECT_THAT(table_.Take(), ::testing::Contains("begin read between"));
}

// Takes all memory for dma-bufs, and does nothing.
class NoCalls final : public driver::CacheCalls {
 public:
  [[nodiscard]] bool IsDmaBuf(int) const override { return true; }
  absl::Status Begin(int, CpuAccess) override { return absl::OkStatus(); }
  absl::Status End(int, CpuAccess) override { return absl::OkStatus(); }
};

TEST_F(CoherenceTest, SyncsAllocateNothing) {
  NoCalls calls;
  device_.set_cache_calls(&calls);
  const auto make = [this] {
    return Wrap(*base::MakeMemfd("test", kPage), MemoryOrigin::kCachedHeap);
  };
  arena_ = make();
  Piece in = make(), out = make();
  ASSERT_TRUE(Run(in, out).ok());  // makes room
  const uint64_t before = testing::Allocations();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Run(in, out).ok());
  EXPECT_EQ(testing::Allocations(), before);
  EXPECT_EQ(device_.cache_syncs().done, 22U);
}

// ---- on real dma-bufs -------------------------------------------------------

class DmaBufHeapTest : public CoherenceTest {
 protected:
  void SetUp() override {
    CoherenceTest::SetUp();
    arena_ = Wrap(*base::MakeMemfd("arena", kPage), MemoryOrigin::kCachedHeap);
    const std::vector<std::unique_ptr<driver::Heap>>& all = heaps_.all();
    if (all.size() < 2) GTEST_SKIP() << "only memfd: no dma-bufs here";
  }

  // Of each heap that gives dma-bufs.
  template <class Use>
  void OfEach(Use use) {
    for (const auto& heap : heaps_.all()) {
      if (heap->name() == "memfd") continue;
      SCOPED_TRACE(heap->name());
      use(*heap);
    }
  }
  Piece Make(driver::Heap& heap) {
    auto given = heap.Allocate(kPage);
    EXPECT_TRUE(given.ok()) << given.status();
    return Wrap(std::move(given->fd), heap.traits().cached
                                          ? MemoryOrigin::kCachedHeap
                                          : MemoryOrigin::kUncachedHeap);
  }
  // Jobs since the last time.
  CacheSyncs Since() {
    const CacheSyncs now = device_.cache_syncs();
    const CacheSyncs before = std::exchange(counted_, now);
    return {now.done - before.done, now.skipped - before.skipped};
  }

  const driver::Heaps heaps_ = driver::Heaps::Probe();
  CacheSyncs counted_;
};

TEST_F(DmaBufHeapTest, JobsComputeAndCount) {
  OfEach([this](driver::Heap& heap) {
    const uint64_t one = heap.traits().cached ? 1 : 0;
    Piece in = Make(heap), between = Make(heap), out = Make(heap);
    EXPECT_TRUE(driver::IsDmaBuf(in.fd.get()));
    in.Write(1);
    Since();

    ASSERT_TRUE(Run(in, between).ok());
    CacheSyncs syncs = Since();
    EXPECT_EQ(syncs.done, 2 * one);
    EXPECT_EQ(syncs.skipped, 0U);

    ASSERT_TRUE(Run(between, out).ok());
    EXPECT_EQ(out.Read(), 3);
    syncs = Since();
    EXPECT_EQ(syncs.done, one);
    EXPECT_EQ(syncs.skipped, one);

    ASSERT_TRUE(Run(in, out, true, true).ok());
    syncs = Since();
    EXPECT_EQ(syncs.done, 0U);
    EXPECT_EQ(syncs.skipped, 2 * one);
  });
}

TEST_F(DmaBufHeapTest, BroughtMemoryIsAlwaysSynced) {
  OfEach([this](driver::Heap& heap) {
    auto given = heap.Allocate(kPage);
    ASSERT_TRUE(given.ok()) << given.status();
    Piece in = Wrap(std::move(given->fd), MemoryOrigin::kBrought);
    Piece out = Make(heap);
    Since();
    ASSERT_TRUE(Run(in, out, true, true).ok());
    EXPECT_EQ(Since().done, 1U);
  });
}

}  // namespace
}  // namespace rknnd::soft
