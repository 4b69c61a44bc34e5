// A small /sys, /proc and /dev of a board, in a temporary folder that goes with
// it.

#ifndef DAEMON_BOARD_TESTING_BOARD_TREE_H_
#define DAEMON_BOARD_TESTING_BOARD_TREE_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace rknnd::board::testing {

class BoardTree {
 public:
  BoardTree() {
    std::string name = std::filesystem::temp_directory_path() / "rknnd-XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~BoardTree() {
    std::error_code error;
    std::filesystem::remove_all(root_, error);
  }
  BoardTree(const BoardTree&) = delete;
  BoardTree& operator=(const BoardTree&) = delete;

  void Put(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void Folder(const std::string& path) const {
    std::filesystem::create_directories(root_ + path);
  }
  void Link(const std::string& path, const std::string& to) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_symlink(to, file);
  }
  void Remove(const std::string& path) const {
    std::filesystem::remove_all(root_ + path);
  }
  [[nodiscard]] std::string Get(const std::string& path) const {
    std::ifstream file(root_ + path);
    std::string text((std::istreambuf_iterator<char>(file)),
                     std::istreambuf_iterator<char>());
    return text.substr(0, text.find('\n'));
  }
  [[nodiscard]] bool Has(const std::string& path) const {
    return std::filesystem::exists(root_ + path);
  }
  [[nodiscard]] const std::string& root() const { return root_; }

  // As an RK3588 of the vendor's kernel has them.
  void AddClocks() const {
    for (const auto* device : {"fdab0000.npu", "dmc"}) {
      const std::string folder = std::string("/sys/class/devfreq/") + device;
      Put(folder + "/governor",
          std::string(device) == "dmc" ? "dmc_ondemand\n" : "rknpu_ondemand\n");
      Put(folder + "/available_governors",
          "rknpu_ondemand userspace powersave performance\n");
      Put(folder + "/cur_freq", "300000000\n");
      Put(folder + "/min_freq", "300000000\n");
      Put(folder + "/max_freq", "1000000000\n");
    }
    for (const auto* policy : {"policy0", "policy4"}) {
      const std::string folder =
          std::string("/sys/devices/system/cpu/cpufreq/") + policy;
      Put(folder + "/scaling_governor", "ondemand\n");
      Put(folder + "/scaling_available_governors", "ondemand performance\n");
      Put(folder + "/scaling_cur_freq", "408000\n");
      Put(folder + "/scaling_min_freq", "408000\n");
      Put(folder + "/scaling_max_freq", "2256000\n");
    }
  }

 private:
  std::string root_;
};

}  // namespace rknnd::board::testing

#endif  // DAEMON_BOARD_TESTING_BOARD_TREE_H_
