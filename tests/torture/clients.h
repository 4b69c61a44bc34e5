// Checking clients (rknnd-torture-client) as processes that are killed, stopped
// and started again, with their ledgers.

#ifndef TESTS_TORTURE_CLIENTS_H_
#define TESTS_TORTURE_CLIENTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "tests/torture/ledger.h"
#include "tests/torture/networks.h"
#include "tests/torture/works.h"

namespace rknnd::torture {

struct ClientPlan {
  Work work = Work::kSync;
  std::vector<NetworkFile> networks;
  base::Nanoseconds period = 0;
};

// What all lives of all clients have counted.
struct Counts {
  uint64_t accepted = 0, answered = 0, right = 0, contexts = 0, notes = 0;
};

// Thread: one. Throws std::runtime_error.
class Clients {
 public:
  struct Options {
    std::string folder;  // for ledgers and what they say on stderr
    std::string target;
    std::string programs;  // where rknnd-torture-client is; "": beside this one
    std::vector<std::pair<std::string, std::string>> environment;
    uint64_t seed = 1;
  };
  explicit Clients(Options options);
  // Kills those that run.
  ~Clients();
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  // A place for a client; Start makes one there.
  size_t Add(ClientPlan plan);
  void Start(size_t place);
  // SIGKILL, and until it is gone.
  void Kill(size_t place);
  void Signal(size_t place, int signal);
  // No new frames: each ends when its last one has.
  void StopAll();
  // How a client that has ended did so; nothing while it runs.
  std::optional<int> Ended(size_t place);

  [[nodiscard]] size_t size() const { return places_.size(); }
  [[nodiscard]] bool runs(size_t place) const;
  [[nodiscard]] pid_t pid(size_t place) const;
  [[nodiscard]] const ClientPlan& plan(size_t place) const;
  [[nodiscard]] LedgerPage& page(size_t place) const;
  // Of all its lives: those that have come since the last call.
  std::vector<Note> TakeNotes(size_t place);
  [[nodiscard]] Counts counts() const;
  // What they said on stderr.
  [[nodiscard]] std::string error_file() const;

 private:
  struct Place {
    ClientPlan plan;
    std::string ledger_path;
    std::optional<Ledger> ledger;
    std::unique_ptr<base::ChildProcess> process;
    Counts before;                   // of the lives before this one
    std::vector<Note> notes_before;  // likewise, that nobody took
  };

  // Memory with the inputs of Work::kShared, that all of them import.
  const std::string& InputsOf(const Network& network);

  const Options options_;
  std::vector<Place> places_;
  base::UniqueFd inputs_;
  std::string inputs_path_;
  uint64_t started_ = 0;
};

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_CLIENTS_H_
