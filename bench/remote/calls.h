// gRPC at its barest, to compare with: a server that takes messages and answers
// with as many bytes as it is told, and calls with messages that are bytes.

#ifndef BENCH_REMOTE_CALLS_H_
#define BENCH_REMOTE_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rknnd::bench {

// Serves until killed; does not return. "/bench.Bare/Unary" reads one message
// and answers with `reply_bytes`; "/bench.Bare/Stream" reads until the client
// has ended, and answers once.
[[noreturn]] void ServeBare(const std::string& address, size_t reply_bytes);

// One connection. Thread: one. Throws std::runtime_error.
class Calls {
 public:
  // Waits up to some seconds for the server to appear.
  explicit Calls(const std::string& address);
  ~Calls();

  // The answer's bytes. `request` outlives the call.
  std::string Unary(const std::string& method, const std::string& request);
  // Sends so many bytes in messages of `piece`, and waits for the answer.
  void Stream(const std::string& method, uint64_t bytes, size_t piece);

 private:
  struct Channel;
  std::unique_ptr<Channel> channel_;
};

// Many connections with many calls each, all open at one time, the same again
// as each ends, or when the server has asked to come again
// (grpc-retry-pushback-ms). Thread: one of its own.
class Crowd {
 public:
  struct Plan {
    std::string address, method;
    std::string request;  // bytes of a message
    int connections = 1;
    int calls = 1;  // of each at one time
  };
  explicit Crowd(const Plan& plan);
  // Cancels what is open.
  ~Crowd();

  struct Counts {
    uint64_t done = 0;
    uint64_t refused = 0;  // RESOURCE_EXHAUSTED, UNAVAILABLE
    uint64_t failed = 0;   // anything else
    std::string last_failure;
    std::vector<uint64_t> done_by;  // each connection
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Members;
  std::unique_ptr<Members> members_;
};

// An inference.ModelInferRequest: one input, by bytes.
std::string InferRequest(const std::string& model, const std::string& input,
                         const std::string& datatype,
                         std::initializer_list<int64_t> shape,
                         const std::string& bytes);
// The same with registered memory in place of bytes, for input and output.
struct Region {
  std::string key;
  uint64_t offset = 0, size = 0;
};
std::string InferRequest(const std::string& model, const std::string& input,
                         const std::string& datatype,
                         std::initializer_list<int64_t> shape,
                         const Region& from, const std::string& output,
                         const Region& to);
// Loads a model by its bytes, under a name.
std::string LoadRequest(const std::string& model, const std::string& file);

inline constexpr char kModelInfer[] =
    "/inference.GRPCInferenceService/ModelInfer";
inline constexpr char kModelLoad[] =
    "/inference.GRPCInferenceService/RepositoryModelLoad";

}  // namespace rknnd::bench

#endif  // BENCH_REMOTE_CALLS_H_
