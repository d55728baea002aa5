#include "ops/products.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "ops/build.h"
#include "ops/table/families.h"
#include "ops/table/samples.h"

namespace caldera {
namespace {

void check_matrix(const char* op, const LazyTensor& x) {
  if (x.rank() < 2)
    throw ShapeError(
        fmt::format("{}: {} has no matrices; it wants two axes or more", op, x.shape().to_string()));
}

/// Types whose sums of products fit themselves.
void check_summable(const char* op, const LazyTensor& x) {
  if (sum_type(x.dtype()) != x.dtype())
    throw DTypeError(fmt::format("{}: {} is too narrow for sums; cast it", op, name(x.dtype())));
}

/// x where column - row, compared with k, says so; 0 elsewhere.
LazyTensor triangle(const char* op, const LazyTensor& x, std::int64_t k,
                    LazyTensor (*keeps)(const LazyTensor&, const LazyTensor&)) {
  check_matrix(op, x);
  const std::int64_t rows = x.shape(-2), columns = x.shape(-1);
  const std::int64_t diagonal = std::clamp(k, -rows - 1, columns + 1);
  const Shape matrix{rows, columns};
  const LazyTensor ahead = iota(matrix, 1, DType::i32, x.device()) - iota(matrix, 0, DType::i32, x.device());
  return where(keeps(ahead, static_cast<int>(diagonal)), x, zeros_like(x));
}

}  // namespace

LazyTensor tensordot(const LazyTensor& x, const LazyTensor& y,
                     const std::pair<std::vector<int>, std::vector<int>>& axes) {
  const std::vector<LazyTensor> both = ops::as_tensors("tensordot", std::array{x, y});
  const LazyTensor &a = both[0], &b = both[1];
  check_summable("tensordot", a);
  check_summable("tensordot", b);
  const auto refuse = [&](const std::string& why) {
    throw ShapeError(
        fmt::format("tensordot: {} and {}: {}", a.shape().to_string(), b.shape().to_string(), why));
  };
  if (axes.first.size() != axes.second.size())
    refuse(fmt::format("{} axes against {}", axes.first.size(), axes.second.size()));
  std::vector<int> left, right, order_a, order_b;
  std::int64_t k = 1;
  for (std::size_t i = 0; i < axes.first.size(); ++i) {
    left.push_back(a.shape().normalize_axis(axes.first[i], "tensordot"));
    right.push_back(b.shape().normalize_axis(axes.second[i], "tensordot"));
    if (std::count(left.begin(), left.end(), left.back()) > 1 ||
        std::count(right.begin(), right.end(), right.back()) > 1)
      refuse("an axis is named twice");
    if (a.shape(left.back()) != b.shape(right.back()))
      refuse(fmt::format("axis {} and axis {} have different extents", left.back(), right.back()));
    k *= a.shape(left.back());
  }
  Shape shape;
  for (int i = 0; i < a.rank(); ++i) {
    if (std::ranges::find(left, i) != left.end()) continue;
    order_a.push_back(i);
    shape.push_back(a.shape(i));
  }
  order_b = right;
  std::int64_t m = 1, n = 1;
  for (int i = 0; i < shape.rank(); ++i) m *= shape[i];
  for (int i = 0; i < b.rank(); ++i) {
    if (std::ranges::find(right, i) != right.end()) continue;
    order_b.push_back(i);
    shape.push_back(b.shape(i));
    n *= b.shape(i);
  }
  order_a.insert(order_a.end(), left.begin(), left.end());
  return reshape(
      matmul(reshape(permute_dims(a, order_a), Shape{m, k}), reshape(permute_dims(b, order_b), Shape{k, n})),
      shape);
}

LazyTensor tensordot(const LazyTensor& a, const LazyTensor& b, int axes) {
  if (axes < 0 || axes > std::min(a.rank(), b.rank()))
    throw ShapeError(fmt::format("tensordot: {} and {} do not both have {} axes", a.shape().to_string(),
                                 b.shape().to_string(), axes));
  std::pair<std::vector<int>, std::vector<int>> pairs;
  for (int i = 0; i < axes; ++i) {
    pairs.first.push_back(a.rank() - axes + i);
    pairs.second.push_back(i);
  }
  return tensordot(a, b, pairs);
}

LazyTensor vecdot(const LazyTensor& a, const LazyTensor& b, int axis) {
  check_summable("vecdot", a);
  check_summable("vecdot", b);
  const auto refuse = [&](const char* why) {
    throw ShapeError(fmt::format("vecdot: {} and {} along axis {}: {}", a.shape().to_string(),
                                 b.shape().to_string(), axis, why));
  };
  const int least = std::min(a.rank(), b.rank());
  if (axis >= 0 && a.rank() != b.rank()) refuse("of different ranks axes are counted from the end, -1 ...");
  if (axis >= least || axis < -least) refuse("they do not both have it");
  if (a.shape(axis) != b.shape(axis)) refuse("its extents differ");
  broadcast_shapes(a.shape(), b.shape(), "vecdot");
  return sum(a * b, axis);
}

LazyTensor outer(const LazyTensor& a, const LazyTensor& b) {
  if (a.rank() != 1 || b.rank() != 1)
    throw ShapeError(
        fmt::format("outer: {} and {} are not two vectors", a.shape().to_string(), b.shape().to_string()));
  ops::check_domain("outer", ScalarDomain::numeric, a.dtype());
  ops::check_domain("outer", ScalarDomain::numeric, b.dtype());
  return expand_dims(a, 1) * expand_dims(b, 0);
}

LazyTensor cross(const LazyTensor& a, const LazyTensor& b, int axis) {
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "cross");
  const int at = shape.normalize_axis(axis, "cross");
  const int from_end = at - shape.rank();
  if (-from_end > std::min(a.rank(), b.rank()) || a.shape(from_end) != 3 || b.shape(from_end) != 3)
    throw ShapeError(fmt::format("cross: {} and {} do not have 3 elements along axis {}",
                                 a.shape().to_string(), b.shape().to_string(), axis));
  ops::check_domain("cross", ScalarDomain::numeric, a.dtype());
  ops::check_domain("cross", ScalarDomain::numeric, b.dtype());
  const auto part = [&](const LazyTensor& x, int i) { return slice(x, from_end + x.rank(), i, i + 1); };
  std::vector<LazyTensor> parts;
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    parts.push_back(part(a, j) * part(b, k) - part(a, k) * part(b, j));
  }
  return concatenate(parts, at);
}

LazyTensor diagonal(const LazyTensor& x, std::int64_t offset, int axis1, int axis2) {
  check_matrix("diagonal", x);
  const int row = x.shape().normalize_axis(axis1, "diagonal"),
            column = x.shape().normalize_axis(axis2, "diagonal");
  if (row == column)
    throw ShapeError(
        fmt::format("diagonal: axes {} and {} of {} are the same", axis1, axis2, x.shape().to_string()));
  std::vector<int> order;
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i == row || i == column) continue;
    order.push_back(i);
    shape.push_back(x.shape(i));
  }
  order.insert(order.end(), {row, column});
  const std::int64_t rows = x.shape(row), columns = x.shape(column);
  shape.push_back(rows * columns);
  const std::int64_t first_row = std::clamp<std::int64_t>(-offset, 0, rows),
                     first = std::clamp<std::int64_t>(offset, 0, columns);
  const std::int64_t count = std::min(rows - first_row, columns - first);
  const int last = shape.rank() - 1;
  const LazyTensor flat = reshape(permute_dims(x, order), shape);
  if (count == 0) return slice(flat, last, 0, 0);
  const std::int64_t start = first_row * columns + first;
  return slice(flat, last, start, start + (count - 1) * (columns + 1) + 1, columns + 1);
}

LazyTensor trace(const LazyTensor& x, std::int64_t offset) {
  check_matrix("trace", x);
  check_summable("trace", x);
  return sum(diagonal(x, offset), -1);
}

LazyTensor tril(const LazyTensor& x, std::int64_t k) { return triangle("tril", x, k, less_equal); }
LazyTensor triu(const LazyTensor& x, std::int64_t k) { return triangle("triu", x, k, greater_equal); }

LazyTensor vector_norm(const LazyTensor& x, const Axes& axes, double ord, bool keepdims) {
  ops::check_domain("vector_norm", ScalarDomain::floating, x.dtype());
  ops::resolve_axes(axes, x.shape(), "vector_norm");
  if (std::isnan(ord)) throw ValueError("vector_norm: ord is nan");
  const LazyTensor y = astype(x, compute_type(x.dtype()));
  const auto root = [&](const LazyTensor& total, const auto& function) {
    // At 0 the derivative of the root is infinite: what is 0 is passed by.
    const LazyTensor zero = equal(total, 0.0);
    return where(zero, zeros_like(total), function(where(zero, ones_like(total), total)));
  };
  LazyTensor norm;
  if (std::isinf(ord)) {
    norm = ord > 0 ? amax(abs(y), axes, keepdims) : amin(abs(y), axes, keepdims);
  } else if (ord == 0) {
    norm = sum(astype(not_equal(y, 0.0), y.dtype()), axes, keepdims);
  } else if (ord == 1) {
    norm = sum(abs(y), axes, keepdims);
  } else if (ord == 2) {
    norm = root(sum(square(y), axes, keepdims), [](const LazyTensor& t) { return sqrt(t); });
  } else {
    // The slope of |y|^ord at 0 may be infinite, and that of |y| is 0: their product is taken for 0.
    const LazyTensor size = abs(y);
    const LazyTensor zero = equal(size, 0.0);
    const LazyTensor of_zero = full_like(size, ord > 0 ? 0.0 : std::numeric_limits<double>::infinity());
    const LazyTensor powers = where(zero, of_zero, pow(where(zero, ones_like(size), size), ord));
    norm = root(sum(powers, axes, keepdims), [&](const LazyTensor& t) { return pow(t, 1 / ord); });
  }
  return astype(norm, x.dtype());
}

namespace ops {
namespace {

using Results = std::vector<LazyTensor>;
using Integers = Arguments::Integers;

constexpr Types kSummable = kFloating | Types{DType::u32, DType::i32, DType::i64};

std::vector<int> ints(const Integers& values) { return {values.begin(), values.end()}; }

std::vector<Sample> einsum_samples(const Operation&) {
  const auto call = [](const char* equation, std::vector<Operand> operands) {
    return Sample{std::move(operands), {{"equation", std::string(equation)}}};
  };
  return {call("ij,jk->ik", {{{2, 3}}, {{3, 4}}}),
          call("ij,kj->ki", {{{2, 3}}, {{4, 3}}}),
          call("bij,bjk->bik", {{{2, 3, 4}}, {{2, 4, 5}}}),
          call("bhqd,bhkd->bhqk", {{{1, 2, 3, 4}}, {{1, 2, 5, 4}}}),
          call("...ij,...jk->...ik", {{{2, 1, 3, 4}}, {{5, 4, 2}}}),
          call("i,j->ij", {{{3}}, {{4}}}),
          call("i,i", {{{7}}, {{7}}}),
          call("i,i->i", {{{7}}, {{7}}}),
          call("...i,i->i", {{{7}}, {{7}}}),
          call("ii->i", {{{3, 3}}}),
          call("ii", {{{3, 3}}}),
          call("iji->j", {{{3, 2, 3}}}),
          call("ij->ji", {{{2, 3}}}),
          call("ij->", {{{2, 3}}}),
          call("ba", {{{2, 3}}}),
          call("ij,jk,kl->il", {{{2, 3}}, {{3, 4}}, {{4, 2}}}),
          call("a,ab,abc->c", {{{2}}, {{2, 3}}, {{2, 3, 4}}}),
          call("ij,j->i", {{{2, 3}}, {{1}}}),
          call(" i j , j -> i ", {{{2, 3}}, {{3}}}),
          call("...,...", {{{2, 3}}, {{}}}),
          call("ij,jk->ik", {{{2, 0}}, {{0, 3}}})};
}

std::vector<ErrorSample> einsum_errors(const Operation&) {
  const auto bad = [](Refusal refusal, const char* equation, std::vector<Operand> operands,
                      const char* mentions) {
    return ErrorSample{refusal, std::move(operands), {{"equation", std::string(equation)}}, mentions};
  };
  return {bad(Refusal::shape, "ij,jk->ik", {{{2, 3}}, {{4, 5}}}, "(4, 5)"),
          bad(Refusal::shape, "ij->ji", {{{2, 3, 4}}}, "(2, 3, 4)"),
          bad(Refusal::shape, "ijk->i", {{{2, 3}}}, "(2, 3)"),
          bad(Refusal::value, "ij,jk->ik", {{{2, 3}}}, "2 terms for 1"),
          bad(Refusal::value, "ij->ik", {{{2, 3}}}, "'k'"),
          bad(Refusal::value, "ij->ii", {{{2, 3}}}, "twice"),
          bad(Refusal::value, "i1->i", {{{2, 3}}}, "'1'"),
          bad(Refusal::value, "i..->i", {{{2, 3}}}, "..."),
          bad(Refusal::value, "ij->i->j", {{{2, 3}}}, "'-'"),
          bad(Refusal::value, "...i,...i->i", {{{2, 3}}, {{2, 3}}}, "'...'"),
          bad(Refusal::shape, "abcdef,ghijkl", {{{1, 1, 1, 1, 1, 1}}, {{1, 1, 1, 1, 1, 1}}}, "12 axes"),
          bad(Refusal::value, "", {{{2}}, {{2}}}, "1 terms for 2")};
}

std::vector<Sample> pairs(std::initializer_list<std::pair<Shape, Shape>> shapes,
                          const Arguments& arguments = {}) {
  std::vector<Sample> out;
  for (const auto& [a, b] : shapes) out.push_back({{{a}, {b}}, arguments});
  return out;
}

std::vector<Sample> tensordot_samples(const Operation&) {
  std::vector<Sample> out = pairs({{{2, 3, 4}, {3, 4, 5}}, {{3, 4}, {3, 4}}});
  for (const auto& [a, b] :
       std::initializer_list<std::pair<Integers, Integers>>{{{1}, {0}}, {{1, 0}, {0, 2}}, {{}, {}}})
    out.push_back({{{{2, 3}}, {{3, 4, 2}}}, {{"axes_a", a}, {"axes_b", b}}});
  out.push_back({{{{2, 3}}, {{4}}}, {{"axes", std::int64_t{0}}}});
  out.push_back({{{{2, 0}}, {{0, 4}}}, {{"axes", std::int64_t{1}}}});
  return out;
}

Results call_tensordot(Tensors x, const Arguments& a) {
  if (a.has("axes_a"))
    return {tensordot(x[0], x[1], {ints(a.integers("axes_a")), ints(a.integers("axes_b"))})};
  return {tensordot(x[0], x[1], static_cast<int>(a.integer("axes", 2)))};
}

std::vector<ErrorSample> tensordot_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{3, 2}}}, .mentions = "(3, 2)"},
          {.refusal = Refusal::shape,
           .operands = {{{3}}, {{3}}},
           .arguments = {{"axes", std::int64_t{2}}},
           .mentions = "(3,)"},
          {.refusal = Refusal::shape,
           .operands = {{{2, 2}}, {{2, 2}}},
           .arguments = {{"axes_a", Integers{0, 0}}, {"axes_b", Integers{0, 1}}},
           .mentions = "twice"},
          {.refusal = Refusal::shape,
           .operands = {{{2, 2}}, {{2, 2}}},
           .arguments = {{"axes_a", Integers{0}}, {"axes_b", Integers{0, 1}}},
           .mentions = "1 axes against 2"}};
}

std::vector<Sample> matrix_samples(const Operation&) {
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 5}, Shape{5, 2}, Shape{2, 3, 4}, Shape{0, 3}}) {
    for (const std::int64_t k : {0, 1, -2, 9}) out.push_back({{{shape}}, {{"k", k}}});
  }
  return out;
}

std::vector<ErrorSample> matrix_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{3}}}, .mentions = "(3,)"},
          {.refusal = Refusal::shape, .operands = {{{}}}, .mentions = "()"}};
}

std::vector<Sample> norm_samples(const Operation&) {
  std::vector<Sample> out;
  const Range range{.low = -1, .high = 1, .offset = 1.0 / 256, .distinct = true};  // no two |x| are equal
  for (const double ord : {2.0, 1.0, 0.0, 3.0, HUGE_VAL, -HUGE_VAL}) {
    out.push_back({{{{7}, range}}, {{"ord", ord}}});
    out.push_back({{{{2, 3, 4}, range}}, {{"ord", ord}, {"axis", Integers{1}}, {"keepdims", true}}});
    out.push_back({{{{2, 3, 4}, range}}, {{"ord", ord}, {"axis", Integers{0, 2}}}});
  }
  return out;
}

Operation entry(std::string_view name, std::string_view signature, std::string_view summary, Types types,
                Results (*call)(Tensors, const Arguments&), std::vector<Sample> (*samples)(const Operation&),
                std::vector<ErrorSample> (*errors)(const Operation&)) {
  return {.name = name,
          .family = "products",
          .signature = signature,
          .summary = summary,
          .types = types,
          .call = call,
          .samples = samples,
          .errors = errors};
}

}  // namespace

std::span<const Operation> product_operations() {
  static const Operation kTable[] = {
      entry(
          "einsum", "einsum(equation, operands)",
          "Einstein's summation convention: \"ij,jk->ik\". Operands are contracted from left to right.",
          kSummable,
          [](Tensors x, const Arguments& a) -> Results {
            return {einsum(a.text("equation", ""), std::vector<LazyTensor>(x.begin(), x.end()))};
          },
          einsum_samples, einsum_errors),
      entry("tensordot", "tensordot(a, b, axes=2)", "Sums of products over paired axes.", kSummable,
            call_tensordot, tensordot_samples, tensordot_errors),
      entry(
          "vecdot", "vecdot(a, b, axis=-1)", "Sums of products over one axis; the others broadcast.",
          kSummable,
          [](Tensors x, const Arguments& a) -> Results { return {vecdot(x[0], x[1], a.axis("axis", -1))}; },
          [](const Operation&) {
            std::vector<Sample> out =
                pairs({{{7}, {7}}, {{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{4, 1, 3}, {2, 3}}});
            out.push_back({{{{2, 3}}, {{2, 3}}}, {{"axis", std::int64_t{-2}}}});
            out.push_back({{{{2, 3}}, {{2, 3}}}, {{"axis", std::int64_t{0}}}});
            return out;
          },
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{2, 4}}}, .mentions = "(2, 4)"},
                    {.refusal = Refusal::shape,
                     .operands = {{{2, 3}}, {{2, 3}}},
                     .arguments = {{"axis", std::int64_t{2}}},
                     .mentions = "both have it"},
                    {.refusal = Refusal::shape,
                     .operands = {{{2, 3}}, {{3}}},
                     .arguments = {{"axis", std::int64_t{0}}},
                     .mentions = "different ranks"},
                    {.refusal = Refusal::shape, .operands = {{{2, 3}}, {{4, 3}}}, .mentions = "(4, 3)"},
                    {.refusal = Refusal::shape, .operands = {{{}}, {{3}}}, .mentions = "()"}};
          }),
      entry(
          "outer", "outer(a, b)", "The products of all pairs of elements of two vectors.", kNumeric,
          [](Tensors x, const Arguments&) -> Results { return {outer(x[0], x[1])}; },
          [](const Operation&) {
            return pairs({{{3}, {4}}, {{1}, {7}}, {{0}, {3}}});
          },
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{3}}}, .mentions = "(2, 3)"}};
          }),
      entry(
          "cross", "cross(a, b, axis=-1)",
          "The cross product of vectors of 3 along an axis; the others broadcast.", kNumeric,
          [](Tensors x, const Arguments& a) -> Results { return {cross(x[0], x[1], a.axis("axis", -1))}; },
          [](const Operation&) {
            std::vector<Sample> out =
                pairs({{{3}, {3}}, {{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{4, 1, 3}, {2, 3}}});
            out.push_back({{{{3, 2}}, {{3, 2}}}, {{"axis", std::int64_t{0}}}});
            return out;
          },
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{.refusal = Refusal::shape, .operands = {{{2}}, {{2}}}, .mentions = "(2,)"},
                    {.refusal = Refusal::shape, .operands = {{{2, 3}}, {{4, 3}}}, .mentions = "(4, 3)"},
                    {.refusal = Refusal::shape, .operands = {{{3}}, {{1}}}, .mentions = "(1,)"}};
          }),
      entry(
          "diagonal", "diagonal(x, offset=0, axis1=-2, axis2=-1)",
          "The elements x[..., i, i + offset] as the last axis.", kAnyType,
          [](Tensors x, const Arguments& a) -> Results {
            return {diagonal(x[0], a.integer("k", 0), a.axis("axis1", -2), a.axis("axis2", -1))};
          },
          [](const Operation& op) {
            std::vector<Sample> out = matrix_samples(op);
            out.push_back({{{{2, 3, 4}}}, {{"axis1", std::int64_t{0}}, {"axis2", std::int64_t{1}}}});
            out.push_back({{{{2, 3, 4}}},
                           {{"axis1", std::int64_t{2}}, {"axis2", std::int64_t{0}}, {"k", std::int64_t{1}}}});
            return out;
          },
          matrix_errors),
      entry(
          "trace", "trace(x, offset=0)", "The sums of the diagonals of the last two axes.", kSummable,
          [](Tensors x, const Arguments& a) -> Results { return {trace(x[0], a.integer("k", 0))}; },
          matrix_samples, matrix_errors),
      entry(
          "tril", "tril(x, k=0)",
          "The lower triangle of the last two axes, up to diagonal k; zeros elsewhere.", kAnyType,
          [](Tensors x, const Arguments& a) -> Results { return {tril(x[0], a.integer("k", 0))}; },
          matrix_samples, matrix_errors),
      entry(
          "triu", "triu(x, k=0)",
          "The upper triangle of the last two axes, from diagonal k; zeros elsewhere.", kAnyType,
          [](Tensors x, const Arguments& a) -> Results { return {triu(x[0], a.integer("k", 0))}; },
          matrix_samples, matrix_errors),
      entry(
          "vector_norm", "vector_norm(x, axis=all, ord=2, keepdims=false)",
          "(sum |x|^ord)^(1/ord). The gradient where the norm is 0 is 0.", kFloating,
          [](Tensors x, const Arguments& a) -> Results {
            return {vector_norm(x[0], a.has("axis") ? Axes(a.axes("axis")) : Axes(), a.real("ord", 2),
                                a.flag("keepdims", false))};
          },
          norm_samples, reduction_errors),
  };
  return kTable;
}

}  // namespace ops
}  // namespace caldera
