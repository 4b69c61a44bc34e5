#include "driver/rknnrt/worker/call_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace rknnd::rknnrt {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

constexpr size_t kMostPath = 256;

// Written once, before there is a guard, which reads it.
char library_folder[PATH_MAX];

std::atomic<uint64_t> refused{0};
std::array<char, kMostPath + 128> last_refused{};
std::atomic_flag writing_last = ATOMIC_FLAG_INIT;

struct NamedCall {
  long number;
  const char* name;
};
constexpr NamedCall kRefused[] = {
    {SYS_socket, "socket"},
    {SYS_connect, "connect"},
    {SYS_bind, "bind"},
    {SYS_listen, "listen"},
    {SYS_execve, "execve"},
    {SYS_execveat, "execveat"},
    {SYS_ptrace, "ptrace"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_process_vm_writev, "process_vm_writev"},
    {SYS_pidfd_getfd, "pidfd_getfd"},
    {SYS_kcmp, "kcmp"},
    {SYS_mount, "mount"},
    {SYS_umount2, "umount2"},
    {SYS_pivot_root, "pivot_root"},
    {SYS_chroot, "chroot"},
    {SYS_setns, "setns"},
    {SYS_unshare, "unshare"},
    {SYS_bpf, "bpf"},
    {SYS_perf_event_open, "perf_event_open"},
    {SYS_keyctl, "keyctl"},
    {SYS_add_key, "add_key"},
    {SYS_request_key, "request_key"},
    {SYS_init_module, "init_module"},
    {SYS_finit_module, "finit_module"},
    {SYS_delete_module, "delete_module"},
    {SYS_kexec_load, "kexec_load"},
    {SYS_reboot, "reboot"},
    {SYS_swapon, "swapon"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_renameat2, "renameat2"},
    {SYS_linkat, "linkat"},
    {SYS_symlinkat, "symlinkat"},
    {SYS_mkdirat, "mkdirat"},
    {SYS_mknodat, "mknodat"},
    {SYS_fchmodat, "fchmodat"},
    {SYS_fchownat, "fchownat"},
    {SYS_truncate, "truncate"},
    {SYS_io_uring_setup, "io_uring_setup"},
#if defined(__x86_64__)
    {SYS_fork, "fork"},
    {SYS_vfork, "vfork"},
    {SYS_unlink, "unlink"},
    {SYS_rename, "rename"},
    {SYS_renameat, "renameat"},
    {SYS_link, "link"},
    {SYS_symlink, "symlink"},
    {SYS_mkdir, "mkdir"},
    {SYS_rmdir, "rmdir"},
    {SYS_mknod, "mknod"},
    {SYS_chmod, "chmod"},
    {SYS_chown, "chown"},
#endif
};
// The guard looks at their paths.
constexpr long kOpening[] = {
#if defined(__x86_64__)
    SYS_open,
    SYS_creat,
#endif
    SYS_openat,
};

bool StartsWith(const char* text, const char* start) {
  return std::strncmp(text, start, std::strlen(start)) == 0;
}

bool IsOrIsBelow(const char* path, const char* name) {
  const size_t size = std::strlen(name);
  return std::strncmp(path, name, size) == 0 &&
         (path[size] == '\0' || path[size] == '/');
}

// Takes no lock, like all that the guard does: whose call it looks at may hold
// it.
void NoteRefusal(const char* call, const char* path) {
  char line[kMostPath + 128];
  const int size = path == nullptr
                       ? std::snprintf(line, sizeof line, "%s", call)
                       : std::snprintf(line, sizeof line, "%s '%.*s'", call,
                                       static_cast<int>(kMostPath), path);
  if (size <= 0) return;
  if (!writing_last.test_and_set()) {
    std::snprintf(last_refused.data(), last_refused.size(), "%s", line);
    writing_last.clear();
  }
  ++refused;
  char message[sizeof line + 64];
  const int length = std::snprintf(
      message, sizeof message,
      "refused by the worker's filter of system calls: %s\n", line);
  (void)!write(STDERR_FILENO, message, static_cast<size_t>(length));
}

// 0: the call goes on.
int JudgeOpen(int folder, const char* path, uint64_t flags) {
  if (path == nullptr) return 0;
  char whole[PATH_MAX + kMostPath];
  const char* judged = path;
  if (path[0] != '/') {
    char name[64];
    std::snprintf(name, sizeof name, "/proc/self/fd/%d", folder);
    const ssize_t size =
        folder == AT_FDCWD ? 0 : readlink(name, whole, PATH_MAX - 1);
    if (size < 0) return EBADF;
    std::snprintf(whole + size, sizeof whole - static_cast<size_t>(size), "/%s",
                  path);
    judged = whole;
  }
  const bool writes =
      (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  if (MayOpen(judged, writes, library_folder)) return 0;
  // What is not there is no matter, and libraries look at many places.
  if (access(judged, F_OK) != 0 && (flags & O_CREAT) == 0) return 0;
  NoteRefusal(writes ? "open for writing" : "open", judged);
  return EACCES;
}

int Judge(const seccomp_data& call) {
  const auto path = [&](size_t i) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an argument of the call
    return reinterpret_cast<const char*>(call.args[i]);
  };
  switch (call.nr) {
#if defined(__x86_64__)
    case SYS_open:
      return JudgeOpen(AT_FDCWD, path(0), call.args[1]);
    case SYS_creat:
      return JudgeOpen(AT_FDCWD, path(0), O_CREAT | O_WRONLY);
#endif
    case SYS_openat:
      return JudgeOpen(static_cast<int>(call.args[0]), path(1), call.args[2]);
    case SYS_clone:
      NoteRefusal("clone of a process", nullptr);
      return EPERM;
    default:
      break;
  }
  for (const NamedCall& refused_call : kRefused) {
    if (refused_call.number == call.nr) NoteRefusal(refused_call.name, nullptr);
  }
  return EPERM;
}

// The guard's thread: who made the call waits for it. Not a signal's handler,
// as libraries block signals in threads of theirs.
[[noreturn]] void Guard(int listener) {
  // The kernel's structures may be larger than the headers'.
  union Request {
    seccomp_notif notice;
    char room[1024];
  };
  union Response {
    seccomp_notif_resp answer;
    char room[1024];
  };
  for (;;) {
    Request request = {};
    std::memset(&request, 0, sizeof request);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) continue;
    Response response = {};
    std::memset(&response, 0, sizeof response);
    const int error = Judge(request.notice.data);
    response.answer.id = request.notice.id;
    response.answer.error = -error;
    response.answer.flags = error == 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
  }
}

constexpr uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr uint16_t kIfEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr uint16_t kIfSet = BPF_JMP | BPF_JSET | BPF_K;
constexpr uint16_t kReturn = BPF_RET | BPF_K;

// Jumps are relative: each test here stands before what it guards.
std::vector<sock_filter> MakeFilter() {
  std::vector<sock_filter> code;
  const auto add = [&](uint16_t what, uint32_t k, uint8_t yes, uint8_t no) {
    code.push_back({what, yes, no, k});
  };
  add(kLoad, offsetof(seccomp_data, arch), 0, 0);
  add(kIfEqual, kArchitecture, 1, 0);
  add(kReturn, SECCOMP_RET_KILL_PROCESS, 0, 0);
  add(kLoad, offsetof(seccomp_data, nr), 0, 0);
#if defined(__x86_64__)
  // The numbers of x32 would pass by those below.
  add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
  add(kReturn, SECCOMP_RET_KILL_PROCESS, 0, 0);
#endif
  const auto judge = [&](long number) {
    add(kIfEqual, static_cast<uint32_t>(number), 0, 1);
    add(kReturn, SECCOMP_RET_USER_NOTIF, 0, 0);
  };
  for (const NamedCall& call : kRefused) judge(call.number);
  for (const long number : kOpening) judge(number);
  // The C library has the older ones for both, whose arguments can be seen.
  for (const long number : {SYS_clone3, SYS_openat2}) {
    add(kIfEqual, static_cast<uint32_t>(number), 0, 1);
    add(kReturn, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
  }
  // Threads, and no processes.
  add(kIfEqual, SYS_clone, 0, 4);
  add(kLoad, offsetof(seccomp_data, args), 0, 0);
  add(kIfSet, CLONE_THREAD, 0, 1);
  add(kReturn, SECCOMP_RET_ALLOW, 0, 0);
  add(kReturn, SECCOMP_RET_USER_NOTIF, 0, 0);
  add(kReturn, SECCOMP_RET_ALLOW, 0, 0);
  return code;
}

}  // namespace

bool MayOpen(const char* path, bool writes, const char* folder) {
  if (std::strstr(path, "/../") != nullptr) return false;
  const size_t size = std::strlen(path);
  if (size >= 3 && std::strcmp(path + size - 3, "/..") == 0) return false;
  // The NPU, its memory, and a GPU that operators may fall back to.
  for (const char* node :
       {"/dev/dri", "/dev/dma_heap", "/dev/udmabuf", "/dev/rknpu", "/dev/mali0",
        "/dev/null", "/dev/zero", "/dev/urandom"}) {
    if (IsOrIsBelow(path, node)) return true;
  }
  // Its threads' names, for one.
  if (StartsWith(path, "/proc/self/task/")) return true;
  if (writes) return false;
  if (StartsWith(path, "/proc/")) {
    // Of other processes nothing.
    const char* const next = path + std::strlen("/proc/");
    return *next < '0' || *next > '9' || std::atol(next) == getpid();
  }
  if (folder[0] != '\0' && IsOrIsBelow(path, folder)) return true;
  for (const char* allowed :
       {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/local/lib/",
        "/usr/share/", "/etc/ld.so", "/etc/localtime", "/etc/OpenCL/", "/sys/",
        "/vendor/lib"}) {
    if (StartsWith(path, allowed)) return true;
  }
  return false;
}

base::Expected<void> InstallCallFilter(const std::string& folder) {
  std::snprintf(library_folder, sizeof library_folder, "%s", folder.c_str());
  std::vector<sock_filter> code = MakeFilter();
  const sock_fprog program = {static_cast<unsigned short>(code.size()),
                              code.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return base::ErrnoError(errno, "prctl(PR_SET_NO_NEW_PRIVS)");
  }
  const long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (listener < 0) {
    return base::ErrnoError(errno, "seccomp with a listener");
  }
  std::thread(Guard, static_cast<int>(listener)).detach();
  return {};
}

uint64_t RefusedCalls() { return refused.load(); }

std::string LastRefusedCall() { return last_refused.data(); }

}  // namespace rknnd::rknnrt
