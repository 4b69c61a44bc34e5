// The files of dumps that rknnctl accuracy compares: which of one folder is the
// tensor of which of another. Files of a dump are <ID>_<OpType>_<tensor>.npy;
// IDs differ between networks for comparison and the model itself, what follows
// does not (docs/accuracy.md). Touches nothing but the folders it is given.

#ifndef CLIENT_CTL_ACCURACY_ACCURACY_FILES_H_
#define CLIENT_CTL_ACCURACY_ACCURACY_FILES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/values/expected.h"

namespace rknnd::client {

struct DumpedFile {
  std::string file;  // "0003_ConvRelu_464.npy"
  std::string stem;  // "ConvRelu_464"
  std::string type;  // "ConvRelu"
  std::string name;  // "464"
};

// In the order of running. Files of other names are left out.
std::vector<DumpedFile> FilesOfDump(const std::string& folder);

// Makes `folder` if need be and takes away what an earlier dump has left there.
base::Expected<void> ClearDump(const std::string& folder);

// The dump in `folder` gets the file names of `like`, by type and tensor; what
// `like` lacks goes.
base::Expected<void> NameFilesLike(const std::vector<DumpedFile>& like,
                                   const std::string& folder);

// As NameFilesLike with the dump of another model in `from`, by tensor alone,
// into `folder`: which layer makes a tensor differs between the quantised and
// the float model, and quantisers add endings to its name. How many were found.
base::Expected<size_t> TakeFilesLike(const std::vector<DumpedFile>& like,
                                     const std::string& from,
                                     const std::string& folder);

// "464" of "464_QuantizeLinear_Output": without what quantisers add.
std::string_view PlainTensorName(std::string_view name);

// Bytes of a dump's files.
uint64_t BytesOf(const std::string& folder);

// Whether `bytes` more fit where `folder` is; `free` as statvfs tells.
base::Expected<void> CheckSpace(const std::string& folder, uint64_t bytes,
                                uint64_t free);
base::Expected<uint64_t> FreeSpace(const std::string& folder);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_ACCURACY_ACCURACY_FILES_H_
