// Programs that read the same memory, for tests of one run for many readers.

#ifndef DAEMON_CORE_TESTING_SHARED_RUNS_FIXTURE_H_
#define DAEMON_CORE_TESTING_SHARED_RUNS_FIXTURE_H_

#include <string>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "daemon/core/running/shared_runs.h"
#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core::testing {

inline constexpr uint64_t kBytes = 4096;  // of each buffer
inline constexpr uint64_t kFrame = 7;
inline constexpr char kModel[] = "bytes=8 weight=100";

inline base::Mapping Map(const base::UniqueFd& fd) {
  return *base::Mapping::OfFd(fd.get(), 0, kBytes,
                              base::Mapping::Access::kReadWrite);
}

// A program with one context, whose input is memory that others have too.
struct Reader {
  TestSession session;
  base::Mapping output;

  [[nodiscard]] int answer() const {
    return std::to_integer<int>(output.data()[0]);
  }
  [[nodiscard]] std::vector<JobCompletion> completions() const {
    return session.sink->all();
  }
  [[nodiscard]] absl::Status last() const {
    return completions().empty() ? absl::UnknownError("no answer")
                                 : completions().back().status;
  }
};

class SharedRunsFixture : public CoreTest {
 protected:
  SharedRunsFixture()
      : camera_(*base::MakeMemfd("camera", kBytes)), frame_(Map(camera_)) {
    frame_.data()[0] = std::byte{41};
  }

  Reader MakeReader(int32_t pid, const std::string& model = kModel,
                    uint32_t uid = 1000, uint32_t flags = 0) {
    Reader reader{Open(pid, uid), {}};
    MakeReady(reader.session, 1, model, flags);
    Import(reader, camera_);
    auto output = AllocateNow(reader.session, 9, kBytes, 0);
    EXPECT_TRUE(output.ok()) << output.status();
    reader.output = Map(output->fd);
    EXPECT_TRUE(reader.session
                    ->Bind(BindTo(1, driver::Direction::kOutput, 0, 9, kBytes))
                    .ok());
    return reader;
  }
  void Import(const Reader& reader, const base::UniqueFd& memory,
              uint32_t buffer = 8, uint64_t offset = 0) {
    ASSERT_TRUE(
        ImportNow(reader.session, buffer, *base::Duplicate(memory.get()), 0)
            .ok());
    BindRequest request =
        BindTo(1, driver::Direction::kInput, 0, buffer, kBytes - offset);
    request.offset = offset;
    ASSERT_TRUE(reader.session->Bind(request).ok());
  }
  static JobSubmission Shared(uint64_t frame = kFrame, uint32_t slot = 0) {
    JobSubmission submission;
    submission.context = 1;
    submission.slot = slot;
    submission.sequence = slot + 1;
    submission.frame = frame;
    submission.shared = true;
    return submission;
  }
  static void Ask(const Reader& reader,
                  const JobSubmission& submission = Shared()) {
    ASSERT_TRUE(reader.session->gate()->Submit(submission).ok());
  }
  [[nodiscard]] size_t runs() const { return device.runs().size(); }
  // What the daemon holds for answers: nothing else here has such memory.
  [[nodiscard]] uint64_t room() const { return memory().internal; }
  // Bytes that a buffer can still be made of.
  [[nodiscard]] uint64_t FreePages() const {
    const MemoryReport memory = service->Memory();
    return (memory.budget - memory.budget_used) / 4096 * 4096;
  }
  // Both ask while nobody runs; the number of runs it took.
  size_t RunsOf(const Reader& first, const Reader& second,
                const JobSubmission& one = Shared(),
                const JobSubmission& other = Shared()) {
    Ask(first, one);
    Ask(second, other);
    RunReady();
    EXPECT_EQ(first.last(), absl::OkStatus());
    EXPECT_EQ(second.last(), absl::OkStatus());
    return runs();
  }

  const base::UniqueFd camera_;
  const base::Mapping frame_;
};

}  // namespace rknnd::core::testing

#endif  // DAEMON_CORE_TESTING_SHARED_RUNS_FIXTURE_H_
