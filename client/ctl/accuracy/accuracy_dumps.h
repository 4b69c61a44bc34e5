// Runs that rknnctl accuracy compares: of a model and of its networks for
// comparison, on one target, each layer's output as .npy files. They happen in
// a process of their own, because librknnrt.so keeps to one target for a
// process's life; it has no other threads yet then.

#ifndef CLIENT_CTL_ACCURACY_ACCURACY_DUMPS_H_
#define CLIENT_CTL_ACCURACY_ACCURACY_DUMPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/values/expected.h"

namespace rknnd::client {

struct AccuracyDump {
  std::string model;
  // "" is the model itself, "golden" and "single" as option 'accuracy'.
  std::string variant;
  std::string folder;  // empty, made by ClearDump
};

struct AccuracyDumps {
  std::string target;  // RKNND_TARGET
  std::string what;    // for the line of progress: "simulator"
  std::vector<std::string> inputs;
  std::vector<AccuracyDump> dumps;  // the first one is of the model itself
  // How many times the tensors of the first are going to be written in all, by
  // this and what comes after: that much room has to be there before the first
  // is written. 0: it is known to be.
  unsigned copies = 0;
  // A folder for changed copies of the model; they are taken away again.
  std::string scratch;
  // A device that has no networks for comparison is no error.
  bool may_lack_variants = false;
  bool quiet = false;  // no progress
};

// For each of the dumps why there is none, or "".
base::Expected<std::vector<std::string>> MakeDumps(const AccuracyDumps& dumps);

// The bytes of an ONNX file's metadata entry, to be put behind the file: a
// message of protobuf may be continued so.
std::string MetadataEntry(const std::string& key, const std::string& value);

// Elements of a shape as layer reports have it: "1x64x80x80". 0: none.
uint64_t ElementsOf(const std::string& shape);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_ACCURACY_ACCURACY_DUMPS_H_
