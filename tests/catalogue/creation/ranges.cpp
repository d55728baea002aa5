// The entries of the family `ranges`.
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Rows = std::vector<Sample>;
using Errors = std::vector<ErrorSample>;

constexpr auto kFloatingTypes = {DType::f16, DType::bf16, DType::f32, DType::f64};

Rows in_types(std::span<const DType> types, const std::vector<Arguments>& calls) {
  Rows out;
  for (const Arguments& call : calls) {
    for (const DType type : types) {
      out.push_back({{}, call});
      out.back().arguments.set("dtype", type);
    }
  }
  return out;
}

Arguments spaced(double start, double stop, std::int64_t num, bool endpoint = true) {
  return {{"start", start}, {"stop", stop}, {"num", num}, {"endpoint", endpoint}};
}
Arguments matrix(std::int64_t rows, std::int64_t columns, std::int64_t k) {
  return {{"rows", rows}, {"columns", columns}, {"k", k}};
}

Results call_eye(Tensors, const Arguments& a) {
  const std::int64_t rows = a.integer("rows", 0);
  return {eye(rows, a.integer("columns", rows), a.integer("k", 0), a.dtype("dtype", DType::f32))};
}
Results call_linspace(Tensors, const Arguments& a) {
  return {linspace(a.real("start", 0), a.real("stop", 1), a.integer("num", 0), a.dtype("dtype", DType::f32),
                   a.flag("endpoint", true))};
}

constexpr EntriesOf entry{
    .family = "creation", .types = {}, .result = ResultType::argument, .gradient = Gradient::none};

}  // namespace

Results call_arange(Tensors, const Arguments& a) {
  if (a.has("n")) return {arange(a.integer("n", 0), a.dtype("dtype", DType::i32))};
  if (a.has("from"))
    return {
        arange(a.integer("from", 0), a.integer("to", 0), a.integer("by", 1), a.dtype("dtype", DType::i32))};
  return {arange(a.real("start", 0), a.real("stop", 0), a.real("step", 1), a.dtype("dtype", DType::f32))};
}

std::span<const Operation> range_operations() {
  static const Operation kTable[] = {
      entry(
          "arange", "arange(n, dtype=int32) or arange(start, stop, step=1, dtype)",
          "0, 1, ..., n - 1; or start, start + step, ... before stop. Of integers int32, otherwise float32.",
          call_arange,
          [](const Operation&) -> Rows {
            Rows out;
            for (const std::int64_t n : {0, 1, 7}) {
              for (const DType type : kAllDTypes) {
                if (type != DType::boolean) out.push_back({{}, {{"n", n}, {"dtype", type}}});
              }
            }
            const auto whole = [](std::int64_t from, std::int64_t to, std::int64_t by) {
              return Arguments{{"from", from}, {"to", to}, {"by", by}};
            };
            const auto real = [](double start, double stop, double step) {
              return Arguments{{"start", start}, {"stop", stop}, {"step", step}};
            };
            for (const Rows& more :
                 {in_types(
                      std::array{DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::f32,
                                 DType::f64},
                      {whole(2, 9, 1), whole(2, 9, 3), whole(5, -4, -2), whole(5, 5, 1), whole(1, 5, -1)}),
                  in_types(std::array{DType::i64},
                           {whole(1LL << 40, (1LL << 40) + 7, 2), whole(-(1LL << 62), 1LL << 62, 1LL << 60)}),
                  in_types(std::array{DType::u8, DType::u32}, {whole(3, 250, 60)}),
                  in_types(std::array{DType::u32}, {whole(4'000'000'000, 4'294'967'295, 100'000'000)}),
                  in_types(kFloatingTypes, {real(0, -1, 1), real(0, 1, 0.25), real(1, -1, -0.5),
                                            real(0.5, 2.2, 0.5), real(-3, 4, 1.75)})})
              out.insert(out.end(), more.begin(), more.end());
            return out;
          },
          [](const Operation&) -> Errors {
            const auto real = [](double start, double stop, double step) {
              return Arguments{{"start", start}, {"stop", stop}, {"step", step}};
            };
            return {
                {.refusal = Refusal::shape, .arguments = {{"n", std::int64_t{-1}}}, .mentions = "-1"},
                {.refusal = Refusal::value, .arguments = real(0, 1, 0), .mentions = "lead nowhere"},
                {.refusal = Refusal::value, .arguments = real(0, HUGE_VAL, 1), .mentions = "not finite"},
                {.refusal = Refusal::value, .arguments = real(0, 1, 1e-10), .mentions = "2^31"},
                {.refusal = Refusal::value,
                 .arguments = {{"from", std::int64_t{0}}, {"to", std::int64_t{1} << 40}},
                 .mentions = "2^31"},
                {.refusal = Refusal::value,
                 .arguments = {{"from", std::int64_t{2147483646}}, {"to", std::int64_t{2147483650}}},
                 .mentions = "int32"},
                {.refusal = Refusal::value,
                 .arguments = {{"from", std::int64_t{250}}, {"to", std::int64_t{260}}, {"dtype", DType::u8}},
                 .mentions = "uint8 is from 0 to 255"},
                {.refusal = Refusal::value,
                 .arguments = {{"from", std::int64_t{2}},
                               {"to", std::int64_t{-3}},
                               {"by", std::int64_t{-1}},
                               {"dtype", DType::u32}},
                 .mentions = "uint32"},
                {.refusal = Refusal::value,
                 .arguments = {{"start", 100.0}, {"stop", 130.0}, {"dtype", DType::i8}},
                 .mentions = "int8"},
                {.refusal = Refusal::value,
                 .arguments = {{"n", std::int64_t{257}}, {"dtype", DType::u8}},
                 .mentions = "uint8"},
                {.refusal = Refusal::dtype,
                 .arguments = {{"from", std::int64_t{0}}, {"to", std::int64_t{3}}, {"dtype", DType::boolean}},
                 .mentions = "bool"},
                {.refusal = Refusal::dtype,
                 .arguments = {{"n", std::int64_t{3}}, {"dtype", DType::boolean}},
                 .mentions = "bool"}};
          }),
      entry(
          "linspace", "linspace(start, stop, num, dtype=float32, endpoint=true)",
          "Evenly spaced numbers from start to stop, both exactly as given; without endpoint stop would be "
          "the next one.",
          call_linspace,
          [](const Operation&) {
            return in_types(kFloatingTypes, {spaced(0, 1, 5), spaced(-1, 2, 7), spaced(3, -0.75, 33),
                                             spaced(0.5, 7, 1), spaced(0, 1, 0), spaced(-2, 5, 2),
                                             spaced(0, 1, 8, false), spaced(2, -3, 1, false)});
          },
          [](const Operation&) -> Errors {
            return {
                {.refusal = Refusal::value, .arguments = spaced(0, 1, -1), .mentions = "num is -1"},
                {.refusal = Refusal::value, .arguments = spaced(0, HUGE_VAL, 3), .mentions = "not finite"},
                {.refusal = Refusal::value, .arguments = spaced(NAN, 1, 3), .mentions = "not finite"},
                {.refusal = Refusal::dtype,
                 .arguments = {{"num", std::int64_t{3}}, {"dtype", DType::i32}},
                 .mentions = "int32"}};
          }),
      entry(
          "eye", "eye(rows, columns=rows, k=0, dtype=float32)",
          "Ones on the diagonal k of a matrix of zeros.", call_eye,
          [](const Operation&) {
            return in_types(kAllDTypes, {matrix(3, 3, 0), matrix(2, 5, 1), matrix(5, 2, -3), matrix(3, 4, 9),
                                         matrix(0, 3, 0), matrix(1, 1, 0)});
          },
          [](const Operation&) -> Errors {
            return {{.refusal = Refusal::shape, .arguments = matrix(-1, 2, 0), .mentions = "-1"},
                    {.refusal = Refusal::shape, .arguments = matrix(2, -3, 0), .mentions = "-3"}};
          }),
  };
  return kTable;
}

}  // namespace caldera::catalogue
