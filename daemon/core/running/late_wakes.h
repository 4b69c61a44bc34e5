// Whom a worker has yet to wake. An answer is there for its client to see at
// once; waking one that sleeps is the last that a worker does before it sleeps
// itself, or begins what takes longer. On a busy CPU the woken client takes the
// worker's place that instant, and finds all done that its next frame needs:
// the core's token given back, the context free.

#ifndef DAEMON_CORE_RUNNING_LATE_WAKES_H_
#define DAEMON_CORE_RUNNING_LATE_WAKES_H_

namespace rknnd::core {

class LateWakes {
 public:
  virtual ~LateWakes() = default;
  // Wakes them now.
  virtual void WakeAll() = 0;

  // Of the calling thread; null on one that wakes at once.
  [[nodiscard]] static LateWakes* OfThread() { return of_thread_; }
  static void SetOfThread(LateWakes* wakes) { of_thread_ = wakes; }

 private:
  static inline thread_local LateWakes* of_thread_ = nullptr;
};

// This thread is about to do what takes longer than a wake-up.
inline void WakeBeforeLongWork() {
  if (LateWakes* const wakes = LateWakes::OfThread()) wakes->WakeAll();
}

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_LATE_WAKES_H_
