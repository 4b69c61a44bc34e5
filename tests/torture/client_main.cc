// A checking client: does one work until its ledger says stop, and checks every
// answer by its own arithmetic. Started by the fault campaign and by the
// benchmark of the service, who kill, stop and slow it at will.
//
//   rknnd-torture-client --ledger FILE --work WORD --network PATH,SALT,N,LAYERS
//                        [--period-us N] [--seed N] [--inputs FILE]

#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/posix/unique_fd.h"
#include "tests/torture/ledger.h"
#include "tests/torture/work.h"

namespace rknnd::torture {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("A client that checks its answers");
  std::string ledger_path, work, inputs_path;
  std::vector<std::string> networks;
  int64_t period_us = 0;
  WorkPlan plan;
  app.add_option("--ledger", ledger_path, "what it saw")->required();
  app.add_option("--work", work, "what it does")->required();
  app.add_option("--network", networks, "PATH,SALT,ELEMENTS,LAYERS")
      ->required();
  app.add_option("--period-us", period_us, "what a frame takes at least")
      ->check(CLI::Range(0, 60'000'000));
  app.add_option("--seed", plan.seed, "of what is random in it");
  app.add_option("--inputs", inputs_path, "of frames that others run too");
  CLI11_PARSE(app, argc, argv);
  const auto named = WorkNamed(work);
  if (!named) throw std::runtime_error("no work '" + work + "'");
  plan.work = *named;
  plan.period = period_us * base::kMicrosecond;
  for (const std::string& text : networks) {
    plan.networks.push_back(FromArgument(text));
  }
  base::UniqueFd inputs;
  if (!inputs_path.empty()) {
    inputs.reset(open(inputs_path.c_str(), O_RDWR | O_CLOEXEC));
    if (!inputs.valid()) {
      throw std::runtime_error("cannot open '" + inputs_path + "'");
    }
    plan.inputs = inputs.get();
  } else if (plan.work == Work::kShared) {
    throw std::runtime_error("work 'shared' needs --inputs");
  }
  const Ledger ledger = Ledger::Open(ledger_path);
  DoWork(plan, Witness(ledger));
  ledger.page().finished = 1;
  return 0;
}

}  // namespace
}  // namespace rknnd::torture

int main(int argc, char** argv) {
  try {
    return rknnd::torture::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rknnd-torture-client: %s\n", error.what());
    return 1;
  }
}
