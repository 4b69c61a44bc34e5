// The models of attackers: small files that ask for much.

#ifndef BENCH_HOSTILE_MODELS_H_
#define BENCH_HOSTILE_MODELS_H_

#include <cstdint>
#include <string>

namespace rknnd::bench {

// So many products of 4000 x 4000, one after the other, without a weight.
std::string EndlessModel(int products);
// Constants that are computed from constants for as long as the loader lets a
// file, for each of four shapes. No two numbers give the same bytes.
std::string SlowToLoadModel(uint64_t number);

}  // namespace rknnd::bench

#endif  // BENCH_HOSTILE_MODELS_H_
