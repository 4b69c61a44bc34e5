// What the packages put on a machine for systemd, in a folder of a test's own,
// and systemd's tools to look at it. Nothing of the machine itself is read or
// changed.

#ifndef TESTS_PACKAGING_STAGING_H_
#define TESTS_PACKAGING_STAGING_H_

#include <string>
#include <vector>

#include "base/posix/child_process.h"

namespace rknnd::packaging {

// A program that has ended.
struct Ended {
  int code = -1;
  std::string output, errors;
};

class Staging {
 public:
  Staging();

  // Of the root: "/etc/passwd" is this file in it.
  [[nodiscard]] std::string Path(const std::string& path) const {
    return folder_.path() + "/root" + path;
  }
  [[nodiscard]] const std::string& scratch() const { return folder_.path(); }

  // Runs a program of the system, by its name; the test has asked FindProgram.
  // The first "ROOT" in an argument is the root's path.
  [[nodiscard]] Ended Run(std::vector<std::string> arguments) const;

 private:
  base::TemporaryFolder folder_;
};

// systemd/.
std::string SourceFolder();
// A file below it.
std::string Source(const std::string& path);
std::vector<std::string> Lines(const std::string& text);

}  // namespace rknnd::packaging

#endif  // TESTS_PACKAGING_STAGING_H_
