// Each core gets a session of its own: what a core that hangs keeps goes when
// it answers, and the next one does not wait for it.

#include "daemon/board/self_test.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"
#include "base/values/sha256.h"
#include "daemon/board/test_model.h"

namespace rknnd::board {
namespace {

using transport::Finding;
using transport::OwnSession;
using Level = Finding::Level;

constexpr char kName[] = "rknnd self-test";
constexpr uint32_t kLowPriority = static_cast<uint32_t>(core::Priority::kLow);

core::SessionPeer Self() {
  core::SessionPeer peer;
  peer.pid = getpid();
  peer.uid = getuid();
  peer.groups = {getgid()};
  peer.comm = kName;
  return peer;
}

}  // namespace

SelfTest::SelfTest(const OwnSession::Parts& parts, core::TimerQueue* timers,
                   std::function<void(Findings)> done)
    : parts_(parts), timers_(timers), done_(std::move(done)) {}

SelfTest::~SelfTest() {
  if (timer_ != 0) timers_->Cancel(timer_);
}

void SelfTest::Start() {
  // Later, as all answers.
  parts_.loop->Post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self != nullptr) self->NextCore();
  });
}

void SelfTest::NextCore() {
  if (timer_ != 0) timers_->Cancel(std::exchange(timer_, 0));
  const core::StatusReport status = parts_.service->Status();
  if (core_ == status.cores.size()) return End();
  const uint32_t core = core_++;
  if (const std::string& lent = status.cores[core].lent_to; !lent.empty()) {
    Note(core, Level::kNote,
         absl::StrCat("is lent to '", lent, "', and was not tested"),
         "ask again when that has ended");
    return NextCore();
  }
  jobs_before_ = status.cores[core].jobs;
  RunOn(core);
}

void SelfTest::RunOn(uint32_t core) {
  auto opened = OwnSession::Open(parts_, Self());
  if (!opened.ok()) return Skip(opened.status());
  session_ = *std::move(opened);
  timer_ = timers_->RunAfter(kPatience, [weak = weak_from_this(), core] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->timer_ = 0;
    self->OnFailure(core, absl::DeadlineExceededError("no answer"), true);
  });
  const std::vector<std::byte> bytes = TestModel();
  auto file = base::MakeImmutableMemfd("rknnd-self-test", bytes);
  if (!file.ok()) return Skip(base::ToStatus(file.error()));
  const core::ModelId model = base::Sha256Of(bytes);
  core::ModelUpload upload;
  upload.id = model;
  upload.name = kName;
  upload.bytes = *std::move(file);
  // For each core: a model without contexts may go at once.
  session_->session().UploadModel(
      std::move(upload), [weak = weak_from_this(), loop = parts_.loop, core,
                          model](absl::Status status) {
        loop->Post([weak, core, model, status = std::move(status)] {
          const auto self = weak.lock();
          if (self != nullptr) self->OnLoaded(core, model, status);
        });
      });
}

void SelfTest::OnLoaded(uint32_t core, const core::ModelId& model,
                        const absl::Status& status) {
  // A core that came late is not what is tested any more.
  if (core + 1 != core_ || session_ == nullptr) return;
  if (!status.ok()) return Skip(status);
  core::ContextRequest request;
  request.model = model;
  request.flags = kLowPriority;
  // A device with one core may know of no masks.
  if (parts_.service->device_info().cores > 1) {
    request.core_mask = uint32_t{1} << core;
  }
  session_->Prepare(request, /*real_numbers=*/true,
                    [weak = weak_from_this(), core](const absl::Status& ready) {
                      const auto self = weak.lock();
                      if (self != nullptr) self->OnPrepared(core, ready);
                    });
}

void SelfTest::OnPrepared(uint32_t core, const absl::Status& status) {
  if (!status.ok()) return Skip(status);
  const driver::ProgramInfo& program = session_->program();
  FillTestInput(program.inputs[0], core, session_->input(0));
  session_->Run(kTurn, [weak = weak_from_this(),
                        core](const core::JobCompletion& completion) {
    const auto self = weak.lock();
    if (self != nullptr) self->OnAnswer(core, completion);
  });
}

void SelfTest::OnAnswer(uint32_t core, const core::JobCompletion& completion) {
  if (!completion.status.ok()) {
    return OnFailure(core, completion.status, completion.run > 0);
  }
  const size_t wrong =
      CountWrong(session_->program().outputs[0], core, session_->output(0));
  if (wrong == 0) {
    Note(core, Level::kOk,
         absl::StrCat("answers rightly, in ",
                      completion.run / base::kMicrosecond, " us"),
         "");
  } else {
    Note(core, Level::kError,
         absl::StrCat("gives a wrong answer: ", wrong,
                      " numbers of the self-test's differ"),
         "do not use it ('rknnctl lease --cores' keeps jobs off): check the "
         "NPU's clock and voltage, an overclock first of all");
  }
  NextCore();
}

void SelfTest::OnFailure(uint32_t core, const absl::Status& status,
                         bool begun) {
  const core::StatusReport report = parts_.service->Status();
  const core::CoreReport& now = report.cores[core];
  const std::string why(status.message());
  if (absl::IsDeadlineExceeded(status) && !begun) {
    if (now.jobs == jobs_before_) {
      Note(core, Level::kError,
           absl::StrCat("has been busy for ", kTurn / base::kSecond,
                        " s with one job of model '", now.model, "' (session ",
                        now.session, "): it hangs"),
           "'rknnctl sessions' shows whose it is; 'rknnctl reset' gets the "
           "core back, and jobs of others run again");
    } else {
      Note(core, Level::kNote,
           absl::StrCat("had no time for the self-test within ",
                        kTurn / base::kSecond, " s: it is busy"),
           "ask again when there is less to do");
    }
  } else if (absl::IsDeadlineExceeded(status)) {
    Note(core, Level::kError,
         absl::StrCat("does not answer: the self-test's job hangs (", why, ")"),
         "'rknnctl reset'; if it comes again, update the driver to 0.9.6 or "
         "later, or boot the vendor's 5.10 kernel");
  } else {
    Note(core, Level::kError, absl::StrCat("fails the self-test: ", why),
         "update the driver to 0.9.6 or later, or boot the vendor's 5.10 "
         "kernel; 'rknnctl lease --cores' keeps jobs off the core until then");
  }
  NextCore();
}

void SelfTest::Skip(const absl::Status& status) {
  findings_.push_back(
      {"self-test", Level::kNote,
       absl::StrCat("the cores could not be tested: ",
                    std::string(status.message())),
       absl::IsUnavailable(status) || absl::IsResourceExhausted(status)
           ? "ask again when the daemon has room"
           : ""});
  End();
}

void SelfTest::Note(uint32_t core, Level level, std::string text,
                    std::string remedy) {
  findings_.push_back({absl::StrCat("core-", core), level,
                       absl::StrCat("core ", core, " ", std::move(text)),
                       std::move(remedy)});
}

void SelfTest::End() {
  if (timer_ != 0) timers_->Cancel(std::exchange(timer_, 0));
  session_.reset();
  if (done_ != nullptr) std::exchange(done_, nullptr)(std::move(findings_));
}

}  // namespace rknnd::board
