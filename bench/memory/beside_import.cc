// See beside_import.h.

#include "bench/memory/beside_import.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "bench/common/failure.h"
#include "client/session/connection.h"
#include "proto/wire/codec.h"

namespace rknnd::bench {
namespace {

constexpr uint64_t kLarge = uint64_t{512} << 20;
constexpr uint64_t kSmall = 4096;
constexpr int kImports = 5;
constexpr base::Nanoseconds kTimeout = 60 * base::kSecond;

// One session. Thread: one.
class Peer {
 public:
  explicit Peer(const std::string& target) {
    constexpr std::string_view kScheme = "unix:";
    if (!target.starts_with(kScheme)) Fail("no local daemon: " + target);
    auto socket = base::ConnectUnix(target.substr(kScheme.size()));
    if (!socket.ok()) Fail(socket.error().message);
    const base::Nanoseconds deadline = base::MonotonicClock().Now() + kTimeout;
    std::optional<wire::SessionClient> client(*std::move(socket));
    const auto hello =
        client->SayHello(client::Connection::Introduction(), deadline);
    if (!hello.ok()) Fail(hello.error().message);
    auto opened = client::Connection::AwaitWelcome(client, deadline);
    if (!opened.ok()) Fail(opened.error().message);
    connection_ = *std::move(opened);
  }

  template <class Message>
  void Call(wire::Verb verb, const Message& message,
            std::span<const int> fds = {}) {
    auto body = wire::Encode(message);
    if (!body.ok()) Fail(body.error().message);
    const auto reply =
        connection_->Request(verb, *std::move(body), fds, kTimeout);
    if (!reply.ok()) Fail(reply.error().message);
  }
  void Release(uint32_t buffer) {
    wire::ReleaseBuffer release{};
    release.buffer = buffer;
    Call(wire::Verb::kReleaseBuffer, release);
  }

 private:
  std::shared_ptr<client::Connection> connection_;
};

base::Nanoseconds Import(Peer& peer) {
  // A fresh one each time: its pages are yet to be found.
  const auto memfd = base::MakeMemfd("large", kLarge);
  if (!memfd.ok()) Fail(memfd.error().message);
  wire::ImportBuffer import{};
  import.buffer = 1;
  import.size = kLarge;
  const int fds[] = {memfd->get()};
  const base::MonotonicClock clock;
  const base::Nanoseconds begin = clock.Now();
  peer.Call(wire::Verb::kImportBuffer, import, fds);
  const base::Nanoseconds took = clock.Now() - begin;
  peer.Release(1);
  return took;
}

// The slowest of a pair of calls, and how many there were, until `over`.
std::pair<base::Nanoseconds, int> CallUntil(Peer& peer,
                                            const std::atomic<bool>& over) {
  const base::MonotonicClock clock;
  base::Nanoseconds slowest = 0;
  int calls = 0;
  while (!over) {
    const base::Nanoseconds begin = clock.Now();
    wire::AllocateBuffer allocate{};
    allocate.buffer = 1;
    allocate.size = kSmall;
    peer.Call(wire::Verb::kAllocateBuffer, allocate);
    const base::Nanoseconds between = clock.Now();
    peer.Release(1);
    slowest = std::max({slowest, between - begin, clock.Now() - between});
    calls += 2;
  }
  return {slowest, calls};
}

}  // namespace

nlohmann::json MeasureBesideImport(const std::string& target) {
  Peer importer(target);
  Peer other(target);
  std::atomic<bool> over{false};
  std::vector<base::Nanoseconds> took;
  std::string failed;
  std::thread imports([&] {
    try {
      for (int i = 0; i < kImports; ++i) took.push_back(Import(importer));
    } catch (const std::exception& error) {
      failed = error.what();
    }
    over = true;
  });
  std::pair<base::Nanoseconds, int> calls;
  try {
    calls = CallUntil(other, over);
  } catch (const std::exception& error) {
    failed = error.what();
  }
  imports.join();
  if (!failed.empty()) Fail(failed);
  std::sort(took.begin(), took.end());
  const double import_ms = static_cast<double>(took[took.size() / 2]) / 1e6;
  const double slowest_ms = static_cast<double>(calls.first) / 1e6;
  std::printf(
      "import of 512 MiB %39.1f ms; another client's slowest of %d calls "
      "meanwhile %.2f ms\n",
      import_ms, calls.second, slowest_ms);
  return {{"import_ms", import_ms},
          {"calls", calls.second},
          {"slowest_call_ms", slowest_ms}};
}

}  // namespace rknnd::bench
