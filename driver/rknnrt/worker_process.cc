#include "driver/rknnrt/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/child_process.h"
#include "base/posix/futex.h"
#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/status/status.h"
#include "base/values/printable.h"

namespace rknnd::rknnrt {
namespace {

// The death of a worker wakes who waits for it; a wake-up that comes in the
// moment before somebody sleeps is made up for so soon.
constexpr base::Nanoseconds kSlice = 20 * base::kMillisecond;
// From the end of a process until its cause is known.
constexpr auto kReaping = std::chrono::milliseconds(1000);

// What the worker inherits of the environment: nothing that would change which
// libraries are loaded, or that leads it back to a daemon.
std::vector<std::string> Environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool is_left_out =
        text.starts_with("LD_") || text.starts_with("RKNND_TARGET=") ||
        text.starts_with("NOTIFY_SOCKET=") || text.starts_with("LISTEN_");
    if (!is_left_out) environment.emplace_back(text);
  }
  return environment;
}

// Not by fork: that copies the page tables of all models that the daemon holds.
base::Expected<pid_t> Spawn(const std::vector<std::string>& command, int socket,
                            int output) {
  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = Environment();
  const std::vector<char*> argv = base::Pointers(arguments);
  const std::vector<char*> envp = base::Pointers(environment);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY,
                                   0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&files, socket, kWorkerSocket);
  // Handlers of ours are not the worker's.
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, argv[0], &files, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return base::ErrnoError(error, "start '" + command[0] + "'");
  return pid;
}

std::string DescribeEnd(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    const char* const name = sigdescr_np(signal);
    return absl::StrCat("signal ", signal, " (",
                        name == nullptr ? "unknown" : name, ")");
  }
  return absl::StrCat("it ended by itself with status ",
                      WEXITSTATUS(wait_status));
}

bool IsCode(int32_t code) {
  return code > 0 && code <= static_cast<int32_t>(base::Code::kUnauthenticated);
}

}  // namespace

WorkerProcess::WorkerProcess(WorkerWatch& watch, const base::Clock& clock,
                             base::Mapping area, base::UniqueFd socket,
                             const WorkerSetup& setup)
    : watch_(watch),
      clock_(clock),
      area_(std::move(area)),
      socket_(std::move(socket)),
      cores_(setup.cores),
      load_limit_(setup.load_limit),
      order_limit_(setup.order_limit) {}

absl::StatusOr<std::shared_ptr<WorkerProcess>> WorkerProcess::Start(
    const WorkerSetup& setup, WorkerWatch& watch, const base::Clock& clock) {
  RKNND_ASSIGN_OR_RETURN(
      base::UniqueFd memory,
      base::ToStatusOr(base::MakeMemfd("rknnd-worker", kAreaBytes)));
  RKNND_ASSIGN_OR_RETURN(
      base::Mapping area,
      base::ToStatusOr(base::Mapping::OfFd(memory.get(), 0, kAreaBytes,
                                           base::Mapping::Access::kReadWrite)));
  RKNND_ASSIGN_OR_RETURN(auto sockets, base::ToStatusOr(base::SeqpacketPair()));
  int pipe_ends[2] = {-1, -1};
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    return base::ToStatus(base::ErrnoError(errno, "pipe2"));
  }
  base::UniqueFd output(pipe_ends[0]);
  const base::UniqueFd workers_output(pipe_ends[1]);
  std::shared_ptr<WorkerProcess> worker(new WorkerProcess(
      watch, clock, std::move(area), std::move(sockets.first), setup));
  RKNND_ASSIGN_OR_RETURN(
      worker->pid_, base::ToStatusOr(Spawn(setup.command, sockets.second.get(),
                                           workers_output.get())));
  sockets.second.reset();
  worker->pid_fd_.reset(
      static_cast<int>(syscall(SYS_pidfd_open, worker->pid_, 0)));
  RKNND_ASSIGN_OR_RETURN(
      base::UniqueFd pid_fd,
      base::ToStatusOr(base::Duplicate(worker->pid_fd_.get())));
  worker->number_ =
      watch.Add(worker->pid_, std::move(pid_fd), std::move(output),
                [weak = std::weak_ptr<WorkerProcess>(worker)](int status) {
                  if (const auto process = weak.lock())
                    process->OnEnded(status);
                });
  RKNND_RETURN_IF_ERROR(worker->Open(setup.library, memory.get()));
  return worker;
}

// Its end of the socket tells the worker to go.
WorkerProcess::~WorkerProcess() {
  if (number_ != 0) watch_.EndSoon(number_);
}

absl::Status WorkerProcess::Open(const LibraryFile& library, int area) {
  OrderMessage order;
  order.order = Order::kOpen;
  order.cores = cores_;
  if (library.path.size() >= sizeof order.name) {
    return absl::InvalidArgumentError(
        absl::StrCat("the path of the vendor's library '", library.path,
                     "' is longer than ", sizeof order.name - 1, " bytes"));
  }
  library.path.copy(order.name, sizeof order.name - 1);
  const absl::Status opened = Ask(order, area).status();
  if (opened.ok()) return opened;
  return base::Annotate(
      opened, absl::StrCat("the vendor's library '", library.path, "'"));
}

void WorkerProcess::OnEnded(int wait_status) { Die(DescribeEnd(wait_status)); }

void WorkerProcess::Die(const std::string& why) {
  {
    base::MutexLock lock(why_mutex_);
    if (why_.empty()) why_ = why;
    died_.notify_all();
  }
  if (!dead_.exchange(true)) jobs_at_end_ = jobs_.load();
  for (Lane& lane : area().lanes) {
    base::FutexWakeOne(&lane.ring.completions[0].sequence);
  }
}

void WorkerProcess::Kill(const std::string& why) {
  if (pid_fd_.valid()) {
    syscall(SYS_pidfd_send_signal, pid_fd_.get(), SIGKILL, nullptr, 0);
  }
  Die(why);
}

void WorkerProcess::KillForReset() {
  if (!dead()) for_reset_ = true;
  Kill("an operator reset the NPU");
}

std::string WorkerProcess::WhyDead() const {
  base::MutexLock lock(why_mutex_);
  return why_;
}

absl::Status WorkerProcess::WhyLost() {
  {
    std::unique_lock lock(why_mutex_);
    died_.wait_for(lock, kReaping, [this]() RKNND_NO_THREAD_SAFETY_ANALYSIS {
      return !why_.empty();
    });
  }
  if (!dead()) Kill("it does not answer");
  return absl::UnavailableError(
      absl::StrCat("the worker that hosts the vendor's library ended (pid ",
                   pid_, "): ", WhyDead()));
}

absl::Status WorkerProcess::Send(const OrderMessage& order, int fd) {
  std::vector<int> fds;
  if (fd >= 0) fds.push_back(fd);
  return base::ToStatus(base::SendMessage(socket_.get(),
                                          std::as_bytes(std::span(&order, 1)),
                                          fds, base::Block::kNo));
}

absl::StatusOr<AnswerMessage> WorkerProcess::Receive(
    const OrderMessage& order) {
  const base::Nanoseconds limit =
      order.order == Order::kLoadModel ? load_limit_ : order_limit_;
  const base::Nanoseconds until = clock_.Now() + limit;
  for (;;) {
    const base::Nanoseconds left = until - clock_.Now();
    if (left <= 0 || dead()) {
      if (!dead()) {
        Kill(absl::StrCat("it did not answer within ",
                          static_cast<double>(limit) / base::kSecond, " s"));
      }
      return WhyLost();
    }
    pollfd readable = {socket_.get(), POLLIN, 0};
    if (poll(&readable, 1,
             static_cast<int>(std::min(left, kSlice) / base::kMillisecond) +
                 1) <= 0) {
      continue;
    }
    AnswerMessage answer;
    const base::Expected<base::ReceivedMessage> message = base::ReceiveMessage(
        socket_.get(), std::as_writable_bytes(std::span(&answer, 1)),
        base::Block::kNo);
    if (message.ok() && message->would_block) continue;
    if (message.ok() && message->eof) return WhyLost();
    if (!message.ok() || message->size != sizeof answer ||
        answer.serial != order.serial || answer.payload > kMailboxBytes ||
        !message->fds.empty()) {
      Kill("it sent what no worker sends");
      return WhyLost();
    }
    return answer;
  }
}

absl::StatusOr<std::vector<std::byte>> WorkerProcess::Ask(OrderMessage order,
                                                          int fd) {
  base::MutexLock lock(orders_mutex_);
  if (dead()) return WhyLost();
  order.serial = ++serial_;
  if (!Send(order, fd).ok()) return WhyLost();
  RKNND_ASSIGN_OR_RETURN(const AnswerMessage answer, Receive(order));
  if (answer.code != 0) {
    if (!IsCode(answer.code)) {
      Kill("it sent what no worker sends");
      return WhyLost();
    }
    // What a worker says it is, it may not be: UNAVAILABLE is its death.
    const auto code = static_cast<absl::StatusCode>(answer.code);
    return absl::Status(
        code == absl::StatusCode::kUnavailable
            ? absl::StatusCode::kFailedPrecondition
            : code,
        base::Printable(
            {answer.text, strnlen(answer.text, sizeof answer.text)}));
  }
  const std::byte* const mailbox = area().mailbox;
  return std::vector<std::byte>(mailbox, mailbox + answer.payload);
}

absl::StatusOr<std::vector<std::byte>> WorkerProcess::Load(
    uint32_t model, int file, uint64_t size, const std::string& name) {
  OrderMessage order;
  order.order = Order::kLoadModel;
  order.model = model;
  order.size = size;
  name.copy(order.name, sizeof order.name - 1);
  return Ask(order, file);
}

void WorkerProcess::Unload(uint32_t model) {
  if (dead()) return;
  OrderMessage order;
  order.order = Order::kUnloadModel;
  order.model = model;
  Send(order, -1).IgnoreError();
}

absl::Status WorkerProcess::CopyWeights(uint32_t model,
                                        const HostedMemory& memory,
                                        uint64_t offset) {
  OrderMessage order;
  order.order = Order::kCopyWeights;
  order.model = model;
  order.offset = memory.offset() + offset;
  order.size = memory.size() - offset;
  return Ask(order, memory.fd()).status();
}

absl::Status WorkerProcess::Know(HostedMemory& memory) {
  {
    base::MutexLock lock(known_mutex_);
    if (known_.contains(memory.id())) return absl::OkStatus();
  }
  OrderMessage order;
  order.order = Order::kAddMemory;
  order.memory = memory.id();
  order.offset = memory.offset();
  order.size = memory.size();
  RKNND_RETURN_IF_ERROR(Ask(order, memory.fd()).status());
  memory.NoteKnownBy(shared_from_this());
  base::MutexLock lock(known_mutex_);
  known_.insert(memory.id());
  return absl::OkStatus();
}

void WorkerProcess::Forget(uint32_t memory) {
  if (dead()) return;
  {
    base::MutexLock lock(known_mutex_);
    known_.erase(memory);
  }
  OrderMessage order;
  order.order = Order::kForgetMemory;
  order.memory = memory;
  // A worker that takes no messages any more hangs, and is about to be killed.
  Send(order, -1).IgnoreError();
}

absl::Status WorkerProcess::Run(const Job& job) {
  Lane& lane = area().lanes[job.lane];
  ++jobs_;
  const uint32_t sequence = ++submitted_[job.lane];
  if (job.record != nullptr) lane.record = *job.record;
  wire::Submission& entry =
      lane.ring.submissions[(sequence - 1) % wire::kRingEntries];
  entry = {};
  entry.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
  entry.context = job.model;
  entry.set = job.set;
  entry.sequence = sequence;
  entry.flags = job.record != nullptr ? kRunRebinds : 0;
  lane.ring.header.tail.store(sequence, std::memory_order_seq_cst);
  base::FutexWakeOne(&lane.ring.header.tail);
  absl::Status status = Wait(lane, job, sequence);
  if (status.ok()) status = TakeAnswer(lane);
  --jobs_;
  return status;
}

absl::Status WorkerProcess::Wait(Lane& lane, const Job& job,
                                 uint32_t sequence) {
  const auto& word = lane.ring.completions[0].sequence;
  base::Nanoseconds until = 0;
  for (;;) {
    base::StoreBeforeLook(lane.ring.header.asleep[0], 1U);
    const uint32_t seen = word.load(std::memory_order_seq_cst);
    if (seen == sequence) break;
    if (dead()) {
      return absl::AbortedError(absl::StrCat(
          "the worker that ran it ended (pid ", pid_, "): ", WhyDead()));
    }
    const base::Nanoseconds now = clock_.Now();
    if (until == 0) until = now + job.limit;
    if (now >= until) {
      Kill(absl::StrCat("a job did not end within ",
                        job.limit / base::kMillisecond, " ms"));
      return absl::DeadlineExceededError(
          absl::StrCat("it did not end within ", job.limit / base::kMillisecond,
                       " ms, and its worker was ended"));
    }
    if (job.reset != nullptr && job.reset->load()) {
      KillForReset();
      return absl::AbortedError("an operator reset the NPU");
    }
    base::FutexWait(&word, seen, std::min(kSlice, until - now));
  }
  lane.ring.header.asleep[0].store(0, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status WorkerProcess::TakeAnswer(Lane& lane) {
  const wire::Completion& completion = lane.ring.completions[0];
  const int32_t code = completion.code;
  if (code == 0) return absl::OkStatus();
  const uint32_t size = completion.text_size;
  char text[sizeof lane.ring.texts[0].text];
  std::memcpy(text, lane.ring.texts[0].text, sizeof text);
  if (!IsCode(code) || size > sizeof text) {
    Kill("it sent what no worker sends");
    return absl::AbortedError(absl::StrCat("its worker ", WhyDead()));
  }
  const auto given = static_cast<absl::StatusCode>(code);
  // Those two are for the worker's end, which it does not tell of itself.
  const bool is_ours = given == absl::StatusCode::kAborted ||
                       given == absl::StatusCode::kDeadlineExceeded;
  return absl::Status(is_ours ? absl::StatusCode::kInternal : given,
                      base::Printable({text, size}));
}

}  // namespace rknnd::rknnrt
