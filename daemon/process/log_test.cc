// Tests of the text log: what names in it may not do, and readers that do not
// read.

#include "daemon/process/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <string>

#include "base/posix/unique_fd.h"

namespace rknnd {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using transport::Severity;

class TextLogTest : public ::testing::Test {
 protected:
  TextLogTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    reader_ = base::UniqueFd(ends[0]);
    writer_ = base::UniqueFd(ends[1]);
    EXPECT_EQ(fcntl(reader_.get(), F_SETFL, O_NONBLOCK), 0);
    log_ = OpenTextLog(writer_.get(), "%l: %v");
  }

  // All that is in the pipe.
  std::string Read() {
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t got = 0;
         (got = read(reader_.get(), part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<size_t>(got));
    }
    return text;
  }

  base::UniqueFd reader_, writer_;
  std::unique_ptr<transport::EventLog> log_;
};

TEST_F(TextLogTest, LineHasItsLevelAndItsText) {
  log_->Write(Severity::kWarning, "köper är 好 😀");
  EXPECT_EQ(Read(), "warning: köper är 好 😀\n");
}

TEST_F(TextLogTest, NamesMakeNoLinesAndSteerNoTerminal) {
  log_->Write(Severity::kInfo, "a\nerror: b\r\x1b[2Jc\x7f");
  EXPECT_EQ(Read(), "info: a?error: b??[2Jc?\n");
  // Control characters of two bytes, and what is no UTF-8: cut off, too long a
  // form, half of UTF-16, beyond the last one.
  log_->Write(Severity::kInfo,
              "\xC2\x9B"
              "31m \xFF \xE2\x82");
  EXPECT_EQ(Read(), "info: ??31m ? ??\n");
  log_->Write(Severity::kInfo, "\xC0\xAF \xED\xA0\x80 \xF4\x90\x80\x80");
  EXPECT_EQ(Read(), "info: ?? ??? ????\n");
}

TEST_F(TextLogTest, LongLineIsCut) {
  log_->Write(Severity::kInfo, std::string(1 << 20, 'x'));
  EXPECT_THAT(Read(), SizeIs(std::string("info: \n").size() + (16 << 10)));
}

TEST_F(TextLogTest, ReaderThatDoesNotReadHoldsUpNobody) {
  ASSERT_GT(fcntl(writer_.get(), F_SETPIPE_SZ, 4096), 0);
  const std::string line(200, 'x');
  for (int i = 0; i < 100; ++i) log_->Write(Severity::kInfo, line);
  EXPECT_THAT(Read(), EndsWith("x\n"));
  log_->Write(Severity::kInfo, "again");
  const std::string told = Read();
  EXPECT_THAT(told, HasSubstr("info: again ("));
  EXPECT_THAT(told, EndsWith(" lines left out before: there was no room)\n"));
  log_->Write(Severity::kInfo, "and so on");
  EXPECT_EQ(Read(), "info: and so on\n");
}

TEST_F(TextLogTest, LineThatWasTornEndsBeforeTheNext) {
  ASSERT_GT(fcntl(writer_.get(), F_SETPIPE_SZ, 4096), 0);
  log_->Write(Severity::kInfo, std::string(6000, 'x'));
  EXPECT_EQ(Read(), "info: " + std::string(4090, 'x'));
  log_->Write(Severity::kInfo, "next");
  EXPECT_EQ(Read(),
            "\ninfo: next (1 lines left out before: there was no room)\n");
}

TEST_F(TextLogTest, ReaderThatHasGoneIsNoTrouble) {
  const auto before = signal(SIGPIPE, SIG_IGN);
  reader_.reset();
  log_->Write(Severity::kInfo, "nobody");
  signal(SIGPIPE, before);
}

}  // namespace
}  // namespace rknnd
