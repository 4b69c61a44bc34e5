// What doctor found, on this side or by the daemon.

#ifndef CLIENT_CTL_BOARD_FINDING_H_
#define CLIENT_CTL_BOARD_FINDING_H_

#include <string>

#include "proto/wire/codec.h"

namespace rknnd::client {

enum class Severity {
  kOk = rknnd_v1_Severity_SEVERITY_OK,
  kNote = rknnd_v1_Severity_SEVERITY_NOTE,
  kWarning = rknnd_v1_Severity_SEVERITY_WARNING,
  kError = rknnd_v1_Severity_SEVERITY_ERROR,
};

struct Finding {
  std::string check;  // stable, for scripts
  Severity severity = Severity::kOk;
  std::string text;
  std::string remedy;  // "": there is nothing to do
};

}  // namespace rknnd::client

#endif  // CLIENT_CTL_BOARD_FINDING_H_
