// Where benchmarks find models: the repository's detector, and the real ones
// that lie beside the repository on some machines.

#ifndef BENCH_COMMON_MODEL_FILES_H_
#define BENCH_COMMON_MODEL_FILES_H_

#include <filesystem>
#include <string>
#include <vector>

namespace rknnd::bench {

// The folder of real models ($RKNND_SHARED, else beside the repository); need
// not be there.
std::filesystem::path SharedModels();
// One of them; empty where it is not there.
std::string FindSharedModel(const std::string& name);
// What tables call a file: its folder's name where it is such a one.
std::string ModelName(const std::filesystem::path& path);
// The detector, then all of them by name. Says on stderr when there are none.
std::vector<std::filesystem::path> FindModels();

}  // namespace rknnd::bench

#endif  // BENCH_COMMON_MODEL_FILES_H_
