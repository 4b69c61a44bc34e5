// The weights of all models that a device has loaded: what is alike exists
// once, whichever model, session or process brought it. "Alike" means equal
// bytes, compared: no hash is trusted, so that nobody can put his weights in
// another's place.

#ifndef DRIVER_SOFT_PLAN_WEIGHT_POOL_H_
#define DRIVER_SOFT_PLAN_WEIGHT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "base/posix/mutex.h"
#include "driver/soft/plan/weight_chunk.h"

namespace rknnd::soft {

// Thread: any. Its lock is a leaf.
class WeightPool {
  struct Chunk;

 public:
  // What is smaller costs more to find than to have again, and would keep the
  // page it lies in.
  static constexpr size_t kSmallestShared = 256;

  // A model, from its first piece to its end; numbers are never used twice.
  using User = uint64_t;
  // Contents in a chunk, and how many models use them.
  struct Piece {
    Chunk* chunk = nullptr;
    size_t offset = 0, size = 0;
    uint64_t uses = 0;
  };

  User NewUser();

  // Equal contents that another model has; then `user` uses them too, until
  // GiveBack. Null: there are none.
  Piece* Find(User user, std::string_view contents);
  // Adds a sealed chunk that `user` made, with pieces at these offsets. Each is
  // used once, and can be found from now on unless it is small, or there is one
  // like it already (of a model that was loaded at the same time).
  struct Place {
    size_t offset = 0, size = 0;
  };
  std::vector<Piece*> Add(User user, std::unique_ptr<WeightChunk> chunk,
                          std::span<const Place> places);
  void GiveBack(User user, std::span<Piece* const> pieces);

  // Where a piece lies for as long as it is used.
  static const std::byte* AddressOf(const Piece& piece);

  // Bytes this user pays for: whole chunks, each paid for by the one of its
  // users that came first.
  [[nodiscard]] uint64_t HeldBy(User user) const;
  // Of all chunks.
  [[nodiscard]] uint64_t held() const;

 private:
  struct Chunk {
    std::unique_ptr<WeightChunk> memory;
    std::vector<Piece> pieces;  // sized once: they are pointed at
    // In the order they came, with the number of pieces each uses.
    std::vector<std::pair<User, uint64_t>> users;
    std::list<Chunk>::iterator self;
  };

  static void CountUse(Chunk& chunk, User user);
  void Release(User user, Piece& piece) RKNND_REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  User last_user_ RKNND_GUARDED_BY(mutex_) = 0;
  std::list<Chunk> chunks_ RKNND_GUARDED_BY(mutex_);
  // Keys point into the chunks. Absl's hash has a seed: a file cannot make
  // many collide.
  std::unordered_map<std::string_view, Piece*, absl::Hash<std::string_view>>
      contents_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_WEIGHT_POOL_H_
