// float16 and bfloat16 in products, gathers, attention and gradients, on every device, against float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "engine/device/backend.h"
#include "engine/plan/plan.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

constexpr DType kHalfTypes[] = {DType::f16, DType::bf16};

/// Of one: the distance between 1 and the next number.
double unit(DType type) { return type == DType::f16 ? 0x1p-10 : 0x1p-7; }

class HalfProducts : public OpTest {
 protected:
  void SetUp() override {
    OpTest::SetUp();
    if (!IsSkipped() && !supports(DType::f16)) GTEST_SKIP() << "no 16-bit storage";
  }
  Operand random(const Shape& shape, DType type, std::uint64_t seed, Layout layout = Layout::plain) const {
    return random_operand(shape, layout, type, device(), 0.1, 1, true, seed);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, HalfProducts, ::testing::ValuesIn(op_settings()), op_setting_name);

using Operands = const std::vector<LazyTensor>&;
using Function = std::function<std::vector<LazyTensor>(Operands)>;

std::vector<LazyTensor> tensors(const std::vector<Operand>& operands) {
  std::vector<LazyTensor> list;
  list.reserve(operands.size());
  for (const Operand& o : operands) list.push_back(o.tensor);
  return list;
}

/// Every result of `f` within `units` of the largest number that float64 gives for it.
void expect_close(const std::vector<Operand>& operands, const Function& f, double units, const char* what) {
  std::vector<LazyTensor> wide;
  wide.reserve(operands.size());
  for (const Operand& o : operands) {
    const bool integral = !is_floating(o.tensor.dtype());
    wide.push_back(upload(o.host, integral ? o.tensor.dtype() : DType::f64, Device::cpu()));
  }
  const std::vector<LazyTensor> results = f(tensors(operands));
  const std::vector<LazyTensor> expected = f(wide);
  eval(results);
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Host host(expected[k].shape(), download(expected[k]));
    double largest = 0;
    for (const double v : host.values) largest = std::max(largest, std::abs(v));
    EXPECT_TRUE(agrees(results[k], host, {0, units * unit(results[k].dtype()) * largest}))
        << what << ", result " << k << " of " << name(results[k].dtype());
  }
}

TEST_P(HalfProducts, Matmul) {
  struct Row {
    Shape a;
    Layout la;
    Shape b;
    Layout lb;
  };
  const Row rows[] = {
      {{1, 1025}, Layout::plain, {1025, 33}, Layout::plain},
      {{1, 1025}, Layout::plain, {1025, 130}, Layout::permuted},
      {{7, 33}, Layout::permuted, {33, 1}, Layout::plain},
      {{33, 7}, Layout::sliced, {7, 1025}, Layout::reversed},
      {{300, 129}, Layout::permuted, {129, 65}, Layout::permuted},
      {{65, 4100}, Layout::plain, {4100, 70}, Layout::permuted},
      {{1, 9000}, Layout::plain, {9000, 3}, Layout::plain},  // partial products
      {{2, 3, 5, 7}, Layout::permuted, {3, 7, 2}, Layout::plain},
      {{2, 0}, Layout::plain, {0, 3}, Layout::plain},
  };
  for (const DType type : kHalfTypes) {
    std::uint64_t seed = 1;
    for (const Row& row : rows) {
      const std::vector<Operand> operands{random(row.a, type, seed, row.la),
                                          random(row.b, type, seed + 1, row.lb)};
      seed += 2;
      const std::string what = row.a.to_string() + " @ " + row.b.to_string();
      expect_close(
          operands, [](Operands x) { return std::vector{matmul(x[0], x[1])}; }, 0.51, what.c_str());
      EXPECT_EQ(matmul(operands[0].tensor, operands[1].tensor).dtype(), type);
    }
  }
}

TEST_P(HalfProducts, WithAnEpilogueAndAdapter) {
  for (const DType type : kHalfTypes) {
    const std::vector<Operand> operands{random({33, 70}, type, 1), random({70, 40}, type, 2),
                                        random({70, 8}, type, 3), random({8, 40}, type, 4),
                                        random({40}, type, 5)};
    expect_close(
        operands,
        [](Operands x) {
          return std::vector{silu(matmul(x[0], x[1]) + lora_delta(x[0], x[2], x[3], 0.5) + x[4])};
        },
        settings().fusion ? 1.5 : 4, "lora");
  }
}

TEST_P(HalfProducts, OperandsOfOtherTypesAreReadAsTheyLie) {
  for (const DType type : kHalfTypes) {
    const Operand x = random({33, 70}, DType::f32, 1);
    const Operand w = random({40, 70}, type, 2);
    const LazyTensor y = matmul(x.tensor, transpose(astype(w.tensor, DType::f32)));
    EXPECT_EQ(plan_for({y})->steps.size(), 1U) << "no copy of the weights";
    EXPECT_EQ(plan_for({y})->arena_bytes, 0);
    const Host expected = Host::from(Shape{33, 40}, [&](const Index& at) {
      double total = 0;
      for (std::int64_t k = 0; k < 70; ++k) total += x.host[{at[0], k}] * w.host[{at[1], k}];
      return total;
    });
    EXPECT_TRUE(agrees(y, expected, {0, 1e-4}));
    // Both 16-bit types at once meet in float32.
    const Operand other = random({70, 5}, type == DType::f16 ? DType::bf16 : DType::f16, 3);
    const LazyTensor z = matmul(w.tensor, other.tensor);
    EXPECT_EQ(z.dtype(), DType::f32);
    const Host product = Host::from(Shape{40, 5}, [&](const Index& at) {
      double total = 0;
      for (std::int64_t k = 0; k < 70; ++k) total += w.host[{at[0], k}] * other.host[{k, at[1]}];
      return total;
    });
    EXPECT_TRUE(agrees(z, product, {0, 1e-4}));
  }
}

TEST_P(HalfProducts, OnlyWhatIsGatheredIsConverted) {
  const Operand table = random({100, 7}, DType::bf16, 1);
  const LazyTensor which = LazyTensor::from_vector<std::int32_t>({99, 0, 3, 100}, Shape{4}, device());
  const LazyTensor rows = take(astype(table.tensor, DType::f32), which);
  const auto plan = plan_for({rows});
  if (settings().fusion) {
    EXPECT_LE(plan->arena_bytes, 256) << plan->to_string();
  }
  EXPECT_TRUE(agrees(rows,
                     Host::from(Shape{4, 7},
                                [&](const Index& at) {
                                  const std::int64_t from[] = {99, 0, 3};
                                  return at[0] == 3 ? std::nan("") : table.host[{from[at[0]], at[1]}];
                                }),
                     {}));
}

TEST_P(HalfProducts, SumsOfScattersAreRoundedOnce) {
  for (const DType type : kHalfTypes) {
    // One by one in 16 bits the sum would stop where 1 is half a unit: at 256 and 2048.
    const std::int64_t count = 5000;
    const LazyTensor ones = LazyTensor::full(Shape{count}, 1, type, device());
    const LazyTensor zeros = LazyTensor::full(Shape{3}, 0, type, device());
    const LazyTensor where_to = LazyTensor::zeros(Shape{count}, DType::i32, device());
    EXPECT_TRUE(agrees(scatter_add(zeros, where_to, ones), Host(Shape{3}, {5000, 0, 0}), {}));
    EXPECT_TRUE(agrees(sum(ones), Host(Shape{}, {5000}), {}));
  }
}

TEST_P(HalfProducts, Gradients) {
  struct Row {
    const char* name;
    std::vector<Shape> shapes;
    LazyTensor (*of)(Operands);
  };
  const Row rows[] = {
      {"dense", {{33, 20}, {20, 7}, {7}}, [](Operands x) { return silu(matmul(x[0], x[1]) + x[2]); }},
      {"lora",
       {{9, 20}, {20, 7}, {20, 4}, {4, 7}},
       [](Operands x) { return matmul(x[0], x[1]) + lora_delta(x[0], x[2], x[3], 2); }},
      {"norm", {{33, 20}, {20}}, [](Operands x) { return rms_norm(x[0], 1e-5, x[1]); }},
      {"layer norm", {{7, 33}, {33}, {33}}, [](Operands x) { return layer_norm(x[0], 1e-5, x[1], x[2]); }},
      {"softmax", {{7, 33}}, [](Operands x) { return softmax(x[0]); }},
      {"gather",
       {{9, 5}},
       [](Operands x) {
         return take(x[0], LazyTensor::from_vector<std::int32_t>({1, 1, 8, 0, 1}, Shape{5}, x[0].device()));
       }},
      {"joined",
       {{3, 5}, {3, 2}},
       [](Operands x) {
         return concatenate({x[0] * 2, x[1]}, 1);
       }},
      {"sliced", {{6, 5}}, [](Operands x) { return slice(x[0], 0, 1, 5, 2) * 3; }},
      {"broadcast", {{5}, {300, 1}}, [](Operands x) { return x[0] * x[1]; }},
  };
  for (const DType type : kHalfTypes) {
    for (const Row& row : rows) {
      std::vector<Operand> operands;
      operands.reserve(row.shapes.size());
      for (std::size_t k = 0; k < row.shapes.size(); ++k)
        operands.push_back(random(row.shapes[k], type, 10 + k));
      const auto gradients = [&](Operands x) {
        const LazyTensor y = row.of(x);
        const LazyTensor weights =
            astype(cos(astype(arange(y.numel(), DType::i32, y.device()), DType::f32)), y.dtype());
        return grad(sum(y * reshape(weights, y.shape())), x);
      };
      for (const LazyTensor& g : gradients(tensors(operands))) EXPECT_EQ(g.dtype(), type) << row.name;
      expect_close(operands, gradients, 4, row.name);
    }
  }
}

LazyTensor attend(Operands x, bool causal, bool wide_softmax) {
  const LazyTensor& q = x[0];
  LazyTensor scores = matmul(q, transpose(x[1])) * 0.3;
  if (wide_softmax) scores = astype(scores, q.dtype() == DType::f64 ? DType::f64 : DType::f32);
  if (causal) {
    const LazyTensor rows = iota(Shape{q.shape(-2), 1}, 0, DType::i32, q.device());
    const LazyTensor columns = iota(Shape{1, x[1].shape(-2)}, 1, DType::i32, q.device());
    scores = where(columns <= rows + 3, scores, full_like(scores, -1e4));
  }
  return matmul(astype(softmax(scores), q.dtype()), x[2]);
}

TEST_P(HalfProducts, Attention) {
  for (const DType type : kHalfTypes) {
    for (const bool causal : {false, true}) {
      for (const bool wide_softmax : {false, true}) {
        const std::vector<Operand> operands{random({2, 3, 33, 20}, type, 1), random({2, 3, 40, 20}, type, 2),
                                            random({2, 3, 40, 7}, type, 3), random({2, 3, 33, 7}, type, 4)};
        const std::string what =
            std::string(causal ? "causal" : "plain") + (wide_softmax ? ", softmax in float32" : "");
        const auto forward = [&](Operands x) { return std::vector{attend(x, causal, wide_softmax)}; };
        const auto backward = [&](Operands x) {
          const LazyTensor loss = sum(attend(x, causal, wide_softmax) * x[3]);
          return grad(loss, {x[0], x[1], x[2]});
        };
        expect_close(operands, forward, 3, what.c_str());
        expect_close(operands, backward, 6, what.c_str());
        if (!settings().fusion) continue;
        const std::vector<LazyTensor> all = backward(tensors(operands));
        const auto plan = plan_for(all);
        const auto count = [&](std::string_view kind) {
          return std::count_if(plan->steps.begin(), plan->steps.end(),
                               [&](const Step& step) { return step.kind() == kind; });
        };
        EXPECT_EQ(count("attention"), 1) << what;
        const bool joined = backend(device()).traits().joins_attention_gradients;
        EXPECT_EQ(count("attention_grad"), joined ? 1 : 0) << what;
        EXPECT_EQ(count("attention_grad_q"), joined ? 0 : 1) << what;
        EXPECT_EQ(count("attention_grad_kv"), joined ? 0 : 1) << what;
        EXPECT_EQ(count("contract"), 0) << what << "\n" << plan->to_string();
      }
    }
  }
}

}  // namespace
}  // namespace caldera::testing
