// A daemon for the bridge's tests: serves rknnd.v1.Remote on a port of this
// machine, knows one model of its own making (its output is its input), and
// dies and comes back when told. It checks nothing; what it saw is asked of it
// afterwards.

#ifndef CLIENT_REMOTE_FAKE_REMOTE_H_
#define CLIENT_REMOTE_FAKE_REMOTE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace rknnd::client {

// Thread: any; Start and Stop one at a time.
class FakeRemote {
 public:
  // `elements`: bytes of the model's one input and one output.
  explicit FakeRemote(uint64_t elements);
  ~FakeRemote();

  // At the port of the last time, or one of the kernel's choice.
  void Start();
  // As kill -9: streams break, all but the models is forgotten.
  void Stop();

  [[nodiscard]] int port() const;
  [[nodiscard]] std::string address() const;  // "127.0.0.1:PORT"

  // Who comes without it is turned away.
  void set_token(std::string token);
  void set_answers_runs(bool answers);
  // From now on nothing is answered at all, with the stream open.
  void set_silent(bool silent);
  void ForgetModels();
  void AwaitRuns(uint64_t count);

  struct Seen {
    uint64_t sessions = 0, uploads = 0, runs = 0, binds = 0;
    uint64_t largest_piece = 0;
    uint64_t uploaded_bytes = 0;
    std::vector<uint64_t> frames;    // of the runs
    std::vector<uint32_t> inputs;    // the buffer bound when each came
    std::vector<uint32_t> timeouts;  // of the runs, in ms
    uint64_t runs_during_upload = 0;
    uint64_t last_features = 0;
  };
  [[nodiscard]] Seen seen() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace rknnd::client

#endif  // CLIENT_REMOTE_FAKE_REMOTE_H_
