// Programs that fork with a session open, in the ways programs do it.
//
//   fork_ways threads MODEL COUNT  forks COUNT times while threads run
//   fork_ways daemon MODEL         goes on as a child without a parent
//   fork_ways exec MODEL           starts other programs in every way there is
//   fork_ways fds                  such a program: lists what it was left
//
// MODEL computes max(x, 0). Prints what is not as it should be; exits with 0
// when all is.

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rknnd.hpp"

namespace {

constexpr int kHighestFd = 256;

void Require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// A context on memory, which knows its answers.
class Relu {
 public:
  explicit Relu(const std::string& model)
      : context(rknnd::Context::FromFile(model)),
        in_(rknnd::Memory::Create(context, Bytes(In()))),
        out_(rknnd::Memory::Create(context, Bytes(Out()))) {
    context.Bind(In(), in_);
    context.Bind(Out(), out_);
  }

  // Runs on numbers of this seed.
  void Check(int seed) {
    const uint32_t count = In().elements();
    std::vector<float> values(count);
    for (uint32_t i = 0; i < count; ++i) {
      values[i] =
          static_cast<float>(static_cast<int>(i * 5 + seed) % 17 - 8) / 4.0F;
    }
    std::copy(values.begin(), values.end(), in_.as<float>());
    std::fill_n(out_.as<float>(), count, -1.0F);
    context.Run();
    for (uint32_t i = 0; i < count; ++i) {
      Require(out_.as<float>()[i] == std::max(values[i], 0.0F),
              "a wrong answer");
    }
  }

  rknnd::Context context;

 private:
  [[nodiscard]] rknnd::Tensor In() const {
    return context.inputs()[0].WithType(RKNN_TENSOR_FLOAT32);
  }
  [[nodiscard]] rknnd::Tensor Out() const {
    return context.outputs()[0].WithType(RKNN_TENSOR_FLOAT32);
  }
  static uint32_t Bytes(const rknnd::Tensor& tensor) {
    return tensor.elements() * 4;
  }

  rknnd::Memory in_, out_;
};

// What a child may expect: its parent's context is refused with the reason, and
// one of its own works.
void BeChild(const std::string& model, rknn_context parents) {
  Require(rknn_run(parents, nullptr) == RKNN_ERR_CTX_INVALID,
          "a child may run its parent's context");
  Require(std::string(rknnd_last_error()).find("fork()") != std::string::npos,
          std::string("the error does not name fork(): ") + rknnd_last_error());
  Relu own(model);
  own.Check(3);
  own.Check(4);
}

// In a child: the parent's memory is not for it to free.
template <class Body>
[[noreturn]] void EndWith(Body body) {
  int code = 1;
  try {
    body();
    code = 0;
  } catch (const std::exception& error) {
    std::printf("in a child: %s\n", error.what());
    std::fflush(stdout);
  }
  _exit(code);
}

int Wait(pid_t child) {
  int status = 0;
  Require(child > 0 && waitpid(child, &status, 0) == child, "waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Threads(const std::string& model, int count) {
  constexpr int kThreads = 3;
  Relu relu(model);
  relu.Check(0);
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      try {
        Relu own(model);
        for (int frame = t; !stop; ++frame) own.Check(frame);
      } catch (const std::exception& error) {
        std::printf("beside the forks: %s\n", error.what());
        ++failed;
      }
    });
  }
  int wrong = 0;
  for (int i = 0; i < count && wrong == 0; ++i) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) EndWith([&] { BeChild(model, relu.context.handle()); });
    wrong += Wait(child) != 0 ? 1 : 0;
    relu.Check(i);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  Require(wrong == 0, "a child ended with an error");
  Require(failed == 0, "a thread ended with an error");
}

// As daemon(3) and its like: the parent goes at once, and the child closes all
// it has and opens files of its own.
void Daemon(const std::string& model) {
  Relu relu(model);
  relu.Check(0);
  std::fflush(stdout);
  const pid_t child = fork();
  Require(child >= 0, "fork");
  if (child != 0) _exit(0);
  EndWith([&] {
    setsid();
    std::vector<std::pair<int, ino_t>> files;
    for (int fd = 3; fd < kHighestFd; ++fd) close(fd);
    for (int i = 0; i < 64; ++i) {
      char name[] = "/tmp/fork_ways-XXXXXX";
      const int fd = mkstemp(name);
      struct stat status {};
      Require(fd >= 0 && fstat(fd, &status) == 0, "mkstemp");
      unlink(name);
      files.emplace_back(fd, status.st_ino);
    }
    BeChild(model, relu.context.handle());
    for (const auto& [fd, inode] : files) {
      struct stat status {};
      Require(fstat(fd, &status) == 0 && status.st_ino == inode,
              "a file of the child's was closed");
    }
    std::puts("done");
    std::fflush(stdout);
  });
}

int ListFds() {
  int count = 0;
  for (int fd = 3; fd < kHighestFd; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) continue;
    std::array<char, 256> name{};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    [[maybe_unused]] const ssize_t size =
        readlink(link.c_str(), name.data(), name.size() - 1);
    std::printf("%d is %s\n", fd, name.data());
    ++count;
  }
  return count;
}

void Exec(const std::string& model, const std::string& self) {
  // Of whoever started this one.
  for (int fd = 3; fd < kHighestFd; ++fd) close(fd);
  Relu relu(model);
  relu.Check(0);
  rknnd::Queue queue = rknnd::Queue::Create();
  relu.context.Submit(rknnd::RunOptions().Notify(queue));
  std::string program = self;
  std::string word = "fds";
  char* const arguments[] = {program.data(), word.data(), nullptr};

  pid_t child = fork();
  if (child == 0) {
    execv(program.c_str(), arguments);
    _exit(127);
  }
  Require(Wait(child) == 0, "fds left by fork and exec");
  child = vfork();
  if (child == 0) {
    execv(program.c_str(), arguments);
    _exit(127);
  }
  Require(Wait(child) == 0, "fds left by vfork and exec");
  Require(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments,
                      environ) == 0,
          "posix_spawn");
  Require(Wait(child) == 0, "fds left by posix_spawn");
  // NOLINTNEXTLINE(cert-env33-c): what programs do
  const int status = std::system((program + " fds").c_str());
  Require(WIFEXITED(status) && WEXITSTATUS(status) == 0,
          "fds left by system()");
  // And the parent is none the worse.
  relu.Check(1);
  while (!queue.Next()) {
    pollfd wait = {queue.fd(), POLLIN, 0};
    Require(poll(&wait, 1, 60'000) == 1, "no completion came for a minute");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 1 && words[0] == "fds") return ListFds();
    if (words.size() == 3 && words[0] == "threads") {
      Threads(words[1], std::stoi(words[2]));
      return 0;
    }
    if (words.size() == 2 && words[0] == "daemon") {
      Daemon(words[1]);
      return 0;
    }
    if (words.size() == 2 && words[0] == "exec") {
      Exec(words[1], argv[0]);
      return 0;
    }
    std::fputs("usage: fork_ways threads|daemon|exec|fds [MODEL [COUNT]]\n",
               stderr);
    return 2;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
