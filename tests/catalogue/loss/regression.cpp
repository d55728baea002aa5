// The entries of the family `regression`.
#include <fmt/core.h>

#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/loss/loss_samples.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

template <LazyTensor (*F)(const LazyTensor&, const LazyTensor&, Reduction)>
Results call_loss(Tensors x, const Arguments& a) {
  return {F(x[0], x[1], reduction_of(a))};
}

constexpr EntriesOf entry{.family = "regression",
                          .types = kFloating,
                          .ranges = {kOnGrid, kOffGrid},
                          .samples = [](const Operation& op) { return loss_samples(op); },
                          .errors = loss_errors};

template <class... Values>
std::vector<ErrorSample> also_refused(const Operation& op, const char* argument, Values... values) {
  std::vector<ErrorSample> out = loss_errors(op);
  (out.push_back({Refusal::value, {{{3}}, {{3}}}, {{argument, values}}, fmt::format("{}", values)}), ...);
  return out;
}

}  // namespace

std::span<const Operation> regression_operations() {
  static const Operation kTable[] = {
      entry("mse_loss", "mse_loss(input, target, reduction=mean)", "(input - target)^2, reduced.",
            call_loss<caldera::mse_loss>),
      entry("l1_loss", "l1_loss(input, target, reduction=mean)",
            "|input - target|, reduced; the slope at 0 is 0.", call_loss<caldera::l1_loss>),
      entry(
          "huber_loss", "huber_loss(input, target, reduction=mean, delta=1)",
          "d^2 / 2 where |d| = |input - target| is below delta, else delta * (|d| - delta / 2), reduced.",
          [](Tensors x, const Arguments& a) -> Results {
            return {huber_loss(x[0], x[1], reduction_of(a), a.real("delta", 1))};
          },
          [](const Operation& op) {
            return loss_samples(op, {{{"delta", 0.25}}, {{"delta", 3.0}}});
          },
          [](const Operation& op) { return also_refused(op, "delta", 0.0, -1.0); }),
      entry(
          "smooth_l1_loss", "smooth_l1_loss(input, target, reduction=mean, beta=1)",
          "d^2 / (2 beta) where |d| = |input - target| is below beta, else |d| - beta / 2, reduced.",
          [](Tensors x, const Arguments& a) -> Results {
            return {smooth_l1_loss(x[0], x[1], reduction_of(a), a.real("beta", 1))};
          },
          [](const Operation& op) {
            return loss_samples(op, {{{"beta", 0.25}}, {{"beta", 0.0}}});
          },
          [](const Operation& op) { return also_refused(op, "beta", -1.0); }),
  };
  return kTable;
}

}  // namespace caldera::catalogue
