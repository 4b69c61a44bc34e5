// rknnctl reset and drain: for those who look after a board. Both need
// admin.sock.

#ifndef CLIENT_CTL_OPERATE_H_
#define CLIENT_CTL_OPERATE_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/posix/expected.h"
#include "client/ctl/report.h"
#include "proto/wire/codec.h"

namespace rknnd::client {

base::Expected<Output> Reset(const std::string& target);

struct DrainOptions {
  std::string target;
  double wait_s = 30;
};
struct DrainAnswer {
  bool idle = false;  // nothing runs any more
  Output output;
};
base::Expected<DrainAnswer> Drain(const DrainOptions& options);

// `left`: the sessions that there are; `own` are rknnctl's.
DrainAnswer DrainOutput(bool idle, const wire::Report& left,
                        std::initializer_list<uint64_t> own);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_OPERATE_H_
