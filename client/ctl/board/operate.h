// rknnctl reset, drain and drain --undo: for those who look after a board. All
// need admin.sock.

#ifndef CLIENT_CTL_BOARD_OPERATE_H_
#define CLIENT_CTL_BOARD_OPERATE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"
#include "proto/wire/codec.h"

namespace rknnd::client {

base::Expected<Output> Reset(const std::string& target);

// `release`: first digits of a hash; empty: none is let go.
base::Expected<Output> Quarantine(const std::string& target,
                                  const std::string& release);

struct DrainOptions {
  std::string target;
  double wait_s = 30;
  bool undo = false;
};
struct DrainAnswer {
  bool idle = false;  // nothing runs any more
  Output output;
};
base::Expected<DrainAnswer> Drain(const DrainOptions& options);

// `left`: the sessions that there are; `own` are rknnctl's.
DrainAnswer DrainOutput(bool idle, const std::vector<wire::SessionReport>& left,
                        std::initializer_list<uint64_t> own);

base::Expected<Output> UndoDrain(const std::string& target);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_BOARD_OPERATE_H_
