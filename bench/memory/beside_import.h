// What a large import costs the others: how long a second client waits for its
// control calls while the daemon takes in 512 MiB of a first one.

#ifndef BENCH_MEMORY_BESIDE_IMPORT_H_
#define BENCH_MEMORY_BESIDE_IMPORT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace rknnd::bench {

// With the daemon of `target`, "unix:PATH". Prints a line. Throws
// std::runtime_error.
nlohmann::json MeasureBesideImport(const std::string& target);

}  // namespace rknnd::bench

#endif  // BENCH_MEMORY_BESIDE_IMPORT_H_
