// rknnd-k8s: reads its options, runs the plugin until it is told to stop.

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "k8s/log.h"
#include "k8s/plugin.h"

namespace rknnd::k8s {
namespace {

constexpr int kBadUsage = 2;

int Fail(const absl::Status& status) {
  Log(Severity::kError, std::string(status.message()));
  return 1;
}

void NotifyStatus(const std::string& text) {
  sd_notify(0, absl::StrCat("STATUS=", text).c_str());
}

int Serve(PluginOptions options) {
  // Before any thread is made, so that all have them blocked.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  // The plugin's socket is for the kubelet. Other modes are set by name.
  umask(0077);

  const base::MonotonicClock clock;
  auto loop = base::EventLoop::Create(&clock);
  if (!loop.ok()) return Fail(base::ToStatus(loop.error()));
  const base::UniqueFd signals(signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return Fail(absl::ErrnoToStatus(errno, "signalfd"));
  auto watch = (*loop)->Watch(signals.get(), EPOLLIN,
                              [&loop](uint32_t) { (*loop)->Quit(); });
  if (!watch.ok()) return Fail(base::ToStatus(watch.error()));

  options.loop = loop->get();
  options.tell = NotifyStatus;
  {
    Plugin plugin(std::move(options));
    absl::Status started;
    // On the loop's own thread, as all the rest.
    (*loop)->Post([&] {
      started = plugin.Start();
      if (!started.ok()) return (*loop)->Quit();
      sd_notify(0, "READY=1");
    });
    (*loop)->Run();
    if (!started.ok()) return Fail(started);
    sd_notify(0, "STOPPING=1");
  }
  (*loop)->Unwatch(*watch);
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Kubernetes device plugin for rknnd: gives pods shares of this node's "
      "NPU, each as a session socket of its own.");
  PluginOptions options;
  uint64_t grace_s = options.grace / base::kSecond;
  uint64_t interval_s = options.interval / base::kSecond;
  app.add_option("--resource", options.resource,
                 "What pods ask for by this name")
      ->capture_default_str();
  app.add_option("--shares", options.shares,
                 "Into how many shares the NPU is divided, 1 to 256; "
                 "default: 4 for each core that rknnd has")
      ->check(CLI::Range(1U, kMostShares));
  app.add_option("--kubelet-dir", options.kubelet_dir,
                 "The kubelet's folder for device plugins")
      ->capture_default_str();
  app.add_option("--socket-dir", options.socket_dir,
                 "rknnd's folder: admin.sock is there, pods/ is made there")
      ->capture_default_str();
  app.add_option("--grace", grace_s,
                 "Seconds without rknnd after which shares are unhealthy")
      ->check(CLI::Range(uint64_t{0}, uint64_t{3600}))
      ->capture_default_str();
  app.add_option("--interval", interval_s,
                 "Seconds from one question after rknnd's health to the next")
      ->check(CLI::Range(uint64_t{1}, uint64_t{3600}))
      ->capture_default_str();
  app.set_version_flag("--version", "rknnd-k8s " RKNND_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  if (const absl::Status named = CheckResourceName(options.resource);
      !named.ok()) {
    std::fprintf(stderr, "rknnd-k8s: %s\n",
                 std::string(named.message()).c_str());
    return kBadUsage;
  }
  options.grace = static_cast<base::Nanoseconds>(grace_s) * base::kSecond;
  options.interval = static_cast<base::Nanoseconds>(interval_s) * base::kSecond;
  return Serve(std::move(options));
}

}  // namespace
}  // namespace rknnd::k8s

int main(int argc, char** argv) { return rknnd::k8s::Main(argc, argv); }
