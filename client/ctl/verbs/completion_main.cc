// Writes a shell's completion of rknnctl when that is built:
//   rknnctl_completion bash|zsh|fish FROM TO

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "client/ctl/command_line.h"
#include "client/ctl/verbs/completion.h"

int main(int argc, char** argv) {
  using namespace rknnd::client;
  if (argc != 4) {
    std::fputs("use: rknnctl_completion bash|zsh|fish FROM TO\n", stderr);
    return 2;
  }
  const std::string shell = argv[1];
  std::ifstream from(argv[2]);
  const std::string text(std::istreambuf_iterator<char>(from), {});
  Common common;
  CLI::App app;
  const auto verbs = Declare(app, common);
  std::ofstream to(argv[3]);
  to << (shell == "bash"  ? CompleteBash(app, text)
         : shell == "zsh" ? CompleteZsh(app, text)
                          : CompleteFish(app, text))
     << std::flush;
  if (!text.empty() && to.good()) return 0;
  std::fprintf(stderr, "rknnctl_completion: cannot make '%s' of '%s'\n",
               argv[3], argv[2]);
  return 1;
}
