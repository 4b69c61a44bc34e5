// See the header.

#include "client/ctl/verbs/completion.h"

#include <map>
#include <regex>
#include <sstream>
#include <utility>
#include <vector>

namespace rknnd::client {
namespace {

enum class Kind { kFlag, kValue, kWords, kFile, kFolder };

struct Option {
  std::string name;  // "output-dir"
  std::string help;
  Kind kind = Kind::kFlag;
  std::string words;  // "high medium low"
  bool repeated = false;
};

struct Command {
  std::string name, help;
  std::vector<Option> options;
  bool file = false;  // its argument is one
  std::string words;  // or one of these
  std::vector<Command> parts;
};

std::string Replaced(std::string text, const std::string& from,
                     const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

// The values that an option of such a type can have; "": others.
std::string WordsOf(const std::string& type) {
  if (type == "MASK") return "auto 0 1 2 0_1 0_1_2 all";
  if (type == "CORES") return "0 1 2 0-1 0-2";
  std::smatch match;
  if (std::regex_search(type, match, std::regex("\\{(.*)\\}"))) {
    return Replaced(match[1], ",", " ");
  }
  std::string words;
  if (std::regex_search(type, match, std::regex("\\[([0-9]) - ([0-9])\\]"))) {
    for (char number = *match[1].first; number <= *match[2].first; ++number) {
      words += words.empty() ? "" : " ";
      words += number;
    }
  }
  return words;
}

Option OptionOf(const CLI::Option& given) {
  Option option;
  option.name = given.get_lnames().front();
  option.help = given.get_description();
  const int most = given.get_items_expected_max();
  if (most == 0) return option;
  option.repeated = most > 1;
  const std::string type = given.get_type_name();
  option.words = WordsOf(type);
  option.kind = type == "FILE" || type == "MODEL" ? Kind::kFile
                : type == "DIR"                   ? Kind::kFolder
                : option.words.empty()            ? Kind::kValue
                                                  : Kind::kWords;
  return option;
}

Command CommandOf(const CLI::App& app) {
  Command command;
  command.name = app.get_name();
  command.help = app.get_description();
  for (const CLI::Option* given : app.get_options()) {
    if (!given->get_lnames().empty()) {
      // Of every verb.
      if (given->get_lnames().front() != "help") {
        command.options.push_back(OptionOf(*given));
      }
    } else if (given->get_name() == "MODEL" || given->get_name() == "FILE") {
      command.file = true;
    } else {
      command.words = WordsOf(given->get_type_name());
      if (command.words.empty()) command.words = given->get_default_str();
    }
  }
  for (const CLI::App* part :
       app.get_subcommands(std::function<bool(const CLI::App*)>())) {
    command.parts.push_back(CommandOf(*part));
  }
  return command;
}

// Each line of `text`, or what is behind its "@name@".
std::string Filled(const std::string& text,
                   const std::map<std::string, std::string>& values) {
  std::string filled;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto value = values.find(line);
    filled += value == values.end() ? line + "\n" : value->second;
  }
  return filled;
}

std::string NamesOf(const std::vector<Command>& commands) {
  std::string names;
  for (const Command& command : commands) {
    names += (names.empty() ? "" : " ") + command.name;
  }
  return names;
}

// --- bash ---

std::string BashOptions(const Command& command) {
  std::string names;
  for (const Option& option : command.options) {
    names += (names.empty() ? "--" : " --") + option.name;
  }
  // What stands before its command.
  return command.name == "lease" ? names + " --" : names;
}

std::string BashCase(const Command& command, const std::string& indent) {
  std::string text = indent + command.name + ")\n";
  const std::string inner = indent + "  ";
  if (const std::string options = BashOptions(command); !options.empty()) {
    text += inner + "options='" + options + "'\n";
  }
  if (command.file) text += inner + "files=1\n";
  if (!command.words.empty()) {
    text += inner + "arguments='" + command.words + "'\n";
  }
  if (!command.parts.empty()) {
    text += inner + "case $sub in\n";
    for (const Command& part : command.parts) {
      text += BashCase(part, inner + "  ");
    }
    text += inner + "  '') arguments='" + NamesOf(command.parts) + "' ;;\n" +
            inner + "esac\n";
  }
  return text + inner + ";;\n";
}

// What stands behind each option that takes something.
void CollectValues(const Command& command,
                   std::map<std::string, std::string>& values) {
  for (const Option& option : command.options) {
    std::string act;
    if (option.kind == Kind::kFlag) continue;
    if (option.kind == Kind::kWords) {
      act = "_rknnctl_words '" + option.words + "' \"$word\"";
    } else if (option.kind == Kind::kFile) {
      act = "_rknnctl_files \"$word\"";
    } else if (option.kind == Kind::kFolder) {
      act = "_rknnctl_folders \"$word\"";
    }
    values["--" + option.name] = act;
  }
  for (const Command& part : command.parts) CollectValues(part, values);
}

// --- zsh ---

std::string InQuotes(const std::string& text) {
  return "'" + Replaced(text, "'", "'\\''") + "'";
}

std::string ZshArguments(const Command& command, const std::string& indent) {
  std::string text = indent + "_arguments $common";
  const auto add = [&](const std::string& word) {
    text += " \\\n" + indent + "  " + InQuotes(word);
  };
  for (const Option& option : command.options) {
    std::string word = option.repeated ? "*--" : "--";
    word += option.name + "[" +
            Replaced(Replaced(option.help, "[", "("), "]", ")") + "]";
    if (option.kind == Kind::kValue) word += ":value:";
    if (option.kind == Kind::kWords) word += ":value:(" + option.words + ")";
    if (option.kind == Kind::kFile) word += ":file:_files";
    if (option.kind == Kind::kFolder) word += ":folder:_directories";
    add(word);
  }
  if (command.file) add("1:file:_files");
  if (!command.words.empty()) add("1:argument:(" + command.words + ")");
  if (command.name == "lease") {
    add("(-)1:command:_command_names -e");
    add("*::arguments:_normal");
  }
  return text + "\n";
}

std::string ZshCase(const Command& command, const std::string& indent) {
  const std::string inner = indent + "  ";
  std::string text = indent + command.name + ")\n";
  if (command.parts.empty()) {
    return text + ZshArguments(command, inner) + inner + ";;\n";
  }
  text += inner + "_arguments -C $common '1:action:(" + NamesOf(command.parts) +
          ")' '*:: :->" + command.name + "' && return\n" + inner +
          "case $words[1] in\n";
  for (const Command& part : command.parts) {
    text += ZshCase(part, inner + "  ");
  }
  return text + inner + "  *)\n" + inner + "    _arguments $common\n" + inner +
         "    ;;\n" + inner + "esac\n" + inner + ";;\n";
}

// --- fish ---

std::string FishOptions(const Command& command, const std::string& when) {
  std::string text;
  const std::string start = "complete -c rknnctl -n '" + when + "' ";
  const auto add = [&](const std::string& what, const std::string& help) {
    text += start + what +
            (help.empty() ? "" : " -d '" + Replaced(help, "'", "\\'") + "'") +
            "\n";
  };
  for (const Option& option : command.options) {
    std::string what = "-l " + option.name;
    if (option.kind == Kind::kValue) what += " -x";
    if (option.kind == Kind::kWords) what += " -x -a '" + option.words + "'";
    if (option.kind == Kind::kFile) what += " -r -F";
    if (option.kind == Kind::kFolder) {
      what += " -x -a '(__fish_complete_directories)'";
    }
    add(what, option.help);
  }
  if (command.file) add("-F", "");
  if (!command.words.empty()) add("-a '" + command.words + "'", "");
  if (command.name == "lease") add("-a '(__fish_complete_subcommand)'", "");
  const std::string names = NamesOf(command.parts);
  for (const Command& part : command.parts) {
    text += "complete -c rknnctl -n '" + when +
            "; and not __fish_seen_subcommand_from " + names + "' -a " +
            part.name + " -d '" + Replaced(part.help, "'", "\\'") + "'\n";
    text += FishOptions(
        part, when + "; and __fish_seen_subcommand_from " + part.name);
  }
  return text;
}

}  // namespace

std::string CompleteBash(const CLI::App& app, const std::string& text) {
  const Command all = CommandOf(app);
  std::string cases;
  std::string with_parts;
  for (const Command& verb : all.parts) {
    cases += BashCase(verb, "    ");
    if (!verb.parts.empty()) with_parts += " " + verb.name;
  }
  std::map<std::string, std::string> values;
  for (const Command& verb : all.parts) CollectValues(verb, values);
  std::string behind;
  for (const auto& [option, act] : values) {
    behind += "    " + option + ")\n";
    if (!act.empty()) behind += "      " + act + "\n";
    behind += "      return\n      ;;\n";
  }
  return Filled(
      text, {{"@verbs@", "  local verbs='" + NamesOf(all.parts) +
                             "'\n  local with_parts='" + with_parts + " '\n"},
             {"@cases@", cases},
             {"@values@", behind}});
}

std::string CompleteZsh(const CLI::App& app, const std::string& text) {
  const Command all = CommandOf(app);
  std::string verbs;
  std::string cases;
  for (const Command& verb : all.parts) {
    verbs += "    " +
             InQuotes(verb.name + ":" + Replaced(verb.help, ":", "\\:")) + "\n";
    cases += ZshCase(verb, "    ");
  }
  return Filled(text, {{"@verbs@", verbs}, {"@cases@", cases}});
}

std::string CompleteFish(const CLI::App& app, const std::string& text) {
  const Command all = CommandOf(app);
  std::string lines;
  for (const Command& verb : all.parts) {
    lines += "complete -c rknnctl -n $none -a " + verb.name + " -d '" +
             Replaced(verb.help, "'", "\\'") + "'\n" +
             FishOptions(verb, "__fish_seen_subcommand_from " + verb.name);
  }
  return Filled(text, {{"@verbs@", "set -l verbs " + NamesOf(all.parts) + "\n"},
                       {"@lines@", lines}});
}

}  // namespace rknnd::client
