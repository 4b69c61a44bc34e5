// For tests: a folder of their own that goes with its object.

#ifndef CLIENT_IMAGE_TEMPORARY_FOLDER_H_
#define CLIENT_IMAGE_TEMPORARY_FOLDER_H_

#include <stdlib.h>  // mkdtemp

#include <filesystem>
#include <string>

namespace rknnd::client {

// Thread: any, one at a time.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_((std::filesystem::temp_directory_path() / "rknnd-XXXXXX")
                  .string()) {
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  // "" when it could not be made.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string File(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

}  // namespace rknnd::client

#endif  // CLIENT_IMAGE_TEMPORARY_FOLDER_H_
