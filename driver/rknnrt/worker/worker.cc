// The main thread takes orders one after the other; each lane has a thread that
// runs its jobs, blocking in the library. What hangs, the daemon kills.

#include "driver/rknnrt/worker/worker.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/blocked_signals.h"
#include "base/posix/futex.h"
#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "base/posix/socket.h"
#include "driver/rknnrt/protocol.h"
#include "driver/rknnrt/worker/call_filter.h"
#include "driver/rknnrt/worker/hosted_model.h"
#include "driver/rknnrt/worker/library.h"
#include "driver/rknnrt/worker/memories.h"

namespace rknnd::rknnrt {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr rlim_t kFileLimit = 65536;
constexpr rlim_t kMostOwnMemory = rlim_t{4} << 30;
constexpr int kOomScore = 500;
constexpr base::Nanoseconds kLongSleep = 3600 * base::kSecond;
constexpr uint32_t kRunning = static_cast<uint32_t>(wire::RingOperation::kRun);

void CopyText(const std::string& text, char* to, size_t room) {
  const size_t size = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

// What a call into the library came to, with the calls that it was refused.
template <class Call>
auto Watched(Call call) -> decltype(call()) {
  const uint64_t before = RefusedCalls();
  auto result = call();
  if (RefusedCalls() == before) return result;
  return Error{Code::kPermissionDenied, "the vendor's library called " +
                                            LastRefusedCall() +
                                            ", which a worker refuses"};
}

// Thread: main, but what lanes use: memories, and models by Find.
class Worker {
 public:
  [[noreturn]] void Serve() {
    for (;;) {
      OrderMessage order;
      Expected<base::ReceivedMessage> message = base::ReceiveMessage(
          kWorkerSocket, std::as_writable_bytes(std::span(&order, 1)),
          base::Block::kYes);
      // Nothing that the library would still do at exit is wanted.
      if (!message.ok() || message->eof) _exit(0);
      if (message->size != sizeof order) _exit(2);
      payload_ = 0;
      base::UniqueFd fd;
      if (!message->fds.empty()) fd = std::move(message->fds[0]);
      const Expected<void> done = Take(order, std::move(fd));
      if (order.order == Order::kForgetMemory ||
          order.order == Order::kUnloadModel) {
        continue;
      }
      Reply(order, done);
    }
  }

 private:
  void Reply(const OrderMessage& order, const Expected<void>& done) {
    AnswerMessage answer;
    answer.serial = order.serial;
    answer.payload = payload_;
    if (!done.ok()) {
      answer.code = static_cast<int32_t>(done.error().code);
      CopyText(done.error().message, answer.text, sizeof answer.text);
    }
    const Expected<void> sent =
        base::SendMessage(kWorkerSocket, std::as_bytes(std::span(&answer, 1)),
                          {}, base::Block::kYes);
    if (!sent.ok()) _exit(0);
  }

  Expected<void> Take(const OrderMessage& order, base::UniqueFd fd) {
    switch (order.order) {
      case Order::kOpen:
        return Open(order, std::move(fd));
      case Order::kLoadModel:
        return Watched([&] { return Load(order, std::move(fd)); });
      case Order::kUnloadModel:
        Unload(order.model);
        return {};
      case Order::kAddMemory:
        return memories_.Add(order.memory, std::move(fd), order.offset,
                             order.size);
      case Order::kForgetMemory:
        memories_.Forget(order.memory);
        for (const auto& [number, model] : models_) model->DropForgotten();
        return {};
      case Order::kCopyWeights:
        return CopyWeights(order, std::move(fd));
    }
    return Error{Code::kInvalidArgument, "an order that this worker lacks"};
  }

  Expected<void> Open(const OrderMessage& order, base::UniqueFd fd) {
    Expected<base::Mapping> area = base::Mapping::OfFd(
        fd.get(), 0, kAreaBytes, base::Mapping::Access::kReadWrite);
    if (!area.ok()) return std::move(area).error();
    mapping_ = *std::move(area);
    area_ = reinterpret_cast<SharedArea*>(mapping_.data());
    cores_ = order.cores;
    const std::string path(order.name, strnlen(order.name, sizeof order.name));
    const std::string folder =
        std::filesystem::path(path).parent_path().string();
    if (const Expected<void> in = InstallCallFilter(folder); !in.ok()) {
      std::fprintf(stderr,
                   "nothing keeps the vendor's library from files and sockets: "
                   "%s\n",
                   in.error().message.c_str());
    }
    Expected<Library> library = Watched([&] { return Library::Open(path); });
    if (!library.ok()) return std::move(library).error();
    library_ = *std::move(library);
    for (uint32_t lane = 0; lane < std::min(cores_, kMostLanes); ++lane) {
      std::thread([this, lane] { RunLane(lane); }).detach();
    }
    return {};
  }

  Expected<void> Load(const OrderMessage& order, base::UniqueFd fd) {
    const int nice_before = Nice();
    Expected<std::unique_ptr<HostedModel>> model =
        HostedModel::Load(*library_, calls_, std::move(fd),
                          static_cast<size_t>(order.size), cores_);
    if (const int nice_now = Nice(); nice_now != nice_before) {
      std::fprintf(stderr, "the library set this process's nice value to %d\n",
                   nice_now);
      setpriority(PRIO_PROCESS, 0, nice_before);
    }
    if (!model.ok()) return std::move(model).error();
    Put(&(*model)->about(), sizeof(LoadedModel));
    for (const ShapeRow& row : (*model)->rows()) {
      for (const auto* attributes : {&row.inputs, &row.outputs,
                                     &row.native_inputs, &row.native_outputs}) {
        const size_t bytes = attributes->size() * sizeof(rknn_tensor_attr);
        if (bytes > kMailboxBytes - payload_) {
          return Error{Code::kUnimplemented,
                       "it has more shapes and tensors than can be told of"};
        }
        Put(attributes->data(), bytes);
      }
    }
    base::MutexLock lock(models_mutex_);
    models_[order.model] = *std::move(model);
    return {};
  }

  void Unload(uint32_t number) {
    std::shared_ptr<HostedModel> model;
    base::MutexLock lock(models_mutex_);
    const auto found = models_.find(number);
    if (found == models_.end()) return;
    model = std::move(found->second);
    models_.erase(found);
  }

  Expected<void> CopyWeights(const OrderMessage& order, base::UniqueFd fd) {
    const std::shared_ptr<HostedModel> model = Find(order.model);
    if (model == nullptr) return Error{Code::kInternal, "no such model"};
    Memories one;
    if (Expected<void> added =
            one.Add(1, std::move(fd), order.offset, order.size);
        !added.ok()) {
      return added;
    }
    return Watched([&] { return model->CopyWeights(*one.Find(1), 0); });
  }

  std::shared_ptr<HostedModel> Find(uint32_t number) {
    base::MutexLock lock(models_mutex_);
    const auto found = models_.find(number);
    return found == models_.end() ? nullptr : found->second;
  }

  [[noreturn]] void RunLane(uint32_t number) {
    Lane& lane = area_->lanes[number];
    wire::Ring& ring = lane.ring;
    for (uint32_t head = 0;;) {
      const uint32_t tail = ring.header.tail.load(std::memory_order_seq_cst);
      if (tail == head) {
        base::FutexWait(&ring.header.tail, head, kLongSleep);
        continue;
      }
      const wire::Submission entry =
          ring.submissions[head % wire::kRingEntries];
      ring.header.head.store(++head, std::memory_order_release);
      Run(number, lane, entry);
    }
  }

  void Run(uint32_t number, Lane& lane, const wire::Submission& entry) {
    if (entry.operation != kRunning || entry.slot >= wire::kRingEntries ||
        entry.set >= kSets) {
      _exit(2);
    }
    wire::Completion& completion = lane.ring.completions[entry.slot];
    completion.begun.store(entry.sequence, std::memory_order_relaxed);
    const Expected<void> ran = Watched([&]() -> Expected<void> {
      const std::shared_ptr<HostedModel> model = Find(entry.context);
      if (model == nullptr) return Error{Code::kInternal, "no such model"};
      return model->Run(
          number, entry.set,
          (entry.flags & kRunRebinds) != 0 ? &lane.record : nullptr, memories_);
    });
    completion.code = 0;
    completion.text_size = 0;
    if (!ran.ok()) {
      auto& text = lane.ring.texts[entry.slot].text;
      completion.code = static_cast<int32_t>(ran.error().code);
      CopyText(ran.error().message, text, sizeof text);
      completion.text_size = static_cast<uint32_t>(std::strlen(text));
    }
    base::StoreBeforeLook(completion.sequence, entry.sequence);
    if (lane.ring.header.asleep[0].load(std::memory_order_seq_cst) != 0) {
      base::FutexWakeOne(&completion.sequence);
    }
  }

  static int Nice() { return getpriority(PRIO_PROCESS, 0); }

  void Put(const void* bytes, size_t size) {
    std::memcpy(area_->mailbox + payload_, bytes, size);
    payload_ += static_cast<uint32_t>(size);
  }

  base::Mapping mapping_;
  SharedArea* area_ = nullptr;
  uint32_t cores_ = 0;
  uint32_t payload_ = 0;  // of the answer to come
  std::optional<Library> library_;
  base::Mutex calls_;  // around the library's functions but rknn_run
  Memories memories_;
  base::Mutex models_mutex_;
  // Changed by the main thread only.
  std::map<uint32_t, std::shared_ptr<HostedModel>> models_;
};

}  // namespace

void RunWorker() {
  // What the library's threads inherit: no signal interrupts a call into the
  // driver.
  const base::BlockedSignals blocked;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = std::min(files.rlim_max, kFileLimit);
    setrlimit(RLIMIT_NOFILE, &files);
  }
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // Of its own, beside the memory that the daemon names: a model that makes the
  // library ask for more gets an error, and the board keeps the rest.
  const rlimit data = {kMostOwnMemory, kMostOwnMemory};
  setrlimit(RLIMIT_DATA, &data);
#endif
  // Rather this than the daemon, where the kernel has to choose.
  std::ofstream("/proc/self/oom_score_adj") << kOomScore;
  (void)!chdir("/");
  // Never destroyed: its lanes end with the process.
  (new Worker())->Serve();
}

}  // namespace rknnd::rknnrt
