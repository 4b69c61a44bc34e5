// See the header. The format's description is public ("Trace Event Format");
// times in it are microseconds, here with the nanoseconds behind the point.

#include "daemon/core/reports/trace_text.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rknnd::core {
namespace {

using base::Nanoseconds;

// Numbers that no process and no thread of Linux has (2^22 is the most): those
// of ours never meet a client's.
constexpr uint64_t kNpuProcess = uint64_t{1} << 23;
constexpr uint64_t kStrangers = kNpuProcess + 1;  // of other namespaces
constexpr uint64_t kFirstThread = 10'000'000;

// Larger integers are not exact in every reader of JSON.
constexpr uint64_t kMostExact = uint64_t{1} << 53;

// Written in pieces of so much.
constexpr size_t kPiece = size_t{256} << 10;

// Bytes of the character that `text` begins with; 0: it is no UTF-8.
size_t CharacterSize(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t size = std::countl_one(byte(0));
  if (size < 2 || size > 4 || size > text.size()) return 0;
  uint32_t code = byte(0) & (0x7FU >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return code < kLeast[size] || code > 0x10FFFF || surrogate ? 0 : size;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    const char first = text[0];
    if (size == 0) {
      quoted += '?';
    } else if (first == '"' || first == '\\') {
      quoted += '\\';
      quoted += first;
    } else if (static_cast<uint8_t>(first) < 0x20 || first == 0x7F) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<uint8_t>(first));
    } else {
      quoted.append(text.substr(0, size));
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return quoted + '"';
}

std::string Micros(Nanoseconds time) {
  const Nanoseconds whole = std::max<Nanoseconds>(time, 0);
  return absl::StrFormat("%d.%03d", whole / 1000, whole % 1000);
}

std::string Number(uint64_t value) {
  return value < kMostExact ? absl::StrCat(value)
                            : absl::StrCat("\"", value, "\"");
}

// What has an end and a track that it shares with others.
struct Slice {
  const JobRecord* job = nullptr;
  Nanoseconds begin = 0, end = 0;
};

class Writer {
 public:
  Writer(const TraceSource& source, const TextSink& sink)
      : source_(source), sink_(sink) {}

  absl::Status Write();

 private:
  // A context's track, by whose it is.
  using Track = std::pair<SessionId, uint32_t>;

  void Event(const std::string& fields);
  void Metadata(uint64_t process, uint64_t thread, const char* what,
                const std::string& args);
  void WriteNames();
  void WriteCores();
  void WriteContexts();
  void WriteCounters();
  // What waited, what went wrong.
  void WriteWait(const JobRecord& job, uint64_t id);
  void WriteMoments(const JobRecord& job);
  // Slices of one track, never two at once.
  void WriteSlices(std::vector<Slice> slices, uint64_t process, uint64_t thread,
                   std::string (Writer::*arguments)(const JobRecord&) const);
  void WriteOpen(const JobRecord& job, uint64_t process, uint64_t thread);

  static uint64_t ProcessOf(const JobRecord& job) {
    return job.pid > 0 ? static_cast<uint64_t>(job.pid)
                       : kStrangers + job.session;
  }
  [[nodiscard]] uint64_t ThreadOf(const JobRecord& job) const {
    return threads_.at({job.session, job.context});
  }
  [[nodiscard]] std::string ModelOf(const JobRecord& job) const {
    const auto& models = source_.names.models;
    return job.model < models.size() ? models[job.model] : "?";
  }
  [[nodiscard]] std::string ProgramOf(const JobRecord& job) const {
    const auto found = source_.names.programs.find(job.session);
    return found == source_.names.programs.end() ? "" : found->second;
  }
  // All that is known of a job; and what its context's track needs.
  [[nodiscard]] std::string Arguments(const JobRecord& job) const;
  [[nodiscard]] std::string FrameAndCores(const JobRecord& job) const;

  const TraceSource& source_;
  const TextSink& sink_;
  std::map<Track, uint64_t> threads_;
  std::string text_;
  absl::Status status_;
  bool first_ = true;
};

void Writer::Event(const std::string& fields) {
  absl::StrAppend(&text_, first_ ? "{" : ",\n{", fields, "}");
  first_ = false;
  if (text_.size() < kPiece || !status_.ok()) return;
  status_ = sink_(text_);
  text_.clear();
}

void Writer::Metadata(uint64_t process, uint64_t thread, const char* what,
                      const std::string& args) {
  Event(absl::StrCat(R"("ph":"M","pid":)", process, R"(,"tid":)", thread,
                     R"(,"name":")", what, R"(","args":{)", args, "}"));
}

std::string Writer::Arguments(const JobRecord& job) const {
  std::string args = absl::StrCat(
      R"("program":)", Quoted(ProgramOf(job)), R"(,"pid":)", job.pid,
      R"(,"session":)", Number(job.session), R"(,"context":)", job.context,
      R"(,"frame":)", Number(job.frame));
  if (job.started != 0) {
    absl::StrAppend(&args, R"(,"queue_us":)",
                    Micros(job.started - job.submitted));
  }
  if (job.answered != 0) {
    absl::StrAppend(&args, R"(,"answered_us":)",
                    Micros(job.answered - job.submitted));
    if (job.code != absl::StatusCode::kOk) {
      absl::StrAppend(&args, R"(,"code":")", absl::StatusCodeToString(job.code),
                      "\"");
    }
  }
  if (job.drops != 0) absl::StrAppend(&args, R"(,"drops":)", job.drops);
  return args;
}

std::string Writer::FrameAndCores(const JobRecord& job) const {
  std::string cores;
  for (uint32_t core = 0; core < source_.cores; ++core) {
    if ((job.cores >> core & 1) == 0) continue;
    absl::StrAppend(&cores, cores.empty() ? "" : ", ", core);
  }
  return absl::StrCat(R"("frame":)", Number(job.frame), R"(,"cores":")", cores,
                      "\"");
}

void Writer::WriteNames() {
  Metadata(kNpuProcess, 0, "process_name",
           absl::StrCat(R"("name":)",
                        Quoted(absl::StrCat("NPU (", source_.device, ")"))));
  Metadata(kNpuProcess, 0, "process_sort_index", R"("sort_index":-1)");
  for (uint32_t core = 0; core < source_.cores; ++core) {
    const uint64_t thread = kFirstThread + core;
    Metadata(kNpuProcess, thread, "thread_name",
             absl::StrCat(R"("name":"core )", core, "\""));
    Metadata(kNpuProcess, thread, "thread_sort_index",
             absl::StrCat(R"("sort_index":)", core));
  }
  std::map<Track, const JobRecord*> tracks;
  for (const auto* list : {&source_.jobs.jobs, &source_.jobs.running}) {
    for (const JobRecord& job : *list) {
      tracks[{job.session, job.context}] = &job;
    }
  }
  uint64_t next = kFirstThread + source_.cores;
  std::map<uint64_t, bool> named;
  for (const auto& [track, job] : tracks) {
    const uint64_t process = ProcessOf(*job);
    if (!std::exchange(named[process], true)) {
      const std::string program = ProgramOf(*job);
      Metadata(process, 0, "process_name",
               absl::StrCat(R"("name":)",
                            Quoted(program.empty() ? "a program that has gone"
                                                   : program)));
    }
    threads_[track] = next;
    Metadata(process, next, "thread_name",
             absl::StrCat(
                 R"("name":)",
                 Quoted(absl::StrCat("context ", track.second, " of session ",
                                     track.first, ": ", ModelOf(*job)))));
    ++next;
  }
}

void Writer::WriteSlices(std::vector<Slice> slices, uint64_t process,
                         uint64_t thread,
                         std::string (Writer::*arguments)(const JobRecord&)
                             const) {
  std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  // A core has one job at a time, and so has a context; but these are times
  // that a device stamped, and a reader of slices that overlap shows nonsense.
  Nanoseconds free = 0;
  for (const Slice& slice : slices) {
    const Nanoseconds begin = std::max(slice.begin, free);
    const Nanoseconds end = std::max(slice.end, begin);
    free = end;
    Event(absl::StrCat(R"("ph":"X","pid":)", process, R"(,"tid":)", thread,
                       R"(,"ts":)", Micros(begin), R"(,"dur":)",
                       Micros(end - begin), R"(,"cat":"run","name":)",
                       Quoted(ModelOf(*slice.job)), R"(,"args":{)",
                       (this->*arguments)(*slice.job), "}"));
  }
}

void Writer::WriteOpen(const JobRecord& job, uint64_t process,
                       uint64_t thread) {
  Event(absl::StrCat(R"("ph":"B","pid":)", process, R"(,"tid":)", thread,
                     R"(,"ts":)", Micros(job.started),
                     R"(,"cat":"run","name":)", Quoted(ModelOf(job)),
                     R"(,"args":{)", Arguments(job), R"(,"running_us":)",
                     Micros(source_.taken - job.started), "}"));
}

void Writer::WriteCores() {
  for (uint32_t core = 0; core < source_.cores; ++core) {
    std::vector<Slice> slices;
    for (const JobRecord& job : source_.jobs.jobs) {
      if ((job.cores >> core & 1) == 0 || job.started == 0) continue;
      slices.push_back({&job, job.started, job.ended});
    }
    WriteSlices(std::move(slices), kNpuProcess, kFirstThread + core,
                &Writer::Arguments);
    for (const JobRecord& job : source_.jobs.running) {
      if ((job.cores >> core & 1) == 0) continue;
      WriteOpen(job, kNpuProcess, kFirstThread + core);
    }
  }
}

void Writer::WriteWait(const JobRecord& job, uint64_t id) {
  const Nanoseconds end = job.started != 0 ? job.started : job.answered;
  const std::string common = absl::StrCat(
      R"(,"cat":"queue","id":)", id, R"(,"pid":)", ProcessOf(job), R"(,"tid":)",
      ThreadOf(job), R"(,"name":"context )", job.context, R"( queue")");
  Event(absl::StrCat(R"("ph":"b","ts":)", Micros(job.submitted), common,
                     R"(,"args":{"frame":)", Number(job.frame), "}"));
  Event(absl::StrCat(R"("ph":"e","ts":)", Micros(std::max(end, job.submitted)),
                     common));
}

void Writer::WriteMoments(const JobRecord& job) {
  const auto moment = [&](const std::string& name) {
    Event(absl::StrCat(R"("ph":"i","s":"t","pid":)", ProcessOf(job),
                       R"(,"tid":)", ThreadOf(job), R"(,"ts":)",
                       Micros(job.answered), R"(,"cat":"trouble","name":)",
                       Quoted(name), R"(,"args":{)", Arguments(job), "}"));
  };
  if (job.code != absl::StatusCode::kOk) {
    moment(absl::StrCat(job.started == 0 ? "not run: " : "failed: ",
                        absl::StatusCodeToString(job.code)));
  }
  if (job.drops != 0) {
    moment(absl::StrCat(job.drops, job.drops == 1 ? " frame" : " frames",
                        " dropped before this one"));
  }
}

void Writer::WriteContexts() {
  std::map<uint64_t, std::vector<Slice>> runs;  // by thread
  uint64_t id = 0;
  for (const auto* list : {&source_.jobs.jobs, &source_.jobs.running}) {
    for (const JobRecord& job : *list) WriteWait(job, ++id);
  }
  for (const JobRecord& job : source_.jobs.jobs) {
    WriteMoments(job);
    if (job.started == 0) continue;
    runs[ThreadOf(job)].push_back({&job, job.started, job.ended});
  }
  for (auto& [thread, slices] : runs) {
    const uint64_t process = ProcessOf(*slices.front().job);
    WriteSlices(std::move(slices), process, thread, &Writer::FrameAndCores);
  }
  for (const JobRecord& job : source_.jobs.running) {
    WriteOpen(job, ProcessOf(job), ThreadOf(job));
  }
}

void Writer::WriteCounters() {
  // By time: what came to the queue and to the cores, and left.
  std::map<Nanoseconds, std::pair<int64_t, int64_t>> changes;
  for (const auto* list : {&source_.jobs.jobs, &source_.jobs.running}) {
    for (const JobRecord& job : *list) {
      ++changes[job.submitted].first;
      if (job.started == 0) {
        --changes[std::max(job.answered, job.submitted)].first;
        continue;
      }
      --changes[std::max(job.started, job.submitted)].first;
      ++changes[job.started].second;
      if (job.ended != 0) --changes[std::max(job.ended, job.started)].second;
    }
  }
  int64_t queued = 0;
  int64_t running = 0;
  const auto count = [this](const char* name, Nanoseconds time, int64_t jobs) {
    Event(absl::StrCat(R"("ph":"C","pid":)", kNpuProcess, R"(,"ts":)",
                       Micros(time), R"(,"name":")", name,
                       R"(","args":{"jobs":)", jobs, "}"));
  };
  for (const auto& [time, change] : changes) {
    queued += change.first;
    running += change.second;
    if (change.first != 0) count("jobs queued", time, queued);
    if (change.second != 0) count("jobs running", time, running);
  }
}

absl::Status Writer::Write() {
  text_ = absl::StrCat(
      R"({"displayTimeUnit":"ms","otherData":{"device":)",
      Quoted(source_.device), R"(,"clock":"CLOCK_MONOTONIC","jobs":)",
      source_.jobs.jobs.size(), R"(,"running":)", source_.jobs.running.size(),
      R"(,"lost":)", source_.jobs.lost, R"(},"traceEvents":[)", "\n");
  WriteNames();
  WriteCores();
  WriteContexts();
  WriteCounters();
  text_ += "\n]}\n";
  if (!status_.ok()) return status_;
  return sink_(text_);
}

}  // namespace

absl::Status WriteTrace(const TraceSource& source, const TextSink& sink) {
  return Writer(source, sink).Write();
}

void CutTrace(Nanoseconds since, Recorder::Snapshot* jobs) {
  std::erase_if(jobs->jobs, [since](const JobRecord& job) {
    return std::max(job.ended, job.answered) < since;
  });
}

}  // namespace rknnd::core
