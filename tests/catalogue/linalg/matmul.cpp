// The entries of the family `matmul`.
#include <cstdint>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

std::vector<Sample> matmul_samples(const Operation&) {
  struct Pair {
    Shape a, b;
  };
  static const Pair kPairs[] = {{{1}, {1}},          {{7}, {7}},
                                {{3}, {3, 4}},       {{4, 3}, {3}},
                                {{2, 3}, {3, 4}},    {{1, 5}, {5, 1}},
                                {{5, 1}, {1, 5}},    {{9, 17}, {17, 6}},
                                {{2, 4, 3}, {3, 5}}, {{2, 4, 3}, {2, 3, 5}},
                                {{4, 3}, {2, 3, 5}}, {{2, 1, 4, 3}, {3, 3, 2}},
                                {{2, 0}, {0, 3}},    {{0, 3}, {3, 2}},
                                {{3}, {2, 3, 4}}};
  std::vector<Sample> out;
  for (const Pair& pair : kPairs) out.push_back({{{pair.a}, {pair.b}}});
  return out;
}

std::vector<ErrorSample> matmul_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{4, 5}}}, .mentions = "(4, 5)"},
          {.refusal = Refusal::shape, .operands = {{{3}}, {{4}}}, .mentions = "(4,)"},
          {.refusal = Refusal::shape, .operands = {{{2, 3, 4}}, {{5, 4, 3}}}, .mentions = "(5, 4, 3)"},
          {.refusal = Refusal::shape, .operands = {{{}}, {{2, 2}}}, .mentions = "()"}};
}

std::vector<Sample> lora_samples(const Operation&) {
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{5}, Shape{1, 5}, Shape{7, 5}, Shape{2, 3, 5}, Shape{0, 5}}) {
    for (const std::int64_t rank : {1, 3}) {
      out.push_back({{{shape}, {{5, rank}}, {{rank, 4}}}, {{"scale", 0.75}}});
    }
  }
  return out;
}

std::vector<ErrorSample> lora_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{4, 2}}, {{2, 5}}}, .mentions = "(4, 2)"},
          {.refusal = Refusal::shape, .operands = {{{2, 3}}, {{3, 2}}, {{3, 5}}}, .mentions = "(3, 5)"}};
}

}  // namespace

std::span<const Operation> matmul_operations() {
  static const Operation kTable[] = {
      {.name = "matmul",
       .family = "matmul",
       .signature = "matmul(a, b)",
       .summary =
           "The matrix product, with the Array API's rules for vectors and broadcast batches. 16-bit types "
           "accumulate in float32.",
       .types = kNumeric,
       .call = call_binary<caldera::matmul>,
       .samples = matmul_samples,
       .errors = matmul_errors},
      {.name = "lora_delta",
       .family = "matmul",
       .signature = "lora_delta(x, a, b, scale)",
       .summary = "scale * ((x @ a) @ b): what a LoRA adapter adds to a layer's output.",
       .types = kFloating,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         return {caldera::lora_delta(x[0], x[1], x[2], a.real("scale", 1))};
       },
       .samples = lora_samples,
       .errors = lora_errors},
  };
  return kTable;
}

}  // namespace caldera::catalogue
