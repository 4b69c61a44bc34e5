// The submission ring: a sealed memfd, made by the daemon and mapped by both
// ends, through which frames are submitted and answered. One layout for 32-bit
// and 64-bit clients.
//
//   client                                   daemon (worker)
//   1 takes a free slot s
//   2 fills submissions[tail % kRingEntries]
//     and stores tail + 1 (release)
//   3 rings the doorbell (eventfd)   ---->   4 copies the entry out, checks the
//                                              copy, stores head
//                                            5 the job runs
//   7 wakes, reads completions[s]    <----   6 fills completions[s], stores
//                                              `sequence`, wakes one waiter
//
// What one end reads after the other has written it, on CPUs that reorder
// (Arm):
//
//   entry          `tail` is stored with release after the entry is filled, and
//                  loaded with acquire before it is copied. Its place is filled
//                  again only after an answer to it was seen (at most
//                  kRingEntries jobs are unanswered, and entries are taken in
//                  order)
//   answer         `sequence` is stored with release after the other fields and
//                  the text, and loaded with acquire before they are read
//   taken          `head` is stored with release after the entry was
//                  copied, and loaded with acquire
//   doorbell       client: stores `tail`, then loads `polled`; daemon: stores
//                  `polled`, then loads `tail`. All are seq_cst: after 0 either
//                  it is rung or the entry is seen; after 1 an entry that is
//                  not seen yet is not rung for. Who rings for most of these
//                  all the same is not heard for a while
//   wake-up        client: sets its bit in `asleep`, then loads
//                  `sequence`; daemon: stores `sequence`, then loads
//                  `asleep`; seq_cst likewise, so nobody sleeps on an answer
//                  that is there. The kernel compares `sequence` once more
//                  before it lets anybody sleep
//
// The daemon takes everything here for hostile: it keeps its own head, copies
// an entry before it looks at it, bounds the number of entries by
// kRingEntries, and only stores to completions. The client trusts the daemon.

#ifndef PROTO_WIRE_RING_H_
#define PROTO_WIRE_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rknnd::wire {

// Jobs one session may have in flight. Four cameras with three contexts need
// twelve; a process with 32 contexts and two frames each fits.
inline constexpr uint32_t kRingEntries = 128;
static_assert((kRingEntries & (kRingEntries - 1)) == 0);

inline constexpr uint32_t kRingMagic = 0x474e5252;  // "RRNG"

enum class RingOperation : uint32_t {
  kRun = 1,
  // Takes queued jobs of `context` back: those of number `frame`, or all for 0.
  // They are answered with kCancelled, and this entry with how many they were.
  kCancel = 2,
};

// Submission::flags. A run may be answered with another session's of the same
// model on the same memory with the same frame number.
inline constexpr uint32_t kSubmitShared = 1;
inline constexpr uint32_t kSubmitFlags = kSubmitShared;

struct Submission {
  uint32_t operation;    // RingOperation
  uint32_t context;      // the session's number
  uint32_t slot;         // where the completion goes, below kRingEntries
  uint32_t sequence;     // non-zero, new for each job of the slot
  uint64_t frame;        // the caller's, returned with the completion
  uint32_t flags;        // kSubmit*
  uint32_t timeout_ms;   // 0: the daemon's limit
  uint32_t fence_in;     // a registered fence that is waited for, 0: none
  uint32_t fence_out;    // one that is signalled at the job's end
  uint64_t deadline_ns;  // not to be begun so long after now; 0: none
  uint32_t set;          // of the context's bindings
  uint32_t notify;       // as fence_out: a queue of completions
  uint64_t reserved;
};
static_assert(sizeof(Submission) == 64);

struct alignas(64) Completion {
  // Equals the submission's sequence once all other fields are valid. The word
  // the client sleeps on.
  std::atomic<uint32_t> sequence;
  int32_t code;  // base::Code
  uint64_t frame;
  uint64_t queue_ns;   // submission seen until start on the core
  uint64_t run_ns;     // start until end on the core, stamped by the worker
  uint64_t total_ns;   // submission seen until completion stored
  uint32_t core;       // lowest core it ran on
  uint32_t drops;      // frames of this context dropped since the last answer
  uint32_t text_size;  // bytes of texts[slot], 0 on success
  uint32_t count;      // jobs that a kCancel took back
  // Daemon: the sequence of the slot's job once that is on a core, for who
  // finds the daemon dead (kFeatureBegun). Valid before the other fields are.
  std::atomic<uint32_t> begun;
  uint32_t reserved;
};
static_assert(sizeof(Completion) == 64);

// Why a job failed. Apart from the record, so that success touches one cache
// line.
struct CompletionText {
  char text[256];
};

// What the client has copied for one of its contexts, since that was made. The
// daemon shows it and believes nothing of it. Stored without a lock: a reader
// may see one number newer than the other.
struct CopyRecord {
  uint64_t to_device_inputs_set;
  uint64_t from_device_outputs_get;
  uint32_t context;  // the session's number, 0: free
  uint32_t reserved;
};
static_assert(sizeof(CopyRecord) == 24);

// As many as fit behind what the ring's first layout had, into its last page:
// a peer that does not know them shares the same memory. Contexts of one
// process beyond them copy without being seen.
inline constexpr uint32_t kCopyRecords = 160;

struct alignas(64) RingHeader {
  uint32_t magic;
  uint32_t entries;
  uint8_t pad[56];
  alignas(64) std::atomic<uint32_t> tail;  // client: entries written
  // Client: whether somebody sleeps on a slot's completion, as bits. With
  // kFeatureSpin only who sleeps is woken: a wrong bit harms its writer.
  std::atomic<uint32_t> asleep[kRingEntries / 32];
  alignas(64) std::atomic<uint32_t> head;  // daemon: entries taken
  // Daemon: not 0 while a worker looks at `tail` by itself: with kFeatureSpin
  // the doorbell need not be rung.
  std::atomic<uint32_t> polled;
};
static_assert(sizeof(RingHeader) == 192);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

struct Ring {
  RingHeader header;
  Submission submissions[kRingEntries];
  Completion completions[kRingEntries];
  CompletionText texts[kRingEntries];
  CopyRecord copies[kCopyRecords];
};
// Both ends map the same bytes, whenever each was built.
static_assert(offsetof(Ring, submissions) == 192);
static_assert(offsetof(Ring, completions) == 192 + 128 * 64);
static_assert(offsetof(Ring, texts) == 192 + 2 * 128 * 64);
static_assert(offsetof(Ring, copies) == 192 + 2 * 128 * 64 + 128 * 256);
static_assert(offsetof(CopyRecord, from_device_outputs_get) == 8);
static_assert(offsetof(CopyRecord, context) == 16);

inline constexpr size_t kRingBytes = (sizeof(Ring) + 4095) / 4096 * 4096;
static_assert(kRingBytes == 13 * 4096);  // a peer may map that much

}  // namespace rknnd::wire

#endif  // PROTO_WIRE_RING_H_
