// Who gets a timeline, when, and what is left in the folder.

#include "daemon/core/reports/traces.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/posix/memfd.h"
#include "daemon/core/testing/core_fixture.h"
#include "nlohmann/json.hpp"

namespace rknnd::core {
namespace {

using ::testing::HasSubstr;

std::set<std::string> FilesIn(const std::string& folder) {
  std::set<std::string> names;
  DIR* const open = opendir(folder.c_str());
  if (open == nullptr) return names;
  while (const dirent* entry = readdir(open)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.insert(name);
  }
  closedir(open);
  return names;
}

class TracesTest : public testing::CoreTest {
 protected:
  TracesTest() : recorder_(std::make_shared<Recorder>(8)) { Make(); }

  void Make(const std::string& folder = "") {
    Traces::Parts parts;
    parts.recorder = recorder_;
    parts.clock = &clock;
    parts.loop = &loop;
    parts.pager = &pager;
    parts.timers = &timers;
    parts.log = &log_;
    parts.cores = 3;
    parts.device = "fake";
    parts.folder = folder;
    traces_ = Traces::Create(std::move(parts));
  }

  void Ask() {
    traces_->Take(0, [this](absl::StatusOr<Traces::Trace> trace) {
      answers_.push_back(std::move(trace));
    });
  }

  testing::TemporaryFolder folder_;
  testing::RecordingLog log_;
  std::shared_ptr<Recorder> recorder_;
  std::shared_ptr<Traces> traces_;
  std::vector<absl::StatusOr<Traces::Trace>> answers_;
};

TEST_F(TracesTest, TraceComesInASealedMemfd) {
  JobRecord job;
  job.submitted = job.started = job.ended = job.answered = clock.Now();
  recorder_->Add(job);
  Ask();
  EXPECT_TRUE(answers_.empty());
  RunLoops();

  ASSERT_EQ(answers_.size(), 1U);
  ASSERT_TRUE(answers_[0].ok());
  EXPECT_EQ(answers_[0]->jobs, 1U);
  EXPECT_EQ(answers_[0]->lost, 0U);
  EXPECT_TRUE(base::HasSeals(answers_[0]->text.get(), base::Seals::kImmutable));
  struct stat status {};
  ASSERT_EQ(fstat(answers_[0]->text.get(), &status), 0);
  EXPECT_EQ(static_cast<uint64_t>(status.st_size), answers_[0]->size);
}

TEST_F(TracesTest, OneAtATimeWithPausesBetween) {
  Ask();
  Ask();
  RunLoops();
  EXPECT_EQ(answers_.size(), 1U);
  Advance(base::kSecond);
  RunLoops();
  EXPECT_EQ(answers_.size(), 2U);
}

TEST_F(TracesTest, TooManyAreToldToComeBack) {
  for (int i = 0; i < 100; ++i) Ask();
  ASSERT_FALSE(answers_.empty());
  EXPECT_TRUE(absl::IsResourceExhausted(answers_[0].status()));
  for (int i = 0; i < 100; ++i) {
    RunLoops();
    Advance(base::kSecond);
  }
  EXPECT_EQ(answers_.size(), 100U);
  EXPECT_TRUE(answers_.back().ok());
}

TEST_F(TracesTest, NobodyIsAnsweredBehindTheEnd) {
  Ask();
  traces_->Stop();
  traces_ = nullptr;
  RunLoops();
  EXPECT_TRUE(answers_.empty());
}

TEST_F(TracesTest, FileIsNamedInTheLogAndCanBeRead) {
  Make(folder_.path());
  traces_->WriteFile("a job hangs");
  RunLoops();

  const std::set<std::string> files = FilesIn(folder_.path());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_THAT(*files.begin(), ::testing::StartsWith("trace-"));
  ASSERT_EQ(log_.lines.size(), 1U);
  EXPECT_THAT(log_.lines[0], HasSubstr("a job hangs"));
  EXPECT_THAT(log_.lines[0], HasSubstr(*files.begin()));
  std::ifstream file(folder_.path() + "/" + *files.begin());
  EXPECT_TRUE(nlohmann::json::parse(file, nullptr, false).is_object());
}

TEST_F(TracesTest, DeviceThatHangsAllTheTimeWritesOnceInAWhile) {
  Make(folder_.path());
  for (int i = 0; i < 50; ++i) {
    traces_->WriteFile("a job hangs");
    Advance(base::kSecond / 10);
    RunLoops();
  }
  EXPECT_EQ(log_.lines.size(), 1U);
}

TEST_F(TracesTest, OnlyTheLastFewFilesAreKeptAndOthersAreNotTouched) {
  for (const char* name :
       {"trace-20200101-000000.json", "trace-20200102-000000.json",
        "trace-20200103-000000.json", "trace-20200104-000000.json",
        "trace-20200105-000000.json", "notes.json"}) {
    std::ofstream(folder_.path() + "/" + name) << "{}";
  }
  Make(folder_.path());
  traces_->WriteFile("a job hangs");
  RunLoops();

  const std::set<std::string> files = FilesIn(folder_.path());
  EXPECT_EQ(files.size(), 5U);
  EXPECT_TRUE(files.contains("notes.json"));
  EXPECT_FALSE(files.contains("trace-20200102-000000.json"));
  EXPECT_TRUE(files.contains("trace-20200103-000000.json"));
}

TEST_F(TracesTest, FolderThatCannotBeWrittenIsALineInTheLog) {
  Make(folder_.path() + "/none");
  traces_->WriteFile("a job hangs");
  RunLoops();

  ASSERT_EQ(log_.lines.size(), 1U);
  EXPECT_THAT(log_.lines[0], HasSubstr("could not be written"));
  EXPECT_THAT(log_.lines[0], HasSubstr("No such file"));
}

TEST_F(TracesTest, FullDiskLeavesNothingBehind) {
  Make(folder_.path());
  traces_->WriteFile("a job hangs");
  // Files may have no byte from here on: writing fails as on a full disk.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  RunLoops();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);

  ASSERT_EQ(log_.lines.size(), 1U);
  EXPECT_THAT(log_.lines[0], HasSubstr("could not be written"));
  EXPECT_TRUE(FilesIn(folder_.path()).empty());
}

}  // namespace
}  // namespace rknnd::core
