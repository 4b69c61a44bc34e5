// What programs of the build say of themselves with --help.

#ifndef TESTS_MANUAL_HELP_H_
#define TESTS_MANUAL_HELP_H_

#include <map>
#include <set>
#include <string>

namespace rknnd::manual {

using Words = std::set<std::string>;

// "--json", "--target"... of one program, or of one verb of it ("rknnctl top").
// -h alone is left out. Fails the test when the program does not answer.
Words OptionsOf(const std::string& command);

// Verbs that `command` names, each with its options; those of `command` itself
// are left out, as they go with every verb. A verb of a verb is "fault set".
std::map<std::string, Words> VerbsOf(const std::string& command);

std::string ReadText(const std::string& path_in_tree);

}  // namespace rknnd::manual

#endif  // TESTS_MANUAL_HELP_H_
