// Tests of regions: keys in place of paths, names of one's own, windows that
// lie inside, and memory that is gone with its owner.

#include "daemon/transport/grpc/inference/regions.h"

#include <string>
#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "daemon/transport/grpc/authenticator.h"
#include "gtest/gtest.h"

namespace rknnd::transport {
namespace {

using core::testing::TestSession;

constexpr uint64_t kPage = 4096;
constexpr char kMine[] = "name me", kTheirs[] = "name them";

class RegionsTest : public core::testing::CoreTest {
 protected:
  RegionsTest()
      : owner_(Open()), regions_(std::make_unique<Regions>(service.get())) {
    regions_->set_gone([this](uint64_t id) { gone_.push_back(id); });
    auto buffer = AllocateNow(owner_, 1, 2 * kPage, 0);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    key_ = KeyOf(1);
  }
  ~RegionsTest() override { regions_->Stop(); }

  std::string KeyOf(uint32_t buffer) {
    const auto key = owner_->GetBufferKey(buffer);
    EXPECT_TRUE(key.ok()) << key.status();
    return key.ok() ? core::ToText(key->key) : "";
  }
  absl::StatusCode Register(const std::string& name, uint64_t offset = 0,
                            uint64_t size = kPage,
                            const std::string& space = kMine) {
    return regions_->Register(space, name, key_, offset, size).code();
  }
  absl::StatusCode Find(const std::string& name,
                        const std::string& space = kMine) {
    return regions_->Find(space, name).status().code();
  }

  TestSession owner_;
  std::vector<uint64_t> gone_;
  std::unique_ptr<Regions> regions_;
  std::string key_;
};

TEST_F(RegionsTest, RegionIsAWindowOfTheBuffer) {
  ASSERT_EQ(Register("frame", 100, 200), absl::StatusCode::kOk);
  const auto region = regions_->Find(kMine, "frame");
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ((*region)->name(), "frame");
  EXPECT_EQ((*region)->origin(), 100U);
  EXPECT_EQ((*region)->size(), 200U);
  EXPECT_EQ(core::ToText((*region)->key()), key_);
}

TEST_F(RegionsTest, PathsAndMadeUpKeysAreNoKeys) {
  for (const char* key : {"/rknn_frames", "/dev/shm/x", "../x", "", "0123"}) {
    EXPECT_EQ(regions_->Register(kMine, "r", key, 0, kPage).code(),
              absl::StatusCode::kInvalidArgument)
        << key;
  }
  std::string wrong = key_;
  wrong[0] = wrong[0] == '0' ? '1' : '0';
  EXPECT_EQ(regions_->Register(kMine, "r", wrong, 0, kPage).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Find(wrong), absl::StatusCode::kNotFound);
}

TEST_F(RegionsTest, WindowsThatDoNotLieInTheBufferAreRefused) {
  EXPECT_EQ(Register("r", 0, 2 * kPage), absl::StatusCode::kOk);
  EXPECT_EQ(Register("a", 0, 2 * kPage + 1),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Register("b", 1, 2 * kPage), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Register("c", UINT64_MAX, 2), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Register("d", 2, UINT64_MAX), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Register("e", 0, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Register("", 0, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Register(std::string(256, 'n'), 0, 1),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(RegionsTest, NamesAreOnesOwn) {
  ASSERT_EQ(Register("frame"), absl::StatusCode::kOk);
  EXPECT_EQ(Register("frame"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Find("frame", kTheirs), absl::StatusCode::kNotFound);
  EXPECT_EQ(regions_->Unregister(kTheirs, "frame").code(),
            absl::StatusCode::kNotFound);
  EXPECT_TRUE(regions_->Unregister(kTheirs, "").ok());
  EXPECT_EQ(regions_->List(kTheirs, "")->size(), 0U);
  EXPECT_EQ(Register("frame", 8, 8, kTheirs), absl::StatusCode::kOk);
  EXPECT_EQ((*regions_->Find(kMine, "frame"))->origin(), 0U);
  EXPECT_EQ((*regions_->Find(kTheirs, "frame"))->origin(), 8U);
}

TEST_F(RegionsTest, SpacesAreNamesThatWereProvedOrElseKindsOfAddress) {
  GrpcPeer peer;
  peer.address = "ipv4:192.0.2.7:40112";
  EXPECT_EQ(RegionSpace(peer), "tcp");
  peer.address = "ipv6:[::1]:40112";
  EXPECT_EQ(RegionSpace(peer), "tcp");
  peer.address = "unix:";
  EXPECT_EQ(RegionSpace(peer), "unix");
  // Nobody gets at the nameless ones' by a name.
  peer.name = "tcp";
  EXPECT_NE(RegionSpace(peer), "tcp");
}

TEST_F(RegionsTest, StatusShowsNoWholeKey) {
  ASSERT_EQ(Register("a", 8, 16), absl::StatusCode::kOk);
  ASSERT_EQ(Register("b"), absl::StatusCode::kOk);
  const auto all = regions_->List(kMine, "");
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 2U);
  const auto one = regions_->List(kMine, "a");
  ASSERT_TRUE(one.ok());
  ASSERT_EQ(one->size(), 1U);
  EXPECT_EQ(one->front().offset, 8U);
  EXPECT_EQ(one->front().size, 16U);
  EXPECT_EQ(one->front().key, key_.substr(0, 8) + "...");
  EXPECT_EQ(regions_->List(kMine, "c").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(RegionsTest, KeyIsARegionByItselfAndTheSameEachTime) {
  const auto region = regions_->Find(kMine, key_);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ((*region)->size(), 2 * kPage);
  EXPECT_EQ((*region)->origin(), 0U);
  // Whoever knows the key has it, by whatever name.
  EXPECT_EQ((*regions_->Find(kTheirs, key_))->id(), (*region)->id());
  EXPECT_TRUE(regions_->List(kMine, "")->empty());
}

TEST_F(RegionsTest, UnregisteredRegionIsGoneForNewRequests) {
  ASSERT_EQ(Register("a"), absl::StatusCode::kOk);
  ASSERT_EQ(Register("b"), absl::StatusCode::kOk);
  const auto held = regions_->Find(kMine, "a");
  ASSERT_TRUE(held.ok());
  ASSERT_TRUE(regions_->Unregister(kMine, "a").ok());
  EXPECT_EQ(gone_, std::vector<uint64_t>{(*held)->id()});
  EXPECT_EQ(Find("a"), absl::StatusCode::kNotFound);
  EXPECT_EQ(regions_->Unregister(kMine, "a").code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(regions_->Unregister(kMine, "").ok());
  EXPECT_EQ(Find("b"), absl::StatusCode::kNotFound);
  EXPECT_EQ(gone_.size(), 2U);
}

TEST_F(RegionsTest, RegionsGoWithTheirOwnersBuffer) {
  ASSERT_EQ(Register("a"), absl::StatusCode::kOk);
  ASSERT_EQ(Register("b", 0, kPage, kTheirs), absl::StatusCode::kOk);
  const auto direct = regions_->Find(kMine, key_);
  ASSERT_TRUE(direct.ok());
  ASSERT_TRUE(owner_->ReleaseBuffer(1).ok());
  EXPECT_EQ(gone_.size(), 3U);
  EXPECT_EQ(Find("a"), absl::StatusCode::kNotFound);
  EXPECT_EQ(Find("b", kTheirs), absl::StatusCode::kNotFound);
  EXPECT_EQ(Find(key_), absl::StatusCode::kNotFound);
  // Who still holds a region keeps nothing of the buffer.
  EXPECT_EQ(memory().io, 0U);
  EXPECT_EQ(device.memories(), 0U);
}

TEST_F(RegionsTest, RegionsGoWithTheirOwnersSession) {
  ASSERT_EQ(Register("a"), absl::StatusCode::kOk);
  service->CloseSession(owner_->id());
  EXPECT_EQ(gone_.size(), 1U);
  EXPECT_EQ(Find("a"), absl::StatusCode::kNotFound);
  EXPECT_EQ(Register("a"), absl::StatusCode::kNotFound);
}

TEST_F(RegionsTest, OneSpaceHasABoundAndOthersHaveRoom) {
  absl::StatusCode code = absl::StatusCode::kOk;
  int registered = 0;
  for (; code == absl::StatusCode::kOk && registered < 10000; ++registered) {
    code = Register("r" + std::to_string(registered), 0, 1);
  }
  EXPECT_EQ(code, absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(registered, 257);
  EXPECT_EQ(Register("r", 0, 1, kTheirs), absl::StatusCode::kOk);
}

TEST_F(RegionsTest, KeysThatRequestsNameHaveABoundAndTheOldestMakesRoom) {
  const auto first = regions_->Find(kMine, key_);
  ASSERT_TRUE(first.ok());
  for (uint32_t buffer = 2; buffer <= 1025; ++buffer) {
    ASSERT_TRUE(AllocateNow(owner_, buffer, kPage, 0).ok());
    ASSERT_EQ(Find(KeyOf(buffer)), absl::StatusCode::kOk);
  }
  EXPECT_EQ(gone_, std::vector<uint64_t>{(*first)->id()});
  const auto again = regions_->Find(kMine, key_);
  ASSERT_TRUE(again.ok());
  EXPECT_NE((*again)->id(), (*first)->id());
}

TEST_F(RegionsTest, StoppedRegionsTellNobody) {
  ASSERT_EQ(Register("a"), absl::StatusCode::kOk);
  regions_->Stop();
  EXPECT_EQ(Find("a"), absl::StatusCode::kNotFound);
  EXPECT_EQ(Register("b"), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(owner_->ReleaseBuffer(1).ok());
  EXPECT_TRUE(gone_.empty());
}

}  // namespace
}  // namespace rknnd::transport
