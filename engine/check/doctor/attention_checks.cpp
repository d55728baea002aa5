// Attention and its gradients: lengths, head sizes, masks, grouped queries.
#include <limits>
#include <string>

#include "engine/check/doctor/checks.h"
#include "engine/check/reference/attention_case.h"
#include "engine/device/backend.h"

namespace caldera::doctor {
namespace {

using reference::AttentionCase;
using reference::AttentionSetting;
using reference::ScoreKind;

constexpr double kInf = std::numeric_limits<double>::infinity();

/// `halves`: weights, and gradients of scores, may be rounded to f16.
void check(Examination& x, const std::string& name, const AttentionSetting& setting, bool halves = false) {
  const bool gpu = x.gpu();
  PlanCase forward(x.device());
  AttentionCase(forward, setting).add_forward();
  if (halves)
    x.compare("attention, " + name, forward,
              {{1e-3, 5e-4}, "weighted means of numbers below 1, weights of 11 bits"});
  else
    x.compare(
        "attention, " + name, forward,
        {{gpu ? 3e-5 : 1e-5, gpu ? 2e-5 : 1e-5}, "weighted means of numbers below 1, exp of f32 scores"});
  PlanCase gradients(x.device());
  AttentionCase(gradients, setting).add_gradients();
  if (halves)
    return x.compare("attention gradients, " + name, gradients,
                     {{2e-3, 4e-3}, "sums over the queries or keys of terms of 11 bits"});
  x.compare(
      "attention gradients, " + name, gradients,
      {{gpu ? 1e-4 : 3e-5, gpu ? 2e-4 : 5e-5}, "sums over the queries or keys, each of a product's error"});
  if (!x.backend().traits().joins_attention_gradients) return;
  AttentionSetting joined = setting;
  joined.joined = true;
  PlanCase all(x.device());
  AttentionCase(all, joined).add_gradients();
  x.compare("attention gradients in one step, " + name, all,
            {{3e-5, 5e-5}, "sums over the queries or keys, each of a product's error"});
}

}  // namespace

void check_attention(Examination& x) {
  for (std::int64_t m : {1, 7, 33})
    for (std::int64_t n : {1, 33, 130})
      check(x, std::to_string(m) + " queries, " + std::to_string(n) + " keys",
            {.heads = 2, .m = m, .n = n, .d = 16, .e = 16});
  for (std::int64_t d : {4, 33, 64, 128})
    check(x, "head size " + std::to_string(d), {.m = 33, .n = 40, .d = d, .e = d});
  check(x, "head sizes 64 and 33", {.m = 7, .n = 33, .d = 64, .e = 33});
  struct Masked {
    const char* name;
    ScoreKind score;
    double fill;
  };
  for (const Masked& kind :
       {Masked{"keys masked", ScoreKind::boolean_mask, -1e30}, Masked{"masked", ScoreKind::full_mask, -kInf},
        Masked{"with a bias", ScoreKind::bias, 0}, Masked{"scores capped", ScoreKind::capped, 0},
        Masked{"causal", ScoreKind::causal, -1e30},
        Masked{"causal, filled with minus infinity", ScoreKind::causal, -kInf},
        Masked{"causal, with a bias", ScoreKind::causal_bias, -1e30}})
    check(
        x, kind.name,
        {.batch = 2, .heads = 2, .m = 70, .n = 70, .d = 16, .e = 8, .score = kind.score, .fill = kind.fill});
  check(x, "grouped queries, heads inside",
        {.batch = 2,
         .heads = 2,
         .group = 3,
         .m = 33,
         .n = 33,
         .d = 16,
         .e = 16,
         .score = ScoreKind::causal,
         .heads_inside = true});
  check(x, "decoding after 129 keys",
        {.heads = 1,
         .group = 4,
         .m = 1,
         .n = 130,
         .d = 64,
         .e = 64,
         .score = ScoreKind::causal,
         .offset = 129});
  check(
      x, "large scores",
      {.heads = 2, .m = 33, .n = 130, .d = 16, .e = 8, .score = ScoreKind::scaled, .values = {-9, 9, true}});
  check(x, "no queries", {.heads = 2, .m = 0, .n = 7, .d = 8, .e = 8});
}

void check_attention_variant(Examination& x, bool rounds_weights) {
  for (const DType memory : {DType::f32, DType::f16}) {
    const std::string of = memory == DType::f16 ? " of f16" : "";
    const bool halves = rounds_weights && memory == DType::f16;
    check(x, "7 queries, 5 keys" + of, {.m = 7, .n = 5, .d = 4, .e = 9, .memory = memory}, halves);
    check(x, "causal, uneven heads" + of,
          {.group = 2, .m = 33, .n = 33, .d = 33, .e = 16, .score = ScoreKind::causal, .memory = memory},
          halves);
    check(x, "several blocks" + of,
          {.heads = 2,
           .m = 130,
           .n = 200,
           .d = 64,
           .e = 64,
           .score = ScoreKind::causal_bias,
           .fill = -kInf,
           .offset = 60,
           .memory = memory},
          halves);
    check(x, "scores that grow" + of,
          {.heads = 2, .m = 40, .n = 130, .d = 16, .e = 8, .values = {-9, 9, true}, .memory = memory},
          halves);
  }
}

}  // namespace caldera::doctor
