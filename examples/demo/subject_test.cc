#include "examples/demo/subject.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/posix/child_process.h"

namespace rknnd::demo {
namespace {

TEST(PhotoTest, ScoresThatAreNoNumbersAreNoFindings) {
  const auto folder = base::TemporaryFolder::Make();
  ASSERT_TRUE(folder.ok());
  const std::string file = folder->path() + "/photo.png";
  const client::Image picture(8, 8);
  ASSERT_TRUE(client::WritePng(file, picture.pixels()).ok());
  const auto photo = FilmPhoto(file, 0);
  ASSERT_TRUE(photo.ok()) << photo.error().message;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> scores = {0, kNan, 0, 0.9F, kNan, kNan, 0, 0.8F};
  const std::vector<float> boxes = {0,   0, .1F, .1F, .2F, .2F, .3F, .3F,
                                    .4F, 0, .5F, .1F, .6F, .6F, .9F, .9F};

  const auto findings = (*photo)->Find({scores, boxes}, 100, 100);

  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].score, 0.9F);
  EXPECT_EQ(findings[1].score, 0.8F);
}

}  // namespace
}  // namespace rknnd::demo
