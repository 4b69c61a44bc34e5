// A session with contexts that use the weights of another model.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/posix/memfd.h"
#include "base/values/sha256.h"
#include "client/session/target_fixture.h"

namespace rknnd::client {
namespace {

using base::Code;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Memfds with a model's bytes that this process has open.
size_t OpenModelFiles() {
  size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto file = std::filesystem::read_symlink(entry.path(), gone);
    count += file.string().find("rknnd-model") != std::string::npos ? 1 : 0;
  }
  return count;
}

TEST_F(TargetTest, OwnerOfWeightsIsSentOnlyWhenTheDaemonLacksIt) {
  Open();
  ASSERT_TRUE(Create(kContext, "owner").ok());
  // Another client, of which the daemon did not need the owner's bytes.
  Open();
  ASSERT_TRUE(Create(kContext, "owner").ok());
  daemon_.set_lacks_owners(false);
  ASSERT_TRUE(CreateFollower(kContext + 1, kContext, "small").ok());
  EXPECT_TRUE(daemon_.seen().owners.empty());

  // The daemon keeps models: those that it had are not kept here too.
  daemon_.set_lacks_owners(true);
  const auto refused = CreateFollower(kContext + 2, kContext, "smaller");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
}

TEST_F(TargetTest, OwnerIsSentWithItsFollower) {
  daemon_.set_keeps_models(false);
  Open();
  ASSERT_TRUE(Create(kContext, "owner").ok());
  ASSERT_TRUE(CreateFollower(kContext + 1, kContext, "small").ok());
  EXPECT_THAT(daemon_.seen().owners, ElementsAre("owner"));
  EXPECT_THAT(
      daemon_.seen().last_upload_options,
      HasSubstr("weights_of: " + base::ToHex(base::Sha256Of(DataOf("owner")))));
}

TEST_F(TargetTest, RestartedDaemonGetsTheOwnerAgainThoughItIsGone) {
  daemon_.set_keeps_models(false);
  Open();
  ASSERT_TRUE(Create(kContext, "owner").ok());
  ASSERT_TRUE(CreateFollower(kContext + 1, kContext, "small").ok());
  ASSERT_TRUE(target_->DestroyContext(kContext).ok());
  daemon_.Stop(/*keep_models=*/false);
  daemon_.Start();

  ASSERT_TRUE(target_->SetCoreMask(kContext + 1, 1).ok());
  EXPECT_THAT(daemon_.seen().owners, ElementsAre("owner", "owner"));
  EXPECT_EQ(daemon_.seen().contexts.size(), 1U);
}

TEST_F(TargetTest, BytesOfOneModelAreKeptOnce) {
  daemon_.set_keeps_models(false);
  Open();
  const size_t before = OpenModelFiles();
  ASSERT_TRUE(Create(kContext, "model").ok());
  ASSERT_TRUE(Create(kContext + 1, "model").ok());
  EXPECT_EQ(OpenModelFiles(), before + 1);

  ASSERT_TRUE(target_->DestroyContext(kContext).ok());
  daemon_.Stop(/*keep_models=*/false);
  daemon_.Start();
  EXPECT_TRUE(target_->SetCoreMask(kContext + 1, 1).ok());
  ASSERT_TRUE(target_->DestroyContext(kContext + 1).ok());
  EXPECT_EQ(OpenModelFiles(), before);
}

TEST_F(TargetTest, DuplicateOfAFollowerNeedsNoOwner) {
  daemon_.set_keeps_models(false);
  Open();
  ASSERT_TRUE(Create(kContext, "owner").ok());
  ASSERT_TRUE(CreateFollower(kContext + 1, kContext, "small").ok());
  ContextRequest request;
  request.number = kContext + 2;
  request.duplicate_of = kContext + 1;
  EXPECT_TRUE(target_->CreateContext(request, nullptr).ok());
  EXPECT_EQ(daemon_.seen().owners.size(), 1U);
}

TEST_F(TargetTest, OwnerThatIsGoneIsAnError) {
  Open();
  const auto refused = CreateFollower(kContext + 1, kContext, "small");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kNotFound);
  EXPECT_EQ(daemon_.seen().uploads, 0U);
}

}  // namespace
}  // namespace rknnd::client
