// The runner's commands that plan streams.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "rknnd.h"
#include "tests/integration/programs/commands.h"

namespace rknnd::integration {

Reply Commands::Admit(const Words& words) {
  rknnd_stream stream{};
  stream.size = sizeof stream;
  stream.rate = std::strtof(words[2].c_str(), nullptr);
  stream.reserve = words.size() > 3 && words[3] == "reserve" ? 1 : 0;
  stream.priority = RKNN_FLAG_PRIOR_MEDIUM;
  rknnd_admission admission{};
  const int code =
      rknnd_admit(Context(words[1]), &stream, &admission, sizeof admission);
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "%s %.3f %.3f ",
                admission.fits != 0 ? "yes" : "no",
                static_cast<double>(admission.rate),
                static_cast<double>(admission.load));
  return Answer(code, numbers + std::string(admission.reason));
}

}  // namespace rknnd::integration
