#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {

using Integers = Arguments::Integers;

std::vector<Sample> unary_samples(const Operation& operation) {
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{33}, Shape{2, 3}, Shape{0, 3}, Shape{2, 1, 5},
                             Shape{2, 3, 2, 2}}) {
    out.push_back({{{shape, operation.ranges[0]}}});
  }
  return out;
}

std::vector<Sample> unary_samples_with(const Operation& operation,
                                       std::initializer_list<Arguments> variants) {
  std::vector<Sample> out = unary_samples(operation);
  for (const Arguments& variant : variants) {
    for (const Shape& shape : {Shape{}, Shape{33}, Shape{2, 3}, Shape{0, 3}})
      out.push_back({{{shape, operation.ranges[0]}}, variant});
  }
  return out;
}

std::vector<Sample> binary_samples(const Operation& operation) {
  struct Pair {
    Shape a, b;
  };
  static const Pair kPairs[] = {
      {{}, {}},
      {{1}, {1}},
      {{7}, {7}},
      {{33}, {33}},
      {{2, 3}, {2, 3}},
      {{0, 3}, {0, 3}},
      {{2, 3, 4}, {2, 3, 4}},
      {{7}, {}},
      {{}, {7}},
      {{2, 3}, {3}},
      {{3}, {2, 3}},
      {{2, 1}, {1, 3}},
      {{2, 1, 4}, {3, 1}},
      {{1}, {2, 3}},
      {{0, 3}, {3}},
      {{2, 1, 1, 3}, {5, 1}},
  };
  std::vector<Sample> out;
  for (const Pair& pair : kPairs) {
    out.push_back({{{pair.a, operation.ranges[0]}, {pair.b, operation.ranges[1]}}});
  }
  return out;
}

std::vector<ErrorSample> binary_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{4}}}, .mentions = "(2, 3)"},
          {.refusal = Refusal::shape, .operands = {{{0}}, {{2}}}, .mentions = "(0,)"},
          {.refusal = Refusal::shape, .operands = {{{2, 3, 4}}, {{2, 3}}}, .mentions = "(2, 3, 4)"}};
}

std::vector<Sample> reduction_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{33}, Shape{2, 3}}) {
    out.push_back({{{shape, range}}});
  }
  for (const bool keepdims : {false, true}) {
    for (const Integers& axes :
         {Integers{0}, Integers{-1}, Integers{1}, Integers{0, 2}, Integers{-1, 0, 1}}) {
      out.push_back({{{{2, 3, 4}, range}}, {{"axis", axes}, {"keepdims", keepdims}}});
    }
  }
  out.push_back({{{{2, 0, 3}, range}}, {{"axis", Integers{0}}}});
  out.push_back({{{{3, 1, 2, 5}, range}}, {{"axis", Integers{1, 3}}}});
  out.push_back({{{{70, 3}, range}}, {{"axis", Integers{0}}}});
  return out;
}

std::vector<ErrorSample> reduction_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}}, {{"axis", Integers{2}}}, "(2, 3)"},
          {Refusal::shape, {{{2, 3}}}, {{"axis", Integers{-3}}}, "-3"},
          {Refusal::shape, {{{2, 3}}}, {{"axis", Integers{1, -1}}}, "(2, 3)"},
          {Refusal::shape, {{{}}}, {{"axis", Integers{1}}}, "()"}};
}

std::vector<Sample> axis_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  std::vector<Sample> out;
  // Without elements, and without axes.
  out.push_back({{{{0, 3}, range}}});
  out.push_back({{{{}, range}}});
  out.push_back({{{{}, range}}, {{"axis", std::int64_t{0}}}});
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{33}, Shape{3, 7}}) out.push_back({{{shape, range}}});
  for (const std::int64_t axis : {-1, 0, 1, -3}) out.push_back({{{{2, 3, 4}, range}}, {{"axis", axis}}});
  out.push_back({{{{5, 3}, range}}, {{"axis", std::int64_t{0}}}});
  return out;
}

std::vector<ErrorSample> axis_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}}, {{"axis", std::int64_t{2}}}, "(2, 3)"},
          {Refusal::shape, {{{2, 3}}}, {{"axis", std::int64_t{-3}}}, "-3"},
          {Refusal::shape, {{{}}}, {{"axis", std::int64_t{1}}}, "()"}};
}

std::vector<ErrorSample> refused_values(
    std::initializer_list<std::pair<Arguments, std::string>> arguments_and_mentions) {
  std::vector<ErrorSample> out;
  for (const auto& [arguments, mentions] : arguments_and_mentions)
    out.push_back({Refusal::value, {{{3}}}, arguments, mentions});
  return out;
}

std::vector<ErrorSample> no_errors(const Operation&) { return {}; }

}  // namespace caldera::catalogue
