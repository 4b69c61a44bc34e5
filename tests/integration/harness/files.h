// Files of a test.

#ifndef TESTS_INTEGRATION_HARNESS_FILES_H_
#define TESTS_INTEGRATION_HARNESS_FILES_H_

#include <string>
#include <string_view>
#include <vector>

namespace rknnd::integration {

// "" if there is none.
std::string ReadText(const std::string& path);
// Gives the path back. Fails the test when the file cannot be written.
std::string WriteFile(const std::string& path, std::string_view bytes);
std::string WriteFloats(const std::string& path,
                        const std::vector<float>& values);

// The program of this build: "rknnd", or "tests/integration_runner".
std::string ProgramPath(const std::string& name);
// A shared library of this build, and a file of its sources.
std::string LibraryPath(const std::string& name);
std::string SourcePath(const std::string& path);
// A program of the system, by its full path; "" where it is not installed.
std::string FindProgram(const std::string& name);

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_FILES_H_
