// Writes what people read of the configuration's keys (pages.h), when the
// daemon is built:
//   config_pages manual FROM TO     rknnd.toml(5)
//   config_pages example FROM TO    /etc/rknnd/rknnd.toml
//   config_pages tables FROM TO     docs/configuration.md, by hand

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "daemon/config/pages.h"

int main(int argc, char** argv) {
  const std::string what = argc == 4 ? argv[1] : "";
  std::ifstream from(argc == 4 ? argv[2] : "");
  const std::string text(std::istreambuf_iterator<char>(from), {});
  absl::StatusOr<std::string> page = absl::InvalidArgumentError(
      "use: config_pages manual|example|tables "
      "FROM TO");
  if (what == "manual") page = rknnd::ManualPage(text);
  if (what == "example") page = rknnd::ExampleFile(text);
  if (what == "tables") page = rknnd::WithMarkdownRows(text);
  if (text.empty()) page = absl::NotFoundError("there is nothing to read");
  if (!page.ok()) {
    std::fprintf(stderr, "config_pages: %s: %s\n", argc == 4 ? argv[2] : "",
                 std::string(page.status().message()).c_str());
    return 1;
  }
  std::ofstream to(argv[3]);
  to << *page << std::flush;
  if (to.good()) return 0;
  std::fprintf(stderr, "config_pages: cannot write '%s'\n", argv[3]);
  return 1;
}
