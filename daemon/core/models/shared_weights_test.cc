// Models whose options say that they share another model's weights
// (RKNN_FLAG_SHARE_WEIGHT_MEM): where that one comes from, and what is no such
// model.

#include <string>
#include <vector>

#include "base/posix/memfd.h"
#include "base/values/model_options.h"
#include "base/values/sha256.h"
#include "daemon/core/testing/core_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::HasSubstr;
using testing::TestSession;

constexpr char kOwner[] = "weight=1000 name=large";
constexpr char kFollower[] = "weight=1000 name=small lacks=conv1.w";

class SharedWeightsTest : public testing::CoreTest {
 protected:
  static std::string OptionsFor(const ModelId& owner,
                                const std::string& own = "") {
    return base::WithWeightsOf(own, owner);
  }
  static base::UniqueFd Sealed(const std::string& bytes) {
    auto fd = base::MakeImmutableMemfd(
        "model", std::as_bytes(std::span(bytes.data(), bytes.size())));
    EXPECT_TRUE(fd.ok());
    return fd.ok() ? *std::move(fd) : base::UniqueFd();
  }
  // The follower, with `owner` as its second file.
  absl::Status UploadBoth(const TestSession& session, const std::string& text,
                          base::UniqueFd owner,
                          const std::string& owner_options = "") {
    absl::Status answer = absl::UnknownError("never answered");
    ModelUpload upload;
    upload.id = Id(kFollower, text);
    upload.name = "small.onnx";
    upload.options = text;
    upload.bytes = Sealed(kFollower);
    upload.weights_of = std::move(owner);
    upload.weights_of_options = owner_options;
    session->UploadModel(
        std::move(upload),
        [&answer](const absl::Status& status) { answer = status; });
    RunLoops();
    return answer;
  }
};

TEST_F(SharedWeightsTest, OwnerThatCameWithItReachesTheDevice) {
  const TestSession session = Open();
  const std::string text = OptionsFor(Id(kOwner), "a: b\n");
  EXPECT_EQ(UploadBoth(session, text, Sealed(kOwner)), absl::OkStatus());
  EXPECT_EQ(device.last_load().weights_of, kOwner);
  EXPECT_EQ(device.last_load().options, text);
  EXPECT_EQ(memory().other, 0U);
}

TEST_F(SharedWeightsTest, OwnersOptionsArePartOfItsIdentity) {
  const TestSession session = Open();
  const std::string text = OptionsFor(Id(kOwner, "c: d\n"));
  EXPECT_EQ(UploadBoth(session, text, Sealed(kOwner), "c: d\n"),
            absl::OkStatus());
}

TEST_F(SharedWeightsTest, OwnerThatTheDaemonLacksIsAskedFor) {
  const TestSession session = Open();
  const auto answer = Upload(session, kFollower, OptionsFor(Id(kOwner)));
  EXPECT_EQ(answer->code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(answer->message()),
              HasSubstr(base::ToHex(Id(kOwner))));
  EXPECT_EQ(device.loads(), 0U);
}

TEST_F(SharedWeightsTest, BytesThatAreNotTheOwnersAreRefused) {
  const TestSession session = Open();
  const absl::Status answer =
      UploadBoth(session, OptionsFor(Id(kOwner)), Sealed("weight=1 name=evil"));
  EXPECT_EQ(answer.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(answer.message()),
              HasSubstr(base::ToHex(Id("weight=1 name=evil"))));
  EXPECT_EQ(device.loads(), 0U);
  // Nothing was spoilt for who has the right ones.
  EXPECT_EQ(UploadBoth(session, OptionsFor(Id(kOwner)), Sealed(kOwner)),
            absl::OkStatus());
}

TEST_F(SharedWeightsTest, OwnerThatIsAFollowerItselfIsRefused) {
  const TestSession session = Open();
  const std::string owner_options = OptionsFor(Id("another"));
  const absl::Status answer =
      UploadBoth(session, OptionsFor(Id(kOwner, owner_options)), Sealed(kOwner),
                 owner_options);
  EXPECT_EQ(answer.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(answer.message()), HasSubstr("share that one's"));
}

TEST_F(SharedWeightsTest, OwnerThatMayStillChangeIsRefused) {
  const TestSession session = Open();
  auto open = base::MakeGrowingMemfd("model");
  ASSERT_TRUE(open.ok());
  ASSERT_TRUE(
      base::AppendToMemfd(open->get(), std::as_bytes(std::span(kOwner))).ok());
  const absl::Status answer =
      UploadBoth(session, OptionsFor(Id(kOwner)), *std::move(open));
  EXPECT_EQ(answer.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(answer.message()), HasSubstr("sealed"));
}

TEST_F(SharedWeightsTest, EmptyOwnerIsRefused) {
  const TestSession session = Open();
  EXPECT_EQ(UploadBoth(session, OptionsFor(Id("")), Sealed("")).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SharedWeightsTest, OwnerThatNoOptionNamesIsRefused) {
  const TestSession session = Open();
  EXPECT_EQ(UploadBoth(session, "a: b\n", Sealed(kOwner)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SharedWeightsTest, WeightsOfThatIsNoModelsNumberIsRefused) {
  const TestSession session = Open();
  for (const std::string text :
       {"weights_of: owner\n", "weights_of:\n", "a: b\nweights_of: 00ff"}) {
    const absl::Status answer = UploadBoth(session, text, Sealed(kOwner));
    EXPECT_EQ(answer.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(answer.message()), HasSubstr("'weights_of'"));
  }
}

TEST_F(SharedWeightsTest, FollowerAloneIsRefusedByTheDevice) {
  const TestSession session = Open();
  const auto answer = Upload(session, kFollower);
  EXPECT_EQ(answer->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(answer->message()), HasSubstr("'conv1.w'"));
}

TEST_F(SharedWeightsTest, OwnerInTheCacheNeedsNotCome) {
  const testing::TemporaryFolder folder;
  options.cache_dir = folder.path();
  StartService();
  const TestSession session = Open();
  ASSERT_EQ(Upload(session, kOwner), absl::OkStatus());
  EXPECT_EQ(Upload(session, kFollower, OptionsFor(Id(kOwner))),
            absl::OkStatus());
  EXPECT_EQ(device.last_load().weights_of, kOwner);
}

TEST_F(SharedWeightsTest, FollowerIsLoadedAgainAfterARestart) {
  const testing::TemporaryFolder folder;
  options.cache_dir = folder.path();
  StartService();
  const std::string own = OptionsFor(Id(kOwner));
  {
    const TestSession session = Open();
    ASSERT_EQ(UploadBoth(session, own, Sealed(kOwner)), absl::OkStatus());
  }
  StopService();
  StartService();

  const TestSession session = Open();
  absl::Status answer = absl::UnknownError("never answered");
  ContextRequest request;
  request.number = 1;
  request.model = Id(kFollower, own);
  session->CreateContext(request,
                         [&](const auto& info) { answer = info.status(); });
  RunLoops();
  EXPECT_EQ(answer, absl::OkStatus());
}

TEST_F(SharedWeightsTest, VendorSharingSharesOnlyWhatIsAskedFor) {
  options.vendor_sharing = true;
  StartService();
  const TestSession session = Open();
  ASSERT_EQ(Upload(session, kOwner), absl::OkStatus());
  EXPECT_FALSE(device.last_load().shares);
  ASSERT_EQ(UploadBoth(session, OptionsFor(Id(kOwner)), Sealed(kOwner)),
            absl::OkStatus());
  EXPECT_TRUE(device.last_load().shares);
}

}  // namespace
}  // namespace rknnd::core
