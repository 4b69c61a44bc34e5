// Einsum, written as Transpose, Reshape, ReduceSum, Mul and MatMul: two
// operands after the other, each pair one product of matrices
//
//   (both and needed later, of the first, summed) x (..., summed, of the
//   second)
//
// Axes of one element are left out on the way; the last Reshape brings them
// back.

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/expansion.h"
#include "driver/soft/kernels/families.h"

namespace rknnd::soft {
namespace {

// A letter, or an axis under an ellipsis: its number from the last, below zero.
using Label = int;
using Labels = std::vector<Label>;

bool Has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct Equation {
  std::vector<Labels> operands;
  Labels output;
  std::map<Label, int64_t> sizes;
};

// The labels of one term; an ellipsis in it stands for `under` axes.
absl::StatusOr<Labels> ParseTerm(const NodeView& node, std::string_view term,
                                 int under) {
  Labels labels;
  bool has_ellipsis = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
      labels.push_back(term[i]);
    } else if (term.substr(i, 3) == "..." && !has_ellipsis) {
      has_ellipsis = true;
      i += 2;
      for (int axis = under; axis > 0; --axis) labels.push_back(-axis);
    } else {
      return node.Error(absl::StrCat("equation term '", std::string(term),
                                     "' is not understood"));
    }
  }
  return labels;
}

int LettersOf(std::string_view term) {
  return static_cast<int>(
      std::count_if(term.begin(), term.end(),
                    [](unsigned char c) { return std::isalpha(c) != 0; }));
}

absl::StatusOr<Equation> Parse(const NodeView& node) {
  std::string text = node.String("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (const char c : left) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  if (terms.size() != node.input_count()) {
    return node.Error(absl::StrCat("equation '", text, "' is of ", terms.size(),
                                   " tensors, given are ", node.input_count()));
  }
  Equation equation;
  int most_under = 0;
  std::map<Label, int> count;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!node.has_input(i)) return node.Error("an input is missing");
    const Shape& shape = node.shape(i);
    const int under = static_cast<int>(shape.size()) - LettersOf(terms[i]);
    RKNND_ASSIGN_OR_RETURN(Labels labels,
                           ParseTerm(node, terms[i], std::max(under, 0)));
    if (labels.size() != shape.size()) {
      return node.Error(absl::StrCat("equation term '", terms[i],
                                     "' is of a tensor ", ShapeText(shape)));
    }
    if (labels.size() > static_cast<size_t>(LettersOf(terms[i]))) {
      most_under = std::max(most_under, under);
    }
    for (size_t d = 0; d < labels.size(); ++d) {
      int64_t& size = equation.sizes.emplace(labels[d], 1).first->second;
      if (size != 1 && shape[d] != 1 && size != shape[d]) {
        return node.Error(absl::StrCat("equation '", text, "': an axis has ",
                                       size, " and ", shape[d], " elements"));
      }
      if (shape[d] != 1) size = shape[d];
      ++count[labels[d]];
    }
    equation.operands.push_back(std::move(labels));
  }
  if (arrow != std::string::npos) {
    RKNND_ASSIGN_OR_RETURN(
        equation.output,
        ParseTerm(node, std::string_view(text).substr(arrow + 2), most_under));
  } else {
    // What an equation without an arrow means: letters that are there once, in
    // their order.
    for (const auto& [label, times] : count) {
      if (label < 0 || times == 1) equation.output.push_back(label);
    }
  }
  for (size_t i = 0; i < equation.output.size(); ++i) {
    const Label label = equation.output[i];
    if (!equation.sizes.contains(label) ||
        std::count(equation.output.begin(), equation.output.end(), label) > 1) {
      return node.Error(
          absl::StrCat("equation '", text, "': its output is not understood"));
    }
  }
  return equation;
}

// A tensor on the way, without axes of one element.
struct Term {
  ValueId value = kNoValue;
  Labels labels;
};

class Writer {
 public:
  Writer(const Equation& equation, Expansion& to)
      : equation_(equation), to_(to) {}

  Term Take(ValueId value, const Labels& labels, const Shape& shape) {
    Term term{value, {}};
    for (size_t d = 0; d < labels.size(); ++d) {
      if (shape[d] != 1) term.labels.push_back(labels[d]);
    }
    if (term.labels.size() != shape.size()) Reshape(term, Dims(term.labels));
    for (size_t d = 0; d < term.labels.size(); ++d) {
      const auto again =
          std::find(term.labels.begin() + static_cast<ptrdiff_t>(d) + 1,
                    term.labels.end(), term.labels[d]);
      if (again == term.labels.end()) continue;
      TakeDiagonal(term, d, static_cast<size_t>(again - term.labels.begin()));
      d = static_cast<size_t>(-1);
    }
    return term;
  }

  // Sums over what only this term has; `others` are still to come.
  void SumOwn(Term& term, const std::vector<const Labels*>& others) {
    std::vector<int64_t> axes;
    Labels left;
    for (size_t d = 0; d < term.labels.size(); ++d) {
      const Label label = term.labels[d];
      if (Has(equation_.output, label) ||
          std::any_of(others.begin(), others.end(), [&](const Labels* other) {
            return Has(*other, label);
          })) {
        left.push_back(label);
      } else {
        axes.push_back(static_cast<int64_t>(d));
      }
    }
    if (axes.empty()) return;
    term.value = to_.Add("ReduceSum", {term.value, to_.Ints(axes)},
                         {{"keepdims", int64_t{0}}});
    term.labels = std::move(left);
  }

  // Of two terms; `later`: what is still to come.
  Term Multiply(Term a, Term b, const std::vector<const Labels*>& later) {
    Labels common, summed, of_a, of_b;
    for (const Label label : a.labels) {
      if (!Has(b.labels, label)) {
        of_a.push_back(label);
      } else if (Has(equation_.output, label) ||
                 std::any_of(
                     later.begin(), later.end(),
                     [&](const Labels* other) { return Has(*other, label); })) {
        common.push_back(label);
      } else {
        summed.push_back(label);
      }
    }
    for (const Label label : b.labels) {
      if (!Has(a.labels, label)) of_b.push_back(label);
    }
    Turn(a, Join({common, of_a, summed}));
    Turn(b, Join({common, summed, of_b}));
    const int64_t rows = Count(of_a), columns = Count(of_b);
    Shape before;
    if (!common.empty()) before = {Count(common)};
    const auto matrices = [&](Term& term, int64_t m, int64_t n) {
      Shape shape = before;
      shape.insert(shape.end(), {m, n});
      Reshape(term, shape);
    };
    matrices(a, rows, Count(summed));
    matrices(b, Count(summed), columns);
    Term product;
    product.value =
        to_.Add(summed.empty() ? "Mul" : "MatMul", {a.value, b.value});
    product.labels = Join({common, of_a, of_b});
    Reshape(product, Dims(product.labels));
    return product;
  }

  void Finish(Term term) {
    Labels order;
    Shape shape;
    for (const Label label : equation_.output) {
      shape.push_back(equation_.sizes.at(label));
      if (Has(term.labels, label)) order.push_back(label);
    }
    Turn(term, order);
    Reshape(term, shape);
    to_.Finish(0, term.value);
  }

 private:
  static Labels Join(std::initializer_list<Labels> parts) {
    Labels all;
    for (const Labels& part : parts) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  [[nodiscard]] Shape Dims(const Labels& labels) const {
    Shape shape;
    for (const Label label : labels) {
      shape.push_back(equation_.sizes.at(label));
    }
    return shape;
  }
  [[nodiscard]] int64_t Count(const Labels& labels) const {
    const Shape shape = Dims(labels);
    return ProductOf(shape, 0, shape.size());
  }
  void Reshape(Term& term, const Shape& shape) {
    term.value =
        to_.Add("Reshape", {term.value, to_.Ints({shape.begin(), shape.end()})},
                {{"allowzero", int64_t{1}}});
  }
  void Turn(Term& term, const Labels& order) {
    if (term.labels == order) return;
    std::vector<int64_t> perm;
    for (const Label label : order) {
      perm.push_back(std::find(term.labels.begin(), term.labels.end(), label) -
                     term.labels.begin());
    }
    term.value = to_.Add("Transpose", {term.value}, {{"perm", perm}});
    term.labels = order;
  }
  // Axes `a` and `b` have one label: every (n + 1)th element of both as one.
  void TakeDiagonal(Term& term, size_t a, size_t b) {
    std::vector<int64_t> perm;
    Labels left;
    for (size_t d = 0; d < term.labels.size(); ++d) {
      if (d == a || d == b) continue;
      perm.push_back(static_cast<int64_t>(d));
      left.push_back(term.labels[d]);
    }
    const Label label = term.labels[a];
    const int64_t n = equation_.sizes.at(label);
    perm.insert(perm.end(), {static_cast<int64_t>(a), static_cast<int64_t>(b)});
    term.value = to_.Add("Transpose", {term.value}, {{"perm", perm}});
    Shape shape = Dims(left);
    const auto axis = static_cast<int64_t>(shape.size());
    shape.push_back(n * n);
    Reshape(term, shape);
    term.value = to_.Add("Slice", {term.value, to_.Ints({0}), to_.Ints({n * n}),
                                   to_.Ints({axis}), to_.Ints({n + 1})});
    left.push_back(label);
    term.labels = std::move(left);
  }

  const Equation& equation_;
  Expansion& to_;
};

absl::Status ExpandEinsum(const NodeView& node, Expansion& to) {
  if (node.input_count() < 1 || node.output_count() != 1) {
    return node.Error(absl::StrCat("has ", node.input_count(), " inputs and ",
                                   node.output_count(), " outputs"));
  }
  RKNND_RETURN_IF_ERROR(CheckSameTypes(node));
  RKNND_ASSIGN_OR_RETURN(const Equation equation, Parse(node));
  Writer writer(equation, to);
  std::vector<Term> terms;
  for (size_t i = 0; i < node.input_count(); ++i) {
    const Shape shape = node.shape(i);
    terms.push_back(
        writer.Take(node.node().inputs[i], equation.operands[i], shape));
  }
  for (size_t i = 0; i < terms.size(); ++i) {
    std::vector<const Labels*> others;
    for (size_t k = 0; k < terms.size(); ++k) {
      if (k != i) others.push_back(&terms[k].labels);
    }
    writer.SumOwn(terms[i], others);
  }
  Term all = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::vector<const Labels*> later;
    for (size_t k = i + 1; k < terms.size(); ++k) {
      later.push_back(&terms[k].labels);
    }
    all = writer.Multiply(all, terms[i], later);
  }
  writer.Finish(std::move(all));
  return absl::OkStatus();
}

}  // namespace

void RegisterEinsum(OperatorTable& table) {
  table.Add({.type = "Einsum", .expand = ExpandEinsum});
}

}  // namespace rknnd::soft
