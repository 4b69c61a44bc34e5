#include "driver/soft/plan/weight_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rknnd::soft {

namespace {

std::string_view ContentsOf(const WeightPool::Piece& piece) {
  return {reinterpret_cast<const char*>(WeightPool::AddressOf(piece)),
          piece.size};
}

}  // namespace

const std::byte* WeightPool::AddressOf(const Piece& piece) {
  return piece.chunk->memory->data() + piece.offset;
}

WeightPool::User WeightPool::NewUser() {
  base::MutexLock lock(mutex_);
  return ++last_user_;
}

void WeightPool::CountUse(Chunk& chunk, User user) {
  for (auto& [known, pieces] : chunk.users) {
    if (known != user) continue;
    ++pieces;
    return;
  }
  chunk.users.emplace_back(user, 1);
}

WeightPool::Piece* WeightPool::Find(User user, std::string_view contents) {
  if (contents.size() < kSmallestShared) return nullptr;
  base::MutexLock lock(mutex_);
  const auto found = contents_.find(contents);
  if (found == contents_.end()) return nullptr;
  Piece* const piece = found->second;
  ++piece->uses;
  CountUse(*piece->chunk, user);
  return piece;
}

std::vector<WeightPool::Piece*> WeightPool::Add(
    User user, std::unique_ptr<WeightChunk> memory,
    std::span<const Place> places) {
  std::vector<Piece*> pieces;
  pieces.reserve(places.size());
  base::MutexLock lock(mutex_);
  chunks_.emplace_back();
  Chunk& chunk = chunks_.back();
  chunk.memory = std::move(memory);
  chunk.self = std::prev(chunks_.end());
  chunk.pieces.resize(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    Piece& piece = chunk.pieces[i];
    piece = {&chunk, places[i].offset, places[i].size, 1};
    chunk.memory->Use(piece.offset, piece.size);
    CountUse(chunk, user);
    if (piece.size >= kSmallestShared) {
      contents_.emplace(ContentsOf(piece), &piece);
    }
    pieces.push_back(&piece);
  }
  if (pieces.empty()) chunks_.erase(chunk.self);
  return pieces;
}

void WeightPool::Release(User user, Piece& piece) {
  Chunk& chunk = *piece.chunk;
  const auto mine =
      std::find_if(chunk.users.begin(), chunk.users.end(),
                   [user](const auto& known) { return known.first == user; });
  if (--mine->second == 0) chunk.users.erase(mine);
  if (--piece.uses > 0) return;
  if (piece.size >= kSmallestShared) {
    const auto found = contents_.find(ContentsOf(piece));
    if (found != contents_.end() && found->second == &piece) {
      contents_.erase(found);
    }
  }
  chunk.memory->Drop(piece.offset, piece.size);
  if (!chunk.memory->used()) chunks_.erase(chunk.self);
}

void WeightPool::GiveBack(User user, std::span<Piece* const> pieces) {
  base::MutexLock lock(mutex_);
  for (Piece* const piece : pieces) Release(user, *piece);
}

uint64_t WeightPool::HeldBy(User user) const {
  base::MutexLock lock(mutex_);
  uint64_t held = 0;
  for (const Chunk& chunk : chunks_) {
    if (chunk.users.front().first == user) held += chunk.memory->held();
  }
  return held;
}

uint64_t WeightPool::held() const {
  base::MutexLock lock(mutex_);
  uint64_t held = 0;
  for (const Chunk& chunk : chunks_) held += chunk.memory->held();
  return held;
}

}  // namespace rknnd::soft
