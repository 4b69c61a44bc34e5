// Loads and unloads, one after the other:
//
//   waiting --> listed --> [ read --> kept ] for each version --> answered
//                 the reader's thread: read; daemon/core: kept
//
// and a table of what came of it, which inferences read on any thread. What the
// folder holds at the start is loaded behind what clients ask for.

#include "daemon/transport/grpc/inference/repository.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/transport/grpc/inference/repository_config.h"

namespace rknnd::transport {
namespace {

// Of all clients: each may hold a message with a model.
constexpr size_t kWaiting = 64;
// The largest models compile for tens of seconds, and others may come first.
constexpr base::Nanoseconds kAnswerWithin = 120 * base::kSecond;

absl::Status Stopped() {
  return absl::UnavailableError("the server stops and loads nothing more");
}

}  // namespace

// A load or an unload on its way.
struct Repository::Work {
  enum class Kind { kLoad, kUnload };
  Kind kind = Kind::kLoad;
  bool initial = false;  // nobody waits for it
  LoadRequest request;
  Done done;  // null: answered
  base::EventLoop::TimerId timer = 0;
  // What is to be loaded; with its bytes, where the client sent them.
  std::vector<std::pair<std::string, std::optional<core::ModelUpload>>>
      versions;
  size_t next = 0;
  bool new_name = false;
  absl::Status failed;  // the first
};

absl::StatusOr<std::unique_ptr<Repository>> Repository::Create(
    const GrpcOptions& options, const GrpcEnvironment& environment) {
  // Its constructor is private.
  std::unique_ptr<Repository> repository(new Repository(options, environment));
  RKNND_RETURN_IF_ERROR(repository->Start());
  return repository;
}

Repository::Repository(const GrpcOptions& options,
                       const GrpcEnvironment& environment)
    : options_(options),
      environment_(environment),
      reader_("rknnd-models"),
      self_(std::make_shared<Repository*>(this)) {}

absl::Status Repository::Start() {
  RKNND_ASSIGN_OR_RETURN(session_,
                         RepositorySession::Open(environment_.service));
  settled_ = options_.model_repository.empty();
  if (!settled_) {
    RKNND_ASSIGN_OR_RETURN(
        folder_,
        RepositoryFolder::Open(options_.model_repository,
                               environment_.limits.model_bytes, &stopping_));
  }
  reader_.Start();
  if (folder_ == nullptr) return absl::OkStatus();
  listing_ = true;
  ReadThen([this] { return folder_->Names(); },
           [this](auto names) { OnNames(std::move(names)); });
  return absl::OkStatus();
}

template <class Read, class Use>
void Repository::ReadThen(Read read, Use use) {
  reader_.Post([loop = environment_.loop, read = std::move(read),
                use = std::move(use),
                weak = std::weak_ptr<Repository*>(self_)] {
    // Copyable, as tasks are.
    auto result = std::make_shared<decltype(read())>(read());
    loop->Post([use, weak, result] {
      const auto self = weak.lock();
      if (self != nullptr && !(*self)->stopping_) use(std::move(*result));
    });
  });
}

// ---- what is asked ----------------------------------------------------------

absl::Status Repository::Check(const LoadRequest& request) const {
  RKNND_RETURN_IF_ERROR(CheckModelName(request.name));
  const std::string& path = options_.model_repository;
  if (request.repository.empty()) return absl::OkStatus();
  const auto folder = std::filesystem::path(path).lexically_normal();
  if (!path.empty() && (request.repository == path ||
                        request.repository == folder.filename().string())) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("no model repository '", Printable(request.repository),
                   "' is served here: leave the repository's name empty"));
}

void Repository::Load(LoadRequest request, Done done) {
  auto work = std::make_shared<Work>();
  work->request = std::move(request);
  work->done = std::move(done);
  Enqueue(std::move(work));
}

void Repository::Unload(const std::string& repository, const std::string& name,
                        Done done) {
  auto work = std::make_shared<Work>();
  work->kind = Work::Kind::kUnload;
  work->request.repository = repository;
  work->request.name = name;
  work->done = std::move(done);
  Enqueue(std::move(work));
}

void Repository::Enqueue(WorkPtr work) {
  if (auto wrong = Check(work->request); !wrong.ok()) return work->done(wrong);
  {
    const base::MutexLock lock(mutex_);
    if (!stopped_) {
      environment_.loop->Post([work, weak = std::weak_ptr<Repository*>(self_)] {
        const auto self = weak.lock();
        if (self == nullptr || (*self)->stopping_) {
          return work->done(Stopped());
        }
        Repository& repository = **self;
        if (repository.waiting_.size() >= kWaiting) {
          return work->done(absl::ResourceExhaustedError(absl::StrCat(
              kWaiting, " models wait to be loaded already: try later")));
        }
        work->timer =
            repository.environment_.loop->RunAfter(kAnswerWithin, [weak, work] {
              work->timer = 0;
              const auto still = weak.lock();
              if (still == nullptr) return;
              (*still)->Answer(
                  *work, absl::DeadlineExceededError(absl::StrCat(
                             "model '", work->request.name,
                             "' is still being loaded, or waits for others; "
                             "RepositoryIndex says when it is ready")));
            });
        repository.waiting_.push_back(work);
        repository.Begin();
      });
      return;
    }
  }
  work->done(Stopped());
}

// ---- one after the other ----------------------------------------------------

void Repository::OnNames(absl::StatusOr<std::vector<std::string>> names) {
  listing_ = false;
  if (names.ok()) {
    initial_.assign(names->begin(), names->end());
    for (const std::string& name : *names) table_.Add(name).IgnoreError();
  } else {
    environment_.log->Write(
        Severity::kError,
        absl::StrCat("model repository '", options_.model_repository,
                     "': ", names.status().ToString()));
  }
  Begin();
}

void Repository::Begin() {
  if (work_ != nullptr || listing_) return;
  if (!waiting_.empty()) {
    work_ = std::move(waiting_.front());
    waiting_.pop_front();
  } else if (!initial_.empty()) {
    work_ = std::make_shared<Work>();
    work_->initial = true;
    work_->request.name = std::move(initial_.front());
    initial_.pop_front();
  } else {
    settled_ = true;
    return;
  }
  if (work_->kind == Work::Kind::kUnload) return DoUnload();
  auto policy = ParseModelConfig(work_->request.name, work_->request.config);
  if (!policy.ok()) return Finish(policy.status());
  if (work_->request.files.empty() && folder_ == nullptr) {
    return Finish(absl::NotFoundError(absl::StrCat(
        "model '", work_->request.name,
        "': this daemon serves no folder (--model-repository); send the file "
        "with the request, as the parameter 'file:1/model.onnx'")));
  }
  // The work is the reader's until it posts back.
  ReadThen(
      [folder = folder_.get(), work = work_,
       policy = *std::move(policy)]() -> absl::Status {
        const LoadRequest& request = work->request;
        std::vector<std::string> there;
        std::map<std::string, core::ModelUpload> packed;
        if (request.files.empty()) {
          RKNND_ASSIGN_OR_RETURN(there, folder->Versions(request.name));
        } else {
          RKNND_ASSIGN_OR_RETURN(auto files,
                                 PackModelFiles(request.name, request.files));
          for (auto& [version, upload] : files) {
            there.push_back(version);
            packed[version] = std::move(upload);
          }
        }
        RKNND_ASSIGN_OR_RETURN(there, policy.Choose(there));
        for (const std::string& version : there) {
          const auto sent = packed.find(version);
          work->versions.emplace_back(version, std::nullopt);
          if (sent == packed.end()) continue;
          work->versions.back().second = std::move(sent->second);
        }
        return absl::OkStatus();
      },
      [this](absl::Status status) { Listed(std::move(status)); });
}

void Repository::Listed(absl::Status status) {
  const std::string& name = work_->request.name;
  if (status.ok()) {
    const auto is_new = table_.Begin(name, Versions());
    if (is_new.ok()) {
      work_->new_name = *is_new;
      return NextVersion();
    }
    status = is_new.status();
  }
  if (work_->initial) {
    Note(Severity::kWarning, "", status.ToString());
    table_.Fail(name, status);
  }
  Finish(status);
}

void Repository::NextVersion() {
  if (work_->next == work_->versions.size()) {
    // As long as one of them is wanting the others are better than nothing.
    if (work_->failed.ok()) {
      LetGo(table_.DropOthers(work_->request.name, Versions()));
    }
    return Finish(work_->failed);
  }
  if (auto& sent = work_->versions[work_->next].second; sent.has_value()) {
    return OnRead(std::move(*sent));
  }
  ReadThen([folder = folder_.get(), name = work_->request.name,
            version = version()] { return folder->Read(name, version); },
           [this](auto upload) { OnRead(std::move(upload)); });
}

void Repository::OnRead(absl::StatusOr<core::ModelUpload> upload) {
  if (!upload.ok()) return OnVersionFailed(upload.status());
  const core::ModelId id = upload->id;
  if (table_.StillServes(work_->request.name, version(), id)) {
    ++work_->next;
    return NextVersion();
  }
  session_->Keep(*std::move(upload),
                 [this, id](auto context) { OnKept(id, std::move(context)); });
}

void Repository::OnKept(const core::ModelId& id,
                        absl::StatusOr<uint32_t> context) {
  if (!context.ok()) return OnVersionFailed(context.status());
  const uint32_t before =
      table_.Serve(work_->request.name, version(), id, *context,
                   /*of_client=*/!work_->request.files.empty());
  if (before != 0) session_->LetGo(before);
  Note(Severity::kInfo, version(), "is served");
  ++work_->next;
  NextVersion();
}

void Repository::OnVersionFailed(const absl::Status& why) {
  Note(Severity::kWarning, version(), why.ToString());
  work_->failed.Update(why);
  table_.Fail(work_->request.name, version(), why);
  ++work_->next;
  NextVersion();
}

void Repository::DoUnload() {
  const auto contexts = table_.Unload(work_->request.name);
  if (!contexts.has_value()) {
    return Finish(absl::NotFoundError(absl::StrCat(
        "model '", work_->request.name, "' is not one of the repository's")));
  }
  LetGo(*contexts);
  Note(Severity::kInfo, "", "is unloaded");
  Finish(absl::OkStatus());
}

void Repository::LetGo(const std::vector<uint32_t>& contexts) {
  for (const uint32_t context : contexts) session_->LetGo(context);
}

void Repository::Finish(const absl::Status& status) {
  const WorkPtr work = std::exchange(work_, nullptr);
  if (status.ok()) {
    // What was asked for stands, whatever the folder would give.
    std::erase(initial_, work->request.name);
  } else if (work->new_name && !work->request.files.empty()) {
    // A client's bytes that are of no use leave no name behind.
    table_.ForgetUnserved(work->request.name);
  }
  Answer(*work, status);
  Begin();
}

void Repository::Answer(Work& work, const absl::Status& status) {
  if (work.timer != 0) environment_.loop->CancelTimer(work.timer);
  work.timer = 0;
  if (const Done done = std::exchange(work.done, nullptr); done != nullptr) {
    done(status);
  }
}

const std::string& Repository::version() const {
  return work_->versions[work_->next].first;
}

std::vector<std::string> Repository::Versions() const {
  std::vector<std::string> versions;
  for (const auto& [version, upload] : work_->versions) {
    versions.push_back(version);
  }
  return versions;
}

void Repository::Note(Severity severity, const std::string& version,
                      const std::string& what) const {
  const std::string line =
      absl::StrCat("model '", work_->request.name, "'",
                   version.empty() ? "" : absl::StrCat(" version ", version),
                   severity == Severity::kInfo ? " " : ": ", what);
  // At the start each has its line; from then on clients say how many.
  if (settled()) {
    lines_.Note(line, {}, severity);
  } else {
    environment_.log->Write(severity, line);
  }
}

void Repository::Stop() {
  {
    const base::MutexLock lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
  }
  stopping_ = true;
  reader_.Stop();
  session_ = nullptr;
  if (work_ != nullptr) Answer(*work_, Stopped());
  for (const WorkPtr& work : std::exchange(waiting_, {})) {
    Answer(*work, Stopped());
  }
}

}  // namespace rknnd::transport
