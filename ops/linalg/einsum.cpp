// einsum: an equation is parsed into labels of axes, and operands are contracted pair by pair.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ops/core/cast.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/linalg/products.h"
#include "ops/shape/diagonals.h"

namespace caldera {
namespace {

/// Letters are their codes; the axes of "..." are numbers from kDots on, counted from the last one.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kDots = 256;

bool contains(const Labels& labels, Label label) { return std::ranges::find(labels, label) != labels.end(); }

[[noreturn]] void refuse(std::string_view equation, const std::string& why) {
  throw ValueError(fmt::format("einsum: '{}': {}", equation, why));
}

struct Term {
  Labels ahead, behind;  // of "..."
  bool dots = false;
};

Term parse_term(std::string_view equation, std::string_view text) {
  Term term;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      if (term.dots || text.substr(i, 3) != "...") refuse(equation, "'.' other than one '...' in a term");
      term.dots = true;
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      (term.dots ? term.behind : term.ahead).push_back(c);
    } else {
      refuse(equation, fmt::format("'{}' is no label; use letters", c));
    }
  }
  return term;
}

Labels expand(const Term& term, int dots) {
  Labels labels = term.ahead;
  for (int d = term.dots ? dots : 0; d-- > 0;) labels.push_back(kDots + d);
  labels.insert(labels.end(), term.behind.begin(), term.behind.end());
  return labels;
}

std::string written(const Labels& labels) {
  std::string text;
  for (const Label label : labels) text += label < kDots ? std::string(1, static_cast<char>(label)) : ".";
  return text;
}

struct Labelled {
  LazyTensor x;
  Labels labels;

  void permute_to(const Labels& wanted) {
    std::vector<int> order;
    for (const Label label : wanted)
      order.push_back(static_cast<int>(std::ranges::find(labels, label) - labels.begin()));
    x = permute_dims(x, order);
    labels = wanted;
  }
  /// Sums over every axis whose label `keep` does not want.
  template <class Keep>
  void sum_unless(Keep keep) {
    std::vector<int> axes;
    Labels left;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (keep(labels[i]))
        left.push_back(labels[i]);
      else
        axes.push_back(static_cast<int>(i));
    }
    if (!axes.empty()) x = sum(x, axes, x.dtype());
    labels = left;
  }
};

/// The elements where the axes of a repeated label have equal coordinates.
void take_diagonals(Labelled& operand) {
  for (std::size_t i = 0; i < operand.labels.size(); ++i) {
    for (std::size_t j = i + 1; j < operand.labels.size(); ++j) {
      if (operand.labels[i] != operand.labels[j]) continue;
      const Label label = operand.labels[i];
      operand.x = diagonal(operand.x, 0, static_cast<int>(i), static_cast<int>(j));
      operand.labels.erase(operand.labels.begin() + static_cast<std::ptrdiff_t>(j));
      operand.labels.erase(operand.labels.begin() + static_cast<std::ptrdiff_t>(i));
      operand.labels.push_back(label);
      i = static_cast<std::size_t>(-1);  // from the beginning: the axes have moved
      break;
    }
  }
}

void check_axes(std::string_view equation, const Labels& labels) {
  if (labels.size() > kMaxRank)
    throw ShapeError(fmt::format("einsum: '{}': '{}' has {} axes; a tensor has at most {}", equation,
                                 written(labels), labels.size(), kMaxRank));
}

/// `x` with these labels as one axis of a matrix or of a batch.
std::int64_t extent_of(const Labels& labels, const std::map<Label, std::int64_t>& extents) {
  std::int64_t product = 1;
  for (const Label label : labels) product *= extents.at(label);
  return product;
}

Labels joined(std::initializer_list<const Labels*> parts) {
  Labels all;
  for (const Labels* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

template <class Keep>
Labelled contract(std::string_view equation, Labelled a, Labelled b,
                  const std::map<Label, std::int64_t>& extents, Keep keep) {
  a.sum_unless([&](Label l) { return contains(b.labels, l) || keep(l); });
  b.sum_unless([&](Label l) { return contains(a.labels, l) || keep(l); });
  Labels batch, summed, rows, columns;
  for (const Label l : a.labels) {
    if (!contains(b.labels, l))
      rows.push_back(l);
    else
      (keep(l) ? batch : summed).push_back(l);
  }
  for (const Label l : b.labels) {
    if (!contains(a.labels, l)) columns.push_back(l);
  }
  a.permute_to(joined({&batch, &rows, &summed}));
  b.permute_to(joined({&batch, &summed, &columns}));
  const std::int64_t batches = extent_of(batch, extents), m = extent_of(rows, extents),
                     k = extent_of(summed, extents), n = extent_of(columns, extents);
  const LazyTensor left = reshape(a.x, Shape{batches, m, k}), right = reshape(b.x, Shape{batches, k, n});
  Labelled result{.x = summed.empty() ? left * right : matmul(left, right),
                  .labels = joined({&batch, &rows, &columns})};
  check_axes(equation, result.labels);
  Shape shape;
  for (const Label l : result.labels) shape.push_back(extents.at(l));
  result.x = reshape(result.x, shape);
  return result;
}

/// The terms ahead of the arrow, one an operand.
std::vector<Term> input_terms(std::string_view equation) {
  std::vector<Term> terms;
  std::string_view inputs = equation.substr(0, equation.find("->"));
  for (std::size_t comma = 0; comma != std::string_view::npos; inputs.remove_prefix(comma + 1)) {
    comma = inputs.find(',');
    terms.push_back(parse_term(equation, inputs.substr(0, comma)));
    if (comma == std::string_view::npos) break;
  }
  return terms;
}

/// The labels of the result: those behind the arrow, or without one, as in NumPy, the labels that appear
/// once, in alphabetical order behind those of '...'.
Labels output_labels(std::string_view equation, const std::vector<Term>& terms, int dots,
                     const std::map<Label, std::int64_t>& extents) {
  const std::size_t arrow = equation.find("->");
  Labels output;
  if (arrow != std::string_view::npos) {
    const Term term = parse_term(equation, equation.substr(arrow + 2));
    output = expand(term, dots);
    for (std::size_t i = 0; i < output.size(); ++i) {
      if (!extents.contains(output[i]))
        refuse(equation, fmt::format("'{}' of the result is in no operand", written({output[i]})));
      if (std::ranges::count(output, output[i]) > 1)
        refuse(equation, fmt::format("'{}' appears twice in the result", written({output[i]})));
    }
  } else {
    std::map<Label, int> seen;
    for (const Term& term : terms) {
      for (const Labels* part : {&term.ahead, &term.behind}) {
        for (const Label label : *part) ++seen[label];
      }
    }
    for (int d = dots; d-- > 0;) output.push_back(kDots + d);
    for (const auto& [label, times] : seen) {
      if (times == 1) output.push_back(label);
    }
  }
  return output;
}

}  // namespace

LazyTensor einsum(std::string_view equation, const std::vector<LazyTensor>& given) {
  const std::vector<LazyTensor> operands = ops::as_tensors("einsum", given);
  const std::vector<Term> terms = input_terms(equation);
  if (terms.size() != operands.size())
    refuse(equation, fmt::format("{} terms for {} operands", terms.size(), operands.size()));

  int dots = 0;
  DType type = operands[0].dtype();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    type = promote(type, operands[i].dtype());
    ops::check_domain("einsum", ScalarDomain::numeric, operands[i].dtype());
    const int named = static_cast<int>(terms[i].ahead.size() + terms[i].behind.size());
    const int rest = operands[i].rank() - named;
    if (rest < 0 || (rest > 0 && !terms[i].dots))
      throw ShapeError(fmt::format("einsum: '{}': operand {} of shape {} does not have {} axes", equation, i,
                                   operands[i].shape().to_string(), named));
    if (terms[i].dots) dots = std::max(dots, rest);
  }

  std::vector<Labelled> all;
  std::map<Label, std::int64_t> extents;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const int named = static_cast<int>(terms[i].ahead.size() + terms[i].behind.size());
    Labelled operand{astype(operands[i], type), expand(terms[i], operands[i].rank() - named)};
    for (std::size_t d = 0; d < operand.labels.size(); ++d) {
      const std::int64_t extent = operand.x.shape(static_cast<int>(d));
      const auto [at, is_new] = extents.emplace(operand.labels[d], extent);
      if (!is_new && at->second == 1) at->second = extent;
      if (at->second != extent && extent != 1)
        throw ShapeError(fmt::format("einsum: '{}': operand {} of shape {} has {} along '{}', others {}",
                                     equation, i, operand.x.shape().to_string(), extent,
                                     written({operand.labels[d]}), at->second));
    }
    all.push_back(operand);
  }
  // An extent of 1 beside a larger one broadcasts: without the axis, it does.
  for (Labelled& operand : all) {
    for (std::size_t d = operand.labels.size(); d-- > 0;) {
      if (operand.x.shape(static_cast<int>(d)) == 1 && extents.at(operand.labels[d]) != 1) {
        operand.x = squeeze(operand.x, static_cast<int>(d));
        operand.labels.erase(operand.labels.begin() + static_cast<std::ptrdiff_t>(d));
      }
    }
    take_diagonals(operand);
  }

  const Labels output = output_labels(equation, terms, dots, extents);
  check_axes(equation, output);
  Labelled result = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) {
    const auto keep = [&](Label label) {
      if (contains(output, label)) return true;
      return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(),
                         [&](const Labelled& later) { return contains(later.labels, label); });
    };
    result = contract(equation, std::move(result), all[i], extents, keep);
  }
  result.sum_unless([&](Label label) { return contains(output, label); });
  result.permute_to(output);
  return result.x;
}

}  // namespace caldera
