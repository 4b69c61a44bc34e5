// Puts the parts together and takes them apart in the order their lifetimes
// ask for.

#include "daemon/runtime.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/core/running/worker_pulse.h"
#include "driver/memory/fault_guard.h"
#include "driver/open_device.h"

namespace rknnd {
namespace {

// How long Stop waits for jobs in order before sessions are closed with jobs
// still queued, and those that run are stopped where the device can do that.
// Longer than any job of a camera pipeline, and well within what our unit gives
// the daemon to end (TimeoutStopSec, 15 s).
constexpr base::Nanoseconds kDrainDeadline = 10 * base::kSecond;

// A thread that computes is not stuck, but nor is it of any use if one task
// keeps it for longer than this. The largest model compiles in minutes.
constexpr base::Nanoseconds kLongestTask = 30 * 60 * base::kSecond;

}  // namespace

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Create(
    const RuntimeOptions& options) {
  std::unique_ptr<Runtime> runtime(new Runtime());
  // What has begun by then is ended in order.
  try {
    RKNND_RETURN_IF_ERROR(runtime->Assemble(options));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a thread of the daemon cannot be started: ", error.what()));
  }
  return runtime;
}

absl::Status Runtime::Assemble(const RuntimeOptions& options) {
  driver::InstallFaultGuard();
  RKNND_ASSIGN_OR_RETURN(loop_,
                         base::ToStatusOr(base::EventLoop::Create(&clock_)));
  timers_.emplace(loop_.get());
  driver::DeviceOptions device;
  device.kind = options.device;
  device.soc = options.soc;
  device.pace = options.pace;
  device.clock = &clock_;
  device.library = options.library;
  driver::DeviceLog device_log;
  if (options.log != nullptr) {
    device_log = [log = options.log](const std::string& line) {
      log->Write(transport::Severity::kInfo, line);
    };
  }
  RKNND_ASSIGN_OR_RETURN(driver::OpenedDevice opened,
                         driver::OpenDeviceAndHeap(device, device_log));
  device_ = std::move(opened.device);
  if (options.faults.has_value() || options.incoherent) {
    driver::FaultyDeviceOptions around{device_.get(), &clock_};
    if (options.faults.has_value()) around.give_up = options.faults->give_up;
    around.incoherent = options.incoherent;
    faulty_ = std::make_unique<driver::FaultyDevice>(around);
  }
  if (options.faults.has_value()) {
    RKNND_RETURN_IF_ERROR(EnableFaults(*options.faults, options.log));
  }
  driver::Device* const used =
      faulty_ == nullptr ? device_.get() : faulty_.get();
  heaps_.emplace(driver::ProbeHeaps(options.heaps, std::move(opened.heap)));
  if (options.log != nullptr) {
    for (const std::string& complaint : heaps_->complaints()) {
      options.log->Write(transport::Severity::kWarning, complaint);
    }
    if (const std::string others = rknnd::Describe(foreign_users_.Find());
        !others.empty()) {
      options.log->Write(transport::Severity::kWarning, others);
    }
  }
  failures_.emplace(options.log, &clock_);
  notes_.emplace(&*failures_);
  RKNND_ASSIGN_OR_RETURN(physical_,
                         driver::PhysicalMemory::Open(options.physical_memory));
  loader_.Start();
  quick_loader_.Start();
  pager_.Start();
  transport::WorkersOptions workers;
  workers.spin = options.scheduling.spin;
  RKNND_ASSIGN_OR_RETURN(workers_,
                         transport::Workers::Create(loop_.get(), workers));
  fences_.emplace(workers_->epoll_fd());

  core::ServiceOptions service;
  static_cast<core::LiveOptions&>(service) = options;
  service.device = used;
  if (options.faults.has_value()) service.faults = &faulty_->faults();
  service.incoherent = options.incoherent;
  service.log = &*notes_;
  service.heaps = &*heaps_;
  service.physical = &*physical_;
  service.clock = &clock_;
  service.loop = loop_.get();
  service.loader = &loading_;
  service.quick_loader = &quick_loading_;
  service.pager = &paging_;
  service.timers = &*timers_;
  service.waker = workers_.get();
  service.fences = &*fences_;
  service.trace_dir = options.trace_dir;
  service.give_back_memory = options.give_back_memory;
  service.foreign_users = &foreign_users_;
  service.cache_dir = options.cache_dir;
  service.keeper = options.keeper;
  service.vendor_sharing = options.vendor_sharing;
  service.isolate = options.isolate;
  RKNND_ASSIGN_OR_RETURN(service_, core::Service::Create(service));

  transport::Environment environment;
  environment.loop = loop_.get();
  environment.service = service_.get();
  environment.workers = workers_.get();
  environment.failures = &*failures_;
  if (options.board.has_value()) MakeBoard(*options.board);
  environment.board = board_.get();
  server_ = std::make_unique<transport::SessionServer>(environment,
                                                       options.server_limits);
  fences_->set_runner(&service_->runner());
  workers_->set_fences(&*fences_);
  // One more than cores: the one that waits while all cores are busy.
  workers_->Start(device_->info().cores + 1, &service_->runner(),
                  [this](core::SessionId session, const absl::Status& reason) {
                    server_->CloseSession(session, reason);
                  });
  return absl::OkStatus();
}

void Runtime::MakeBoard(const RuntimeBoard& about) {
  board::BoardOptions options;
  options.root = about.root;
  options.record = about.record;
  options.version = about.version;
  options.heaps = heaps_->Describe();
  options.log = about.log;
  options.service = service_.get();
  options.waker = workers_.get();
  options.loop = loop_.get();
  options.pager = &paging_;
  options.timers = &*timers_;
  board_ = std::make_unique<board::BoardImpl>(options);
}

absl::Status Runtime::EnableFaults(const RuntimeFaults& faults,
                                   transport::EventLog* log) {
  faulty_->set_changed([log](const driver::FaultReport& fault, bool set) {
    if (log == nullptr) return;
    const std::string what = absl::StrCat(
        "FAULT ON DEMAND ", fault.id,
        set ? " is set: " : " is cleared: ", driver::Describe(fault.fault));
    log->Write(transport::Severity::kWarning, what);
  });
  if (log != nullptr) {
    log->Write(transport::Severity::kWarning,
               "faults on demand are enabled: not for machines that do real "
               "work");
  }
  for (const driver::Fault& fault : faults.preset) {
    const auto set = faulty_->faults().Set(fault);
    if (!set.ok()) {
      return base::Annotate(
          set.status(),
          absl::StrCat("faults.preset: '", driver::Describe(fault), "'"));
    }
  }
  return faulty_->Start();
}

Runtime::~Runtime() {
  // 1. Every session is closed; its queued jobs vanish.
  server_.reset();
  // 2. Nothing is loaded any more; a compilation that runs ends first. Nor is
  // memory attached.
  loader_.Stop();
  quick_loader_.Stop();
  pager_.Stop();
  // Clocks that are still pinned are put back; a self-test ends.
  board_.reset();
  // 3. Running jobs end, also those that only a fault keeps.
  if (faulty_ != nullptr) faulty_->Stop();
  if (workers_ != nullptr) workers_->Stop();
  // 4. What these threads have posted still finds its service.
  if (loop_ != nullptr) RunPosted();
  // 5. Models, arenas, buffers.
  service_.reset();
  workers_.reset();
  // 6. The device after all that it made, the loop after all that watch.
  faulty_.reset();
  device_.reset();
  loop_.reset();
}

void Runtime::AddProgress(ProgressWatch& watch) {
  struct Thread {
    const char* name;
    TaskMeter* tasks;
  };
  for (const Thread& thread : {Thread{"the loader", &loading_},
                               Thread{"the quick loader", &quick_loading_},
                               Thread{"the pager", &paging_}}) {
    watch.Add(thread.name, [tasks = thread.tasks] {
      return ProgressWatch::Look{tasks->busy(),
                                 tasks->ended() + tasks->cpu_time()};
    });
    watch.Add(
        absl::StrCat("a task of ", thread.name),
        [tasks = thread.tasks] {
          return ProgressWatch::Look{tasks->busy(), tasks->ended()};
        },
        kLongestTask);
  }
  for (size_t worker = 0; worker < workers_->count(); ++worker) {
    watch.Add(absl::StrCat("worker ", worker), [this, worker] {
      const uint64_t pulse = workers_->PulseOf(worker);
      return ProgressWatch::Look{core::WorkerPulse::IsAtWork(pulse), pulse};
    });
  }
  watch.Add("an event that no worker takes", [this] {
    const transport::WorkerCounts counts = workers_->counts();
    return ProgressWatch::Look{workers_->HasEvent(),
                               counts.wakes - counts.busy_wakes};
  });
  watch.Add("an event of a busy session that no worker takes", [this] {
    return ProgressWatch::Look{workers_->HasBusyEvent(),
                               workers_->counts().busy_wakes};
  });
  watch.Add("the scheduler, with a job whose turn it is and a free core,",
            [this] {
              const auto progress = service_->runner().progress();
              return ProgressWatch::Look{progress.can_begin, progress.turns};
            });
  watch.Add("the end of jobs whose time is over", [this] {
    const auto progress = service_->runner().progress();
    return ProgressWatch::Look{
        progress.expires && progress.next_expiry < clock_.Now(),
        static_cast<uint64_t>(progress.next_expiry)};
  });
}

void Runtime::Run() { loop_->Run(); }

void Runtime::RunPosted() {
  loop_->Quit();
  loop_->Run();
}

void Runtime::Stop() {
  if (std::exchange(stopping_, true)) return StopNow();
  server_->StopListening();
  loop_->RunAfter(kDrainDeadline, [this] { StopNow(); });
  service_->BeginDrain(core::Drain::Reason::kStop,
                       [this](const absl::Status&) { StopNow(); });
}

void Runtime::StopNow() {
  // Asked twice: the last job may end while all is being taken apart.
  if (server_ == nullptr) return;
  server_->StopListening();
  server_->CloseAll(absl::CancelledError("the daemon stops"));
  loop_->Quit();
}

}  // namespace rknnd
