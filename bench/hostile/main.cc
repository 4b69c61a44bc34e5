// What a well-behaved program notices of those that attack the daemon beside
// it, and what the daemon has of them once they are dead.
//
//   rknnd-bench-hostile [--out FILE] [--seconds N] [--only WORD]
//
// Each row has a daemon of its own, once with everything on one CPU and once on
// two. Root makes attackers another user than the neighbour is; who is not gets
// them as programs of one user, which share what a user has. Ends with 1 where
// a figure does not hold.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/common/cpu_use.h"
#include "bench/common/failure.h"
#include "bench/common/placement.h"
#include "bench/hostile/attack.h"
#include "bench/hostile/attackers.h"
#include "bench/hostile/neighbour.h"
#include "bench/hostile/row.h"

namespace rknnd::bench {
namespace {

int Measure(const std::string& out, const std::string& only, double seconds) {
  if (geteuid() != 0) {
    std::printf("not root: attackers are programs of the neighbour's user\n");
  }
  // Of the CPUs there are before the first row takes some away.
  const std::vector<Placement> placements = Placements();
  Table table;
  Table::PrintHead();
  bool any = false;
  for (const Attack& attack : AllAttacks()) {
    if (!only.empty() && only != attack.name) continue;
    any = true;
#ifndef RKNND_HAS_GRPC
    if (attack.by_grpc) {
      std::printf("%-14s this build has no gRPC\n", attack.name);
      continue;
    }
#endif
    for (const Placement& placement : placements) {
      const bool one = placement.client_cpu == placement.server_cpu;
      std::vector<int> cpus = {placement.client_cpu};
      if (!one) cpus.push_back(placement.server_cpu);
      PinTo(cpus);
      table.Add(MeasureAttack(attack, one ? "one" : "two", seconds));
      // Who has seen enough may end it.
      if (!out.empty()) {
        WriteFigures(out, {{"seconds", seconds}, {"rows", table.rows()}});
      }
    }
  }
  if (!any) throw std::runtime_error("there is no attack '" + only + "'");
  return table.all_hold() ? 0 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app("What a program notices of attackers beside it");
  std::string names;
  for (const Attack& attack : AllAttacks()) {
    names += (names.empty() ? "one of " : ", ") + std::string(attack.name);
  }
  std::string out, only, role, name;
  double seconds = 2;
  std::array<double, 2> cpus{}, sleeps{};
  Scene scene;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--seconds", seconds,
                 "of each measurement, fifteen in a row (2)")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--only", only, names);
  app.add_option("--role", role)->group("");
  app.add_option("--attack", name)->group("");
  app.add_option("--socket", scene.socket)->group("");
  app.add_option("--grpc", scene.grpc)->group("");
  app.add_option("--cpus", cpus)->group("");
  app.add_option("--sleeps", sleeps)->group("");
  CLI11_PARSE(app, argc, argv);
  if (role == "neighbour") return RunNeighbour();
  if (role == "attack") return RunAttack(name, scene);
  if (role == "burner") {
    return RunBurner({cpus[0], sleeps[0]}, {cpus[1], sleeps[1]});
  }
  return Measure(out, only, seconds);
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  return rknnd::bench::RunMain("hostile",
                               [&] { return rknnd::bench::Main(argc, argv); });
}
