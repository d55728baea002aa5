// More entries of the family `indexing`.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

Operand indices(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::i32, .values = std::move(values)};
}
Operand mask(const Shape& shape) { return {.shape = shape, .dtype = DType::boolean}; }

Results call_put(Tensors x, const Arguments& a) {
  return {put(x[0], x[1], x[2], a.text("how", "set") == "add" ? Scatter::add : Scatter::set)};
}

std::vector<Sample> put_samples(const Operation&) {
  std::vector<Sample> out;
  for (const char* how : {"set", "add"}) {
    const Arguments a{{"how", std::string(how)}};
    out.push_back({{{{5}}, indices({3}, {4, 0, 4}), {{3}}}, a});
    out.push_back({{{{2, 3}}, indices({2, 2}, {-1, 0, 3, 5}), {{2, 2}}}, a});
    out.push_back({{{{2, 3}}, indices({}, {-6}), {{}}}, a});
    out.push_back({{{{2, 3}}, indices({0}, {}), {{0}}}, a});
  }
  return out;
}

std::vector<ErrorSample> put_errors(const Operation&) {
  return {{Refusal::dtype, {{{3}}, {{2}}, {{2}}}, {}, "float32"},
          {Refusal::shape, {{{3}}, indices({2}, {0, 1}), {{3}}}, {}, "(3,)"}};
}

Results call_index_fill(Tensors x, const Arguments& a) {
  return {index_fill(x[0], a.axis("axis", 0), x[1], x[2])};
}

std::vector<Sample> index_fill_samples(const Operation&) {
  const auto along = [](std::int64_t axis) { return Arguments{{"axis", axis}}; };
  return {{{{{5}}, indices({3}, {4, 0, 4}), {{}}}, along(0)},
          {{{{2, 3}}, indices({2}, {-1, 0}), {{}}}, along(-1)},
          {{{{3, 2, 2}}, indices({}, {1}), {{}}}, along(0)},
          {{{{3, 2}}, indices({0}, {}), {{}}}, along(1)}};
}

std::vector<ErrorSample> index_fill_errors(const Operation&) {
  return {{Refusal::dtype, {{{3}}, {{2}}, {{}}}, {}, "float32"},
          {Refusal::shape, {{{3}}, indices({2}, {0, 1}), {{2}}}, {}, "(2,)"},
          {Refusal::shape, {{{3}}, indices({1, 2}, {0, 1}), {{}}}, {}, "(1, 2)"},
          {Refusal::shape, {{{3}}, indices({2}, {0, 1}), {{}}}, {{"axis", std::int64_t{1}}}, "(3,)"}};
}

std::vector<Sample> masked_scatter_samples(const Operation&) {
  return {{{{{7}}, mask({7}), {{7}}}},
          {{{{2, 3}}, mask({3}), {{2, 4}}}},
          {{{{2, 3, 2}}, mask({2, 1, 1}), {{13}}}},
          {{{{}}, mask({}), {{1}}}},
          {{{{0, 3}}, mask({3}), {{2}}}}};
}

std::vector<ErrorSample> masked_scatter_errors(const Operation&) {
  return {{Refusal::dtype, {{{3}}, {{3}}, {{3}}}, {}, "float32"},
          {Refusal::dtype, {{{3}}, mask({3}), {.shape = {3}, .dtype = DType::f64}}, {}, "float64"},
          {Refusal::shape, {{{3}}, mask({2, 3}), {{6}}}, {}, "(2, 3)"}};
}

constexpr EntriesOf entry{"indexing"};

}  // namespace

std::span<const Operation> take_put_operations() {
  static const Operation kTable[] = {
      entry("put", "put(x, indices, values, how=set)",
            "x with values at positions in row-major order; negative ones count from the end, those outside "
            "are "
            "dropped. Of those with one index the last is left, or they add up.",
            call_put, put_samples, put_errors),
      entry("index_fill", "index_fill(x, axis, indices, value)",
            "x with one value wherever the coordinate along the axis is one of the indices.", call_index_fill,
            index_fill_samples, index_fill_errors),
      entry("masked_scatter", "masked_scatter(x, mask, source)",
            "x with the elements of source, one after the other, wherever the mask holds; NaN (or 0) where "
            "there "
            "are too few.",
            call_ternary<caldera::masked_scatter>, masked_scatter_samples, masked_scatter_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
