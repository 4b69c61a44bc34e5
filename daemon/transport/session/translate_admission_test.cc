#include "daemon/transport/session/translate_admission.h"

#include <gtest/gtest.h>

#include <string>

namespace rknnd::transport {
namespace {

TEST(TranslateAdmissionTest, EveryFieldOfARequestIsTakenOver) {
  wire::Admit message{};
  message.context = 3;
  message.model[31] = 9;
  message.rate_mhz = 29'970;
  message.priority = 2;
  message.core_mask = 4;
  message.reserve = true;
  message.streams = 5;
  const auto request = ToAdmissionRequest(message);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->context, 3U);
  EXPECT_EQ(request->model[31], 9);
  EXPECT_EQ(request->rate_mhz, 29'970U);
  EXPECT_EQ(request->priority, core::Priority::kLow);
  EXPECT_EQ(request->core_mask, 4U);
  EXPECT_TRUE(request->reserve);
  EXPECT_EQ(request->streams, 5U);
}

TEST(TranslateAdmissionTest, NoStreamsMeansOne) {
  EXPECT_EQ(ToAdmissionRequest(wire::Admit{})->streams, 1U);
}

TEST(TranslateAdmissionTest, UnknownPriorityIsRefused) {
  wire::Admit message{};
  message.priority = 3;
  EXPECT_EQ(ToAdmissionRequest(message).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(TranslateAdmissionTest, AnswerFitsItsMessageHoweverLongTheReason) {
  core::Admission admission;
  admission.fits = true;
  admission.rate_mhz = 12;
  admission.run = 34;
  admission.measured = true;
  admission.load_ppm = 56;
  admission.reason = std::string(5000, 'x');
  const wire::Admission message = ToAdmission(admission);
  EXPECT_TRUE(message.fits);
  EXPECT_EQ(message.rate_mhz, 12U);
  EXPECT_EQ(message.run_ns, 34U);
  EXPECT_TRUE(message.measured);
  EXPECT_EQ(message.load_ppm, 56U);
  EXPECT_GT(std::string(message.reason).size(), 100U);
  EXPECT_TRUE(wire::Encode(message).ok());
}

}  // namespace
}  // namespace rknnd::transport
