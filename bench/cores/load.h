// Whether the machine had CPUs to spare for a measurement.

#ifndef BENCH_CORES_LOAD_H_
#define BENCH_CORES_LOAD_H_

namespace rknnd::bench {

// CPUs that this process may use.
int UsableCpus();

// What others have taken of all CPUs since its making, in CPUs: 0.5 is one of
// them half of the time. Other processes, and the host of a virtual machine.
class OthersLoad {
 public:
  OthersLoad();
  [[nodiscard]] double Cpus() const;

 private:
  struct Times {
    double wall = 0, others = 0;  // seconds
  };
  static Times Now();
  Times start_;
};

}  // namespace rknnd::bench

#endif  // BENCH_CORES_LOAD_H_
