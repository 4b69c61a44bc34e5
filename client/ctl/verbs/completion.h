// What shells offer behind rknnctl: scripts for bash, zsh and fish, made of the
// verbs and their options when rknnctl is built.

#ifndef CLIENT_CTL_VERBS_COMPLETION_H_
#define CLIENT_CTL_VERBS_COMPLETION_H_

#include <string>

#include "CLI/CLI.hpp"

namespace rknnd::client {

// `text` with what `app` has for each line "@name@" (packaging/completion). Of
// an option it offers files where its type is FILE or MODEL, folders for DIR,
// and words for {a,b}, MASK, CORES or a short range.
std::string CompleteBash(const CLI::App& app, const std::string& text);
std::string CompleteZsh(const CLI::App& app, const std::string& text);
std::string CompleteFish(const CLI::App& app, const std::string& text);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_VERBS_COMPLETION_H_
