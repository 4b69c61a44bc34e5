// What the tests of daemon/core have in common.

#include "daemon/core/testing/core_fixture.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/posix/memfd.h"
#include "daemon/core/models/model_cache.h"

namespace rknnd::core::testing {
namespace {

driver::Heaps MemfdHeaps() {
  std::vector<std::unique_ptr<driver::Heap>> heaps;
  heaps.push_back(driver::MakeMemfdHeap());
  return driver::Heaps(std::move(heaps));
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

void ManualExecutor::Post(std::function<void()> task) {
  base::MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
}

bool ManualExecutor::RunOne() {
  std::function<void()> task;
  {
    base::MutexLock lock(mutex_);
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  task();
  return true;
}

uint64_t ManualTimers::RunAfter(base::Nanoseconds delay,
                                std::function<void()> task) {
  tasks_[next_] = {clock_->Now() + delay, std::move(task)};
  return next_++;
}

void ManualTimers::RunDue() {
  std::vector<uint64_t> due;
  for (const auto& [timer, task] : tasks_) {
    if (task.due <= clock_->Now()) due.push_back(timer);
  }
  for (const uint64_t timer : due) {
    const auto found = tasks_.find(timer);
    if (found == tasks_.end()) continue;
    const auto run = std::move(found->second.run);
    tasks_.erase(found);
    run();
  }
}

void RecordingSink::Complete(const JobCompletion& completion) {
  base::MutexLock lock(mutex_);
  completions_.push_back(completion);
}

void RecordingSink::Begin(uint32_t slot, uint32_t sequence) {
  base::MutexLock lock(mutex_);
  begun_.emplace_back(slot, sequence);
}

std::vector<std::pair<uint32_t, uint32_t>> RecordingSink::begun() const {
  base::MutexLock lock(mutex_);
  return begun_;
}

std::vector<JobCompletion> RecordingSink::all() const {
  base::MutexLock lock(mutex_);
  return completions_;
}

JobCompletion RecordingSink::last() const {
  base::MutexLock lock(mutex_);
  return completions_.empty() ? JobCompletion{} : completions_.back();
}

CoreTest::CoreTest(uint32_t cores)
    : device(cores, &clock), heaps(MemfdHeaps()), timers(&clock) {
  options.device = &device;
  options.heaps = &heaps;
  options.clock = &clock;
  options.loop = &loop;
  options.loader = &loader;
  options.quick_loader = &quick_loader;
  options.pager = &pager;
  options.timers = &timers;
  options.waker = &waker;
  // Limits are what they say, to the byte.
  options.kept_free = 0;
  StartService();
}

CoreTest::~CoreTest() {
  device.HoldJobs(false);
  while (device.Release()) {
  }
  StopService();
  EXPECT_EQ(device.violations(), 0U);
}

void CoreTest::StartService() {
  StopService();
  auto created = Service::Create(options);
  ASSERT_TRUE(created.ok()) << created.status();
  service = *std::move(created);
}

void CoreTest::StopService() {
  service.reset();
  RunLoops();
}

TestSession CoreTest::Open(int32_t pid, uint32_t uid) {
  TestSession opened{nullptr, std::make_shared<RecordingSink>(),
                     std::make_shared<RecordingLog>()};
  auto session = service->OpenSession({pid, uid, {}, "cam", false}, opened.sink,
                                      opened.log);
  EXPECT_TRUE(session.ok()) << session.status();
  if (session.ok()) opened.session = *std::move(session);
  return opened;
}

void CoreTest::RunLoops() {
  while (loop.RunOne() || quick_loader.RunOne() || loader.RunOne() ||
         pager.RunOne()) {
  }
}

void CoreTest::Advance(base::Nanoseconds time) {
  clock.Advance(time);
  timers.RunDue();
  RunLoops();
}

void CoreTest::PassTime(base::Nanoseconds time) {
  const base::Nanoseconds end = clock.Now() + time;
  for (;;) {
    const base::Nanoseconds due = waker.alarm;
    if (due > end) break;
    clock.Advance(std::max<base::Nanoseconds>(due - clock.Now(), 0));
    waker.alarm = kNever;
    service->runner().Expire();
    service->runner().RunReady();
  }
  Advance(end - clock.Now());
}

absl::StatusOr<BufferInfo> CoreTest::AllocateNow(const TestSession& session,
                                                 uint32_t buffer, uint64_t size,
                                                 uint32_t flags) {
  absl::StatusOr<BufferInfo> answer = absl::UnknownError("never answered");
  session->AllocateBuffer(
      buffer, size, flags,
      [&](absl::StatusOr<BufferInfo> made) { answer = std::move(made); });
  RunLoops();
  return answer;
}

absl::StatusOr<BufferInfo> CoreTest::ImportNow(const TestSession& session,
                                               uint32_t buffer,
                                               base::UniqueFd fd,
                                               uint64_t expected_size) {
  absl::StatusOr<BufferInfo> answer = absl::UnknownError("never answered");
  session->ImportBuffer(
      buffer, std::move(fd), expected_size,
      [&](absl::StatusOr<BufferInfo> made) { answer = std::move(made); });
  RunLoops();
  return answer;
}

absl::Status CoreTest::SetCoreMaskNow(const TestSession& session,
                                      uint32_t context, uint32_t core_mask) {
  absl::Status answer = absl::UnknownError("never answered");
  session->SetCoreMask(context, core_mask,
                       [&](absl::Status done) { answer = std::move(done); });
  RunLoops();
  return answer;
}

void CoreTest::StartUpload(const TestSession& session,
                           const std::string& claimed, const std::string& sent,
                           std::vector<absl::Status>* answers) {
  auto bytes = base::MakeImmutableMemfd("model", BytesOf(sent));
  ASSERT_TRUE(bytes.ok());
  session->UploadModel(
      {Id(claimed), "m.onnx", "", *std::move(bytes)},
      [answers](const absl::Status& status) { answers->push_back(status); });
}

std::optional<absl::Status> CoreTest::Upload(const TestSession& session,
                                             const std::string& model,
                                             const std::string& text) {
  std::optional<absl::Status> answer;
  auto bytes = base::MakeImmutableMemfd("model", BytesOf(model));
  EXPECT_TRUE(bytes.ok());
  if (!bytes.ok()) return answer;
  session->UploadModel(
      {Id(model, text), "m.onnx", text, *std::move(bytes)},
      [&answer](const absl::Status& status) { answer = status; });
  RunLoops();
  return answer;
}

void CoreTest::StartCreate(const TestSession& session, uint32_t number,
                           const std::string& model,
                           std::vector<absl::Status>* answers) {
  ContextRequest request;
  request.number = number;
  request.model = Id(model);
  session->CreateContext(
      request, [answers](const absl::StatusOr<const driver::ModelInfo*>& info) {
        answers->push_back(info.status());
      });
}

std::optional<absl::Status> CoreTest::Create(const TestSession& session,
                                             uint32_t number,
                                             const std::string& model,
                                             uint32_t flags,
                                             uint32_t core_mask) {
  std::optional<absl::Status> answer;
  ContextRequest request;
  request.number = number;
  request.model = Id(model);
  request.flags = flags;
  request.core_mask = core_mask;
  session->CreateContext(
      request, [&answer](const absl::StatusOr<const driver::ModelInfo*>& info) {
        answer = info.status();
      });
  RunLoops();
  return answer;
}

void CoreTest::MakeReady(const TestSession& session, uint32_t number,
                         const std::string& model, uint32_t flags,
                         uint32_t core_mask) {
  std::optional<absl::Status> created =
      Create(session, number, model, flags, core_mask);
  if (created.has_value() && absl::IsNotFound(*created)) {
    ASSERT_EQ(Upload(session, model), absl::OkStatus());
    created = Create(session, number, model, flags, core_mask);
  }
  ASSERT_EQ(created, absl::OkStatus());
  uint32_t buffer = number * 100;
  for (auto direction :
       {driver::Direction::kInput, driver::Direction::kOutput}) {
    for (uint32_t i = 0;; ++i) {
      auto allocated = AllocateNow(session, buffer, 4096, 0);
      ASSERT_TRUE(allocated.ok()) << allocated.status();
      const absl::Status bound =
          session->Bind(BindTo(number, direction, i, buffer, 4096));
      if (!bound.ok()) {
        // One past the last tensor.
        ASSERT_TRUE(session->ReleaseBuffer(buffer).ok());
        break;
      }
      ++buffer;
    }
  }
}

absl::Status CoreTest::Submit(const TestSession& session, uint32_t context,
                              uint32_t slot, uint32_t sequence) {
  JobSubmission submission;
  submission.context = context;
  submission.slot = slot;
  submission.sequence = sequence;
  submission.frame = 1000 + sequence;
  return session->gate()->Submit(submission);
}

ModelId CoreTest::Id(const std::string& model, const std::string& options) {
  return IdOf(BytesOf(model), options);
}

BindRequest CoreTest::BindTo(uint32_t context, driver::Direction direction,
                             uint32_t index, uint32_t buffer, uint64_t size) {
  BindRequest request;
  request.context = context;
  request.direction = direction;
  request.index = index;
  request.buffer = buffer;
  request.size = size;
  request.format.type = driver::TensorType::kUint8;
  request.format.layout = driver::TensorLayout::kNhwc;
  return request;
}

size_t CoreTest::OpenFds() {
  size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    (void)entry;
    ++count;
  }
  return count;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = ::testing::TempDir() + "rknnd-core-XXXXXX";
  path_ = mkdtemp(pattern.data()) == nullptr ? "" : pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace rknnd::core::testing
