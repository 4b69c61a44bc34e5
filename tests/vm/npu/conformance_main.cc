// Runs the conformance suite of devices (tests/conformance) on a real kernel
// with the stand-in for the NPU's driver: the process that computes for it is
// beside this program.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string npu = self.substr(0, self.rfind('/')) + "/vm_npu";
  const pid_t pid = fork();
  if (pid == 0) {
    execl(npu.c_str(), npu.c_str(), nullptr);
    _exit(127);
  }
  const int failed = RUN_ALL_TESTS();
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return failed;
}
