// Called on the program's threads, in whatever process they find themselves.

#include "client/rknnrt/runtime.h"

#include <pthread.h>

#include <string>
#include <utility>

#include "base/posix/hot_path.h"
#include "client/rknnrt/open_target.h"
#include "client/session/fork_cleanup.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

std::atomic<Runtime*> current_runtime{nullptr};
// Forks between this process and the one that loaded the library, as far as
// they happened after the first call.
std::atomic<uint32_t> fork_count{0};

constexpr char kBeforeFork[] =
    " was made before fork(): a child process shares none of its parent's; "
    "call rknn_init again";

base::Mutex& CreationMutex() {
  static base::Mutex& mutex = *new base::Mutex;
  return mutex;
}

// Around a fork the two leaf locks are held, so that the child finds both free
// and what they guard in order.
void BeforeFork() RKNND_NO_THREAD_SAFETY_ANALYSIS {
  CreationMutex().lock();
  ForkCleanup::Get().LockForFork();
}
void AfterForkInParent() RKNND_NO_THREAD_SAFETY_ANALYSIS {
  ForkCleanup::Get().UnlockInParent();
  CreationMutex().unlock();
}
void AfterForkInChild() RKNND_NO_THREAD_SAFETY_ANALYSIS {
  fork_count.fetch_add(1);
  ForkCleanup::Get().UnlockInChild();
  CreationMutex().unlock();
}

}  // namespace

Runtime::Runtime(uint32_t forks, Runtime* parent)
    : forks_(forks),
      parent_(parent),
      newest_generation_(parent == nullptr ? 0
                                           : parent->newest_generation_.load()),
      newest_queue_(parent == nullptr ? 0 : parent->newest_queue_.load()),
      contexts_(newest_generation_.load()),
      queues_(newest_queue_.load()) {}

RKNND_HOT_PATH Runtime& Runtime::Get() {
  Runtime* runtime = current_runtime.load(std::memory_order_acquire);
  const uint32_t forks = fork_count.load(std::memory_order_relaxed);
  if (runtime != nullptr && runtime->forks_ == forks) return *runtime;

  const base::MutexLock lock(CreationMutex());
  runtime = current_runtime.load(std::memory_order_acquire);
  if (runtime != nullptr && runtime->forks_ == forks) return *runtime;
  if (runtime == nullptr) {
    pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
  }
  runtime = new Runtime(forks, runtime);
  current_runtime.store(runtime, std::memory_order_release);
  return *runtime;
}

Expected<std::shared_ptr<Target>> Runtime::target() {
  const base::MutexLock lock(target_mutex_);
  if (target_ == nullptr) {
    Expected<std::shared_ptr<Target>> opened = OpenTarget(TargetFromEnv());
    if (!opened.ok()) return opened;
    target_ = *std::move(opened);
  }
  return target_;
}

void Runtime::NoteHandle(uint32_t handle) {
  newest_generation_.store(handle >> HandleTable<Context>::kIndexBits,
                           std::memory_order_relaxed);
}

Error Runtime::TooManyContexts() {
  return {Code::kResourceExhausted,
          "this process has " +
              std::to_string(HandleTable<Context>::kCapacity) +
              " contexts: destroy those it no longer uses"};
}

Error Runtime::NoContext(uint64_t handle) const {
  if (handle == 0) {
    return {Code::kNotFound, "context 0 is no context: did rknn_init fail?"};
  }
  const std::string name = "context " + std::to_string(handle);
  if (parent_ != nullptr && (handle >> 32) == 0 &&
      (handle >> HandleTable<Context>::kIndexBits) <=
          parent_->newest_generation_.load()) {
    return {Code::kNotFound,
            "this context (" + std::to_string(handle) + ")" + kBeforeFork};
  }
  return {Code::kNotFound,
          name +
              " does not exist: it was destroyed, or never made by "
              "rknn_init or rknn_dup_context"};
}

Error Runtime::NoQueue(uint64_t handle) const {
  if (handle == 0) {
    return {Code::kInvalidArgument,
            "queue 0 is no queue: did rknnd_queue_create fail?"};
  }
  constexpr auto kBits = HandleTable<CompletionQueue>::kIndexBits;
  const std::string name = "queue " + std::to_string(handle);
  if (parent_ != nullptr && (handle >> 32) == 0 &&
      (handle >> kBits) <= parent_->newest_queue_.load()) {
    return {Code::kInvalidArgument,
            name +
                " was made before fork(): a child process shares none of its "
                "parent's; call rknnd_queue_create"};
  }
  return {Code::kInvalidArgument,
          name +
              " does not exist: it was destroyed, or never made by "
              "rknnd_queue_create"};
}

Error Runtime::NoMemory() const {
  if (parent_ != nullptr) {
    return {Code::kInvalidArgument,
            std::string("this memory is not alive here; if it is the "
                        "parent's, it") +
                kBeforeFork + " and rknn_create_mem"};
  }
  return {Code::kInvalidArgument,
          "this rknn_tensor_mem is not alive: it was destroyed already, or not "
          "made by an rknn_create_mem function"};
}

RKNND_HOT_PATH Expected<std::shared_ptr<Context>> Runtime::FindContext(
    uint64_t handle) {
  std::shared_ptr<Context> context = contexts_.Find(handle);
  if (context == nullptr) return NoContext(handle);
  return context;
}

Expected<std::shared_ptr<Context>> Runtime::RemoveContext(uint64_t handle) {
  std::shared_ptr<Context> context = contexts_.Remove(handle);
  if (context == nullptr) return NoContext(handle);
  return context;
}

Expected<uint32_t> Runtime::AddQueue() {
  Expected<std::shared_ptr<Target>> target = this->target();
  if (!target.ok()) return std::move(target).error();
  Expected<std::shared_ptr<CompletionQueue>> queue =
      CompletionQueue::Make(*std::move(target));
  if (!queue.ok()) return std::move(queue).error();
  const uint32_t handle = queues_.Reserve();
  if (handle == 0) {
    return Error{Code::kResourceExhausted,
                 "this process has " +
                     std::to_string(HandleTable<CompletionQueue>::kCapacity) +
                     " queues: destroy those it no longer uses"};
  }
  newest_queue_.store(handle >> HandleTable<CompletionQueue>::kIndexBits,
                      std::memory_order_relaxed);
  queues_.Fill(handle, *std::move(queue));
  return handle;
}

Expected<std::shared_ptr<CompletionQueue>> Runtime::FindQueue(uint64_t handle) {
  std::shared_ptr<CompletionQueue> queue = queues_.Find(handle);
  if (queue == nullptr) return NoQueue(handle);
  return queue;
}

Expected<std::shared_ptr<CompletionQueue>> Runtime::RemoveQueue(
    uint64_t handle) {
  std::shared_ptr<CompletionQueue> queue = queues_.Remove(handle);
  if (queue == nullptr) return NoQueue(handle);
  return queue;
}

Expected<std::shared_ptr<TensorMemory>> Runtime::FindMemory(
    const rknn_tensor_mem* memory) {
  std::shared_ptr<TensorMemory> found = memories_.Find(memory);
  if (found == nullptr) return NoMemory();
  return found;
}

Expected<std::shared_ptr<TensorMemory>> Runtime::RemoveMemory(
    const rknn_tensor_mem* memory) {
  std::shared_ptr<TensorMemory> found = memories_.Remove(memory);
  if (found == nullptr) return NoMemory();
  return found;
}

}  // namespace rknnd::client
