// What three shells offer behind rknnctl is what rknnctl has.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "client/under/testing/shell.h"
#include "tests/manual/help.h"

namespace rknnd::manual {
namespace {

using client::Shell;
using testing::IsSupersetOf;
using testing::UnorderedElementsAre;

bool Has(const std::string& program) {
  return Shell("command -v " + program).exit_code == 0;
}

Words Split(const std::string& text) {
  Words words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.insert(word);
  return words;
}

// Options that go with every verb.
Words Common() {
  Words words = OptionsOf("rknnctl");
  words.erase("--version");
  return words;
}

Words With(Words words, const Words& more) {
  words.insert(more.begin(), more.end());
  return words;
}

// What bash offers at the end of `line`, as its own readline would ask.
Words Bash(const std::string& line) {
  const auto result =
      Shell("bash --norc -c '. " RKNND_BINARY_ROOT
            "/completion/bash/rknnctl; COMP_LINE=$1; COMP_POINT=${#1}; "
            "word=${1##*[ :=]}; COMPREPLY=(); _rknnctl rknnctl \"$word\" - ; "
            "printf \"%s\\n\" \"${COMPREPLY[@]}\"' - '" +
            line + "'");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return Split(result.output);
}

TEST(BashCompletionTest, OffersEachVerb) {
  Words verbs;
  for (const auto& [verb, options] : VerbsOf("rknnctl")) {
    if (verb.find(' ') == std::string::npos) verbs.insert(verb);
  }
  EXPECT_EQ(Bash("rknnctl "), verbs);
  EXPECT_EQ(Bash("rknnctl --json --target unix:/x "), verbs);
  EXPECT_EQ(Bash("rknnctl sta"), Words{"status"});
  EXPECT_EQ(Bash("rknnctl --"), OptionsOf("rknnctl"));
}

TEST(BashCompletionTest, OffersEachOption) {
  for (const auto& [verb, options] : VerbsOf("rknnctl")) {
    Words wanted = With(Common(), options);
    // What stands before lease's command.
    if (verb == "lease") wanted.insert("--");
    EXPECT_EQ(Bash("rknnctl " + verb + " --"), wanted) << verb;
  }
}

TEST(BashCompletionTest, OffersValuesTargetsAndFiles) {
  EXPECT_EQ(Bash("rknnctl --target "),
            (Words{"unix:/run/rknnd/session.sock", "tcp://", "local:"}));
  EXPECT_EQ(Bash("rknnctl --target unix:" RKNND_SOURCE_ROOT "/LIC"),
            Words{RKNND_SOURCE_ROOT "/LICENSE"});
  EXPECT_EQ(Bash("rknnctl admit x --priority "),
            (Words{"high", "medium", "low"}));
  EXPECT_EQ(Bash("rknnctl bench " RKNND_SOURCE_ROOT "/LIC"),
            Words{RKNND_SOURCE_ROOT "/LICENSE"});
  EXPECT_EQ(Bash("rknnctl infer x --input " RKNND_SOURCE_ROOT "/LIC"),
            Words{RKNND_SOURCE_ROOT "/LICENSE"});
  EXPECT_EQ(Bash("rknnctl fault set w"), Words{"wrong-status"});
  EXPECT_THAT(Bash("rknnctl lease --cores 0 -- ech"), IsSupersetOf({"echo"}));
}

// fish's own answer, without its descriptions.
Words Fish(const std::string& line) {
  const auto result =
      Shell("HOME=/nonexistent fish --no-config -c 'source " RKNND_BINARY_ROOT
            "/completion/fish/rknnctl.fish; complete -C \"" +
            line + "\"' 2>/dev/null | cut -f 1");
  return Split(result.output);
}

TEST(FishCompletionTest, OffersEachVerbAndOption) {
  if (!Has("fish")) GTEST_SKIP() << "fish is not installed";
  const auto verbs = VerbsOf("rknnctl");
  Words names;
  for (const auto& [verb, options] : verbs) {
    if (verb.find(' ') == std::string::npos) names.insert(verb);
    if (verb == "fault") continue;  // asks for its part first
    Words wanted = With(Common(), options);
    EXPECT_EQ(Fish("rknnctl " + verb + " --"), wanted) << verb;
  }
  EXPECT_EQ(Fish("rknnctl "), names);
  EXPECT_THAT(Fish("rknnctl fault "),
              UnorderedElementsAre("list", "set", "clear"));
  EXPECT_THAT(Fish("rknnctl bench " RKNND_SOURCE_ROOT "/LIC"),
              UnorderedElementsAre(RKNND_SOURCE_ROOT "/LICENSE"));
}

// zsh completes only at a terminal: its function is run with the two builtins
// that it hands its words to in place of the terminal's.
Words Zsh(const std::string& verb) {
  const auto result = Shell(
      "zsh -f -c 'compset() { return 1 }; compadd() { :; }\n"
      "_describe() { print -l -- ${${(P)4}%%:*}; }\n"
      "_arguments() { local word; for word in \"$@\"; do\n"
      "  [[ $word == *--* ]] && print -r -- --${${word#*--}%%\\[*}; done\n"
      "  _rknnctl_verbs; [[ $1 == -C ]] || return 0\n"
      "  if [[ $depth -lt $#verb_words ]]; then\n"
      "    state=arguments; [[ $verb_words[1] == fault && $depth == 1 ]] && "
      "state=fault\n"
      "    words=($verb_words[depth+1,-1]); (( ++depth )); return 1\n"
      "  fi }\n"
      "verb_words=(" +
      verb +
      "); depth=0; . " RKNND_BINARY_ROOT "/completion/zsh/_rknnctl' 2>&1");
  return Split(result.output);
}

TEST(ZshCompletionTest, OffersEachVerbAndOption) {
  if (!Has("zsh")) GTEST_SKIP() << "zsh is not installed";
  for (const auto& [verb, options] : VerbsOf("rknnctl")) {
    Words offered = Zsh(verb);
    EXPECT_THAT(offered, IsSupersetOf(With(OptionsOf("rknnctl"), options)))
        << verb;
    if (verb.find(' ') == std::string::npos) {
      EXPECT_THAT(offered, testing::Contains(verb));
    }
    // And nothing that the verb does not have.
    for (const std::string& word : offered) {
      if (word.starts_with("--") && word != "--version") {
        EXPECT_TRUE(Common().contains(word) || options.contains(word))
            << verb << " has no " << word;
      }
    }
  }
}

}  // namespace
}  // namespace rknnd::manual
