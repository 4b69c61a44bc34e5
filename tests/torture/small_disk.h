// The disk that the daemon's cache is on, small enough to be filled: a tmpfs of
// this program's own mount namespace, or where that may not be made, a folder
// below which the injection library finds no room.

#ifndef TESTS_TORTURE_SMALL_DISK_H_
#define TESTS_TORTURE_SMALL_DISK_H_

#include <string>

#include "tests/torture/injection.h"

namespace rknnd::torture {

// Thread: one, of a program that has no other yet. Throws std::runtime_error.
class SmallDisk {
 public:
  // Makes the folder. `page` is the daemon's.
  SmallDisk(const std::string& folder, InjectionPage* page);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  void Fill();
  void Free();
  [[nodiscard]] bool is_mounted() const { return mounted_; }

 private:
  const std::string folder_, filler_;
  InjectionPage* const page_;
  bool mounted_ = false;
};

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_SMALL_DISK_H_
