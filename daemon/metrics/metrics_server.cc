// A scrape waits for the loop no longer than kPatience, and not at all once the
// server is about to go: the loop itself waits for the library's threads then.

#include "daemon/metrics/metrics_server.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/posix/blocked_signals.h"
#include "base/posix/send_only.h"
#include "base/posix/unique_fd.h"
#include "daemon/metrics/families.h"

namespace rknnd::metrics {
namespace {

// Below the ten seconds after which Prometheus gives up by default.
constexpr std::chrono::seconds kPatience{5};

// A scrape and the loop's answer to it.
struct Question {
  std::optional<BoardFigures> answer;
};

// Thread: any.
class Board final : public prometheus::Collectable {
 public:
  explicit Board(const MetricsOptions& options) : state_(new State()) {
    state_->loop = options.loop;
    state_->look = options.look;
    state_->look_at_npu = options.look_at_npu;
  }

  std::vector<prometheus::MetricFamily> Collect() const override {
    const auto question = std::make_shared<Question>();
    std::unique_lock lock(state_->mutex);
    if (state_->ended) return {};
    // The task may run after the server has gone: it keeps the state.
    state_->loop->Post([state = state_, question] {
      const std::lock_guard guard(state->mutex);
      if (state->ended) return;
      question->answer = state->look();
      state->changed.notify_all();
    });
    state_->changed.wait_for(lock, kPatience, [&] {
      return state_->ended || question->answer.has_value();
    });
    std::optional<BoardFigures> figures = std::move(question->answer);
    lock.unlock();
    // Nothing at all is what Prometheus takes for a failed look.
    if (!figures.has_value()) return {};
    if (state_->look_at_npu != nullptr) figures->npu = state_->look_at_npu();
    return ToFamilies(*figures);
  }

  void End() {
    const std::lock_guard guard(state_->mutex);
    state_->ended = true;
    state_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
    base::Executor* loop = nullptr;
    std::function<BoardFigures()> look;
    std::function<board::NpuFigures()> look_at_npu;
  };
  const std::shared_ptr<State> state_;
};

// Connects again and again, and says nothing, for as long as this lives: the
// library's thread that accepts looks whether it is to end only when somebody
// comes, and else every two seconds.
class Visits {
 public:
  Visits(const std::string& host, int port)
      : host_(host.front() == '[' ? host.substr(1, host.size() - 2) : host),
        port_(port) {
    const base::BlockedSignals blocked;
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::system_error&) {
      // The library looks by itself, which holds up the loop for longer.
    }
  }
  ~Visits() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Visits(const Visits&) = delete;
  Visits& operator=(const Visits&) = delete;

 private:
  static constexpr std::chrono::milliseconds kInterval{5};

  void Run() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      // Refused once nobody listens any more.
      const base::Expected<base::UniqueFd> visit = base::KnockTcp(host_, port_);
      changed_.wait_for(lock, kInterval, [this] { return ended_; });
    }
  }

  const std::string host_;
  const int port_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

class Server final : public MetricsServer {
 public:
  Server(std::string host, std::unique_ptr<prometheus::Exposer> exposer,
         std::shared_ptr<Board> board)
      : host_(std::move(host)),
        board_(std::move(board)),
        exposer_(std::move(exposer)) {
    exposer_->RegisterCollectable(board_);
  }
  ~Server() override {
    // Whoever waits for the loop stops waiting: the library joins its threads
    // here, on the loop.
    board_->End();
    const Visits visits(host_, exposer_->GetListeningPorts().at(0));
    exposer_.reset();
  }

  [[nodiscard]] std::string address() const override {
    return absl::StrCat(host_, ":", exposer_->GetListeningPorts().at(0));
  }

 private:
  const std::string host_;
  const std::shared_ptr<Board> board_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

// The host of "HOST:PORT", with the brackets of an IPv6 address.
absl::StatusOr<std::string> HostOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535 ||
      // The library's list of ports has a syntax of its own.
      address.find_first_of(", \t\n+") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics address '", address,
                     "' is no ADDRESS:PORT, as 127.0.0.1:9464 or [::1]:9464"));
  }
  return address.substr(0, colon);
}

}  // namespace

absl::Status MetricsServer::CheckAddress(const std::string& address) {
  return HostOf(address).status();
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const MetricsOptions& options) {
  absl::StatusOr<std::string> host = HostOf(options.address);
  if (!host.ok()) return host.status();
  // Threads of the library's take no signals that are the daemon's.
  const base::BlockedSignals blocked;
  try {
    // Scrapers are few. One that connects and asks nothing has a thread for as
    // long as this, and the others are served meanwhile.
    auto exposer =
        std::make_unique<prometheus::Exposer>(std::vector<std::string>{
            "listening_ports", options.address, "num_threads", "4",
            "request_timeout_ms", "5000", "keep_alive_timeout_ms", "0"});
    return std::make_unique<Server>(*std::move(host), std::move(exposer),
                                    std::make_shared<Board>(options));
  } catch (const std::exception& fault) {
    return absl::UnavailableError(
        absl::StrCat("metrics address '", options.address,
                     "' cannot be listened at (in use, or not of this "
                     "machine): ",
                     fault.what()));
  }
}

}  // namespace rknnd::metrics
