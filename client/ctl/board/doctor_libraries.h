// Which librknnrt.so programs on this machine load, and whose it is. Reads
// files, runs nothing. Used by doctor alone.

#ifndef CLIENT_CTL_BOARD_DOCTOR_LIBRARIES_H_
#define CLIENT_CTL_BOARD_DOCTOR_LIBRARIES_H_

#include <string>
#include <vector>

#include "client/ctl/board/finding.h"

namespace rknnd::client {

struct LibraryPlaces {
  std::string root;          // before /etc and the loader's own folders
  std::string library_path;  // LD_LIBRARY_PATH
  std::string own;           // the one that this program has loaded
};

// The places of this process.
LibraryPlaces OwnPlaces();

// The folders that the loader searches, in its order.
std::vector<std::string> LoaderFolders(const LibraryPlaces& places);

struct LibraryIdentity {
  bool readable = false;
  bool is_elf = false;
  bool ours = false;
  std::string version;  // "": it does not say
  std::string machine;  // what it is for, where that is not this machine
};
LibraryIdentity IdentifyLibrary(const std::string& path);

std::vector<Finding> CheckLibraries(const LibraryPlaces& places);

// A running rknn_server, which uses the NPU beside rknnd.
std::vector<Finding> CheckVendorServer(const std::string& root);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_BOARD_DOCTOR_LIBRARIES_H_
