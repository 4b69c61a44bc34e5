#include "daemon/core/reports/traces.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"
#include "daemon/core/reports/trace_text.h"
#include "daemon/core/terms/options.h"

namespace rknnd::core {
namespace {

// A timeline of all records takes a tenth of a second to make: others' memory
// waits for the pager no longer than that, and a third of its time at most.
constexpr base::Nanoseconds kPause = 200 * base::kMillisecond;
// Those who wait get theirs within the 10 s that rknnctl waits.
constexpr size_t kMostWaiting = 24;

// A device that hangs does so again and again: the first file tells it.
constexpr base::Nanoseconds kFilePause = 10 * base::kSecond;
constexpr size_t kKeptFiles = 4;  // of at most some 20 MB
constexpr char kPrefix[] = "trace-";
constexpr char kSuffix[] = ".json";
constexpr char kUnfinished[] = ".trace-unfinished";

TraceSource Look(const Traces::Parts& parts, base::Nanoseconds since) {
  TraceSource source;
  source.jobs = parts.recorder->Read();
  // Behind the jobs, so that each of them has its name.
  source.names = parts.recorder->names();
  source.taken = parts.clock->Now();
  source.cores = parts.cores;
  source.device = parts.device;
  CutTrace(since, &source.jobs);
  return source;
}

absl::StatusOr<Traces::Trace> MakeTrace(const Traces::Parts& parts,
                                        base::Nanoseconds since) {
  const TraceSource source = Look(parts, since);
  Traces::Trace trace;
  RKNND_ASSIGN_OR_RETURN(
      trace.text, base::ToStatusOr(base::MakeGrowingMemfd("rknnd-trace")));
  RKNND_RETURN_IF_ERROR(
      WriteTrace(source, [&trace](std::string_view text) -> absl::Status {
        trace.size += text.size();
        return base::ToStatus(base::AppendToMemfd(
            trace.text.get(), std::as_bytes(std::span(text))));
      }));
  RKNND_RETURN_IF_ERROR(base::ToStatus(base::SealMemfd(trace.text.get())));
  trace.jobs = source.jobs.jobs.size() + source.jobs.running.size();
  trace.lost = source.jobs.lost;
  return trace;
}

absl::Status WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return base::ToStatus(base::ErrnoError(errno, "write"));
    text.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// "20261120-221501": when the file was written last, as its file system says.
std::string TimeOf(int fd) {
  struct stat status {};
  tm time{};
  if (fstat(fd, &status) != 0 ||
      gmtime_r(&status.st_mtim.tv_sec, &time) == nullptr) {
    return "0";
  }
  char text[32];
  strftime(text, sizeof text, "%Y%m%d-%H%M%S", &time);
  return text;
}

// All but the youngest, whose names are the greatest.
void RemoveOldFiles(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const open = opendir(folder.c_str());
  if (open == nullptr) return;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): safe on a stream of our own
  while (const dirent* entry = readdir(open)) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) {
      names.emplace_back(name);
    }
  }
  closedir(open);
  std::sort(names.begin(), names.end());
  for (size_t i = 0; i + kKeptFiles < names.size(); ++i) {
    unlink(absl::StrCat(folder, "/", names[i]).c_str());
  }
}

// The path of the file.
absl::StatusOr<std::string> MakeFile(const Traces::Parts& parts) {
  const TraceSource source = Look(parts, 0);
  const std::string unfinished = absl::StrCat(parts.folder, "/", kUnfinished);
  const base::UniqueFd file(
      open(unfinished.c_str(),
           O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) {
    return base::ToStatus(
        base::ErrnoError(errno, absl::StrCat("open '", unfinished, "'")));
  }
  absl::Status status = WriteTrace(source, [&file](std::string_view text) {
    return WriteAll(file.get(), text);
  });
  std::string path =
      absl::StrCat(parts.folder, "/", kPrefix, TimeOf(file.get()), kSuffix);
  if (status.ok() && rename(unfinished.c_str(), path.c_str()) != 0) {
    status = base::ToStatus(base::ErrnoError(errno, "rename"));
  }
  if (!status.ok()) {
    unlink(unfinished.c_str());
    return status;
  }
  RemoveOldFiles(parts.folder);
  return path;
}

}  // namespace

std::shared_ptr<Traces> Traces::Create(Parts parts) {
  return std::shared_ptr<Traces>(new Traces(std::move(parts)));
}

void Traces::Take(base::Nanoseconds since, Callback done) {
  if (waiting_.size() >= kMostWaiting) {
    return done(absl::ResourceExhaustedError(
        absl::StrCat("a trace: ", waiting_.size(),
                     " others wait for one already, try again")));
  }
  waiting_.push_back({since, std::move(done)});
  TakeNext();
}

void Traces::TakeNext() {
  if (busy_ || waiting_.empty()) return;
  busy_ = true;
  Request request = std::move(waiting_.front());
  waiting_.pop_front();
  parts_.pager->Post(
      [weak = weak_from_this(), parts = parts_, request = std::move(request)] {
        // Executors copy their tasks.
        auto made = std::make_shared<absl::StatusOr<Trace>>(
            MakeTrace(parts, request.since));
        parts.loop->Post([weak, made, done = request.done] {
          const auto self = weak.lock();
          if (self == nullptr || !self->busy_) return;
          self->pause_ = self->parts_.timers->RunAfter(kPause, [weak] {
            const auto rested = weak.lock();
            if (rested == nullptr) return;
            rested->pause_ = 0;
            rested->busy_ = false;
            rested->TakeNext();
          });
          done(std::move(*made));
        });
      });
}

void Traces::WriteFile(const std::string& why) {
  const base::Nanoseconds now = parts_.clock->Now();
  if (parts_.folder.empty() || (has_written_ && now - written_ < kFilePause)) {
    return;
  }
  has_written_ = true;
  written_ = now;
  parts_.pager->Post([weak = weak_from_this(), parts = parts_, why] {
    const auto path = MakeFile(parts);
    // As text: a Status shared by two threads counts its users inside a library
    // that the thread sanitizer cannot see into.
    const std::string line =
        path.ok()
            ? absl::StrCat(why, ": the timeline is in '", *path, "'")
            : absl::StrCat(why, ": its timeline could not be written to '",
                           parts.folder,
                           "': ", std::string(path.status().message()));
    parts.loop->Post([weak, line] {
      const auto self = weak.lock();
      if (self == nullptr || self->parts_.log == nullptr) return;
      self->parts_.log->Log(1, line);
    });
  });
}

void Traces::Stop() {
  if (pause_ != 0) parts_.timers->Cancel(pause_);
  pause_ = 0;
  busy_ = false;
  waiting_.clear();
}

}  // namespace rknnd::core
