// One of the two sides that are compared: a process that has loaded one model
// and runs it when told to. It says "ready"; then each line to it is answered
// by one:
//
//   run N            runs the model N times: the microseconds of each, as JSON
//   outputs FOLDER   writes those of one run as FOLDER/<i>.bin, float32: how
//   many

#ifndef BENCH_PEERS_SIDE_H_
#define BENCH_PEERS_SIDE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "bench/peers/level.h"
#include "bench/peers/model_set.h"

namespace rknnd::bench {

// Stopped by a signal while it has nothing to answer: threads of a library may
// look for work for tens of milliseconds, on the CPUs of the other side.
//
// Thread: one. Throws std::runtime_error with the side's name.
class Side {
 public:
  // On the CPUs that the calling process may use.
  Side(std::string name, const base::ChildProcess::Options& options);
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side();

  std::vector<double> Run(int count);
  std::vector<std::vector<float>> Outputs();

 private:
  std::string Ask(const std::string& line);
  std::string NextLine();

  std::string name_;
  base::ChildProcess process_;
};

// What both programs are told: the model's file, threads, and name, type, shape
// and file of each input.
std::vector<std::string> SideArguments(const ModelSet& model, int threads);

// "1x3x320x320"
std::string ShapeText(const std::vector<uint32_t>& shape);

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_SIDE_H_
