// A table of text as the vendor's reports print it: a title between two rules,
// columns as wide as their widest cell, left-aligned. Used by the reports.

#ifndef DAEMON_CORE_TERMS_TEXT_TABLE_H_
#define DAEMON_CORE_TERMS_TEXT_TABLE_H_

#include <string>
#include <utility>
#include <vector>

namespace rknnd::core {

// Without control characters.
std::string Harmless(std::string text);

// Thread: any, one at a time.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> titles)
      : titles_(std::move(titles)) {}

  // As many cells as there are titles. They may come from a client's model:
  // what a terminal would obey is taken out, and long ones are cut, for each
  // row is as wide as the widest.
  void Add(std::vector<std::string> cells);
  // Below a rule of its own.
  void AddFooter(std::vector<std::string> cells) { footer_ = std::move(cells); }

  // Lines, each with its end. "" for `title`: none.
  [[nodiscard]] std::string ToString(const std::string& title) const;

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> footer_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_TERMS_TEXT_TABLE_H_
