// Tests of what the journal is sent, against a socket that stands for it.

#include "daemon/process/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <map>
#include <set>
#include <string>

#include "base/posix/child_process.h"
#include "base/posix/journal_stream.h"

namespace rknnd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

using Fields = std::map<std::string, std::string>;

Fields Parse(const std::string& entry) {
  Fields fields;
  for (size_t at = 0; at < entry.size();) {
    const size_t end = entry.find('\n', at);
    const std::string line = entry.substr(at, end - at);
    const size_t equals = line.find('=');
    at = end + 1;
    if (equals != std::string::npos) {
      fields[line.substr(0, equals)] = line.substr(equals + 1);
      continue;
    }
    uint64_t size = 0;
    for (unsigned i = 0; i < 8; ++i) {
      size |= uint64_t{static_cast<unsigned char>(entry[at + i])} << (8 * i);
    }
    fields[line] = entry.substr(at + 8, size);
    at += 8 + size + 1;
  }
  return fields;
}

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()),
              0);
    stream_.reset(ends[0]);
    heard_.reset(ends[1]);
    journal_ = Journal::Open(stream_.get(), path_);
  }

  void StartJournal() {
    socket_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof address),
              0);
  }
  Fields Receive() {
    std::string entry(64 << 10, '\0');
    const ssize_t size =
        recv(socket_.get(), entry.data(), entry.size(), MSG_DONTWAIT);
    if (size < 0) return {};
    entry.resize(static_cast<size_t>(size));
    return Parse(entry);
  }
  void Say(const std::string& text, const core::EventFields& fields = {}) {
    journal_->Write(transport::Severity::kWarning, text, fields);
  }
  std::string HeardOnStream() {
    std::string text(4096, '\0');
    const ssize_t size =
        recv(heard_.get(), text.data(), text.size(), MSG_DONTWAIT);
    text.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return text;
  }

  base::TemporaryFolder folder_ = *base::TemporaryFolder::Make();
  const std::string path_ = folder_.path() + "/socket";
  base::UniqueFd socket_, stream_, heard_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(JournalTest, LineWithoutMoreHasTextPriorityAndName) {
  StartJournal();
  Say("hello");
  EXPECT_THAT(Receive(),
              ElementsAre(Pair("MESSAGE", "hello"), Pair("PRIORITY", "4"),
                          Pair("SYSLOG_IDENTIFIER", "rknnd")));
}

TEST_F(JournalTest, FieldsSayWhatALineIsAbout) {
  StartJournal();
  core::EventFields fields;
  fields.event = core::Event::kHang;
  fields.session = 7;
  fields.pid = 4711;
  fields.comm = "camera";
  fields.model = "ab12";
  fields.job = "3/17";
  fields.cores = 0b101;
  Say("a job hangs", fields);
  Fields entry = Receive();
  EXPECT_EQ(entry["RKNND_SESSION"], "7");
  EXPECT_EQ(entry["RKNND_PID"], "4711");
  EXPECT_EQ(entry["RKNND_COMM"], "camera");
  EXPECT_EQ(entry["RKNND_MODEL"], "ab12");
  EXPECT_EQ(entry["RKNND_JOB"], "3/17");
  EXPECT_EQ(entry["RKNND_CORE"], "0,2");
  EXPECT_EQ(entry["MESSAGE_ID"], MessageId(core::Event::kHang));
}

TEST_F(JournalTest, ClientsCannotAddFields) {
  StartJournal();
  core::EventFields fields;
  fields.comm = "x\nPRIORITY=0\n_UID=0";
  Say("text\nPRIORITY=0", fields);
  Fields entry = Receive();
  EXPECT_EQ(entry["MESSAGE"], "text\nPRIORITY=0");
  EXPECT_EQ(entry["RKNND_COMM"], fields.comm);
  EXPECT_EQ(entry["PRIORITY"], "4");
  EXPECT_EQ(entry.count("_UID"), 0U);
}

TEST_F(JournalTest, FullJournalLosesLinesAndSaysHowManyAndNobodyWaits) {
  StartJournal();
  // The kernel keeps a few datagrams (net.unix.max_dgram_qlen) for a reader.
  size_t kept = 0;
  for (int i = 0; i < 5000; ++i) Say("line");
  while (!Receive().empty()) ++kept;
  ASSERT_LT(kept, 5000U);
  Say("later");
  EXPECT_EQ(Receive()["MESSAGE"],
            "later (" + std::to_string(5000 - kept) +
                " lines left out before: the journal took no more)");
  Say("again");
  EXPECT_EQ(Receive()["MESSAGE"], "again");
}

TEST_F(JournalTest, WithoutAJournalTheStreamHasTheTextWithItsPriority) {
  core::EventFields fields;
  fields.session = 7;
  Say("hello", fields);
  EXPECT_EQ(HeardOnStream(), "<4>hello\n");
  StartJournal();
  Say("it is there");
  EXPECT_EQ(Receive()["MESSAGE"], "it is there");
  EXPECT_EQ(HeardOnStream(), "");
}

TEST_F(JournalTest, StreamThatNobodyReadsHoldsUpNobody) {
  const std::string line(8000, 'x');
  for (int i = 0; i < 1000; ++i) Say(line);
  StartJournal();
  Say("later");
  EXPECT_THAT(Receive()["MESSAGE"], HasSubstr("lines left out before"));
}

TEST_F(JournalTest, LongLineIsCut) {
  StartJournal();
  Say(std::string(Journal::kLongestText + 1000, 'x'));
  EXPECT_EQ(Receive()["MESSAGE"], std::string(Journal::kLongestText, 'x'));
}

TEST_F(JournalTest, StreamIsTheJournalsWhenItsNumbersSaySo) {
  struct stat file {};
  ASSERT_EQ(fstat(stream_.get(), &file), 0);
  const std::string its = std::to_string(file.st_dev) + ":";
  EXPECT_TRUE(base::IsJournalStream((its + std::to_string(file.st_ino)).c_str(),
                                    stream_.get()));
  EXPECT_FALSE(base::IsJournalStream(
      (its + std::to_string(file.st_ino + 1)).c_str(), stream_.get()));
  EXPECT_FALSE(base::IsJournalStream(nullptr, stream_.get()));
  EXPECT_FALSE(base::IsJournalStream("", stream_.get()));
  EXPECT_FALSE(base::IsJournalStream("1:1", -1));
}

TEST(MessageIdTest, EachEventHasItsOwn) {
  std::set<std::string> ids;
  for (int event = 1; event <= static_cast<int>(core::Event::kRefused);
       ++event) {
    const std::string id = MessageId(static_cast<core::Event>(event));
    EXPECT_EQ(id.size(), 32U);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_TRUE(ids.insert(id).second);
  }
  EXPECT_STREQ(MessageId(core::Event::kOther), "");
}

}  // namespace
}  // namespace rknnd
