// Adapters of every kind against their formulas in double, through files, and their gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/testing/gradcheck.h"
#include "lm/adapters/adapter_bank.h"
#include "lm/adapters/lora.h"
#include "lm/models/llama.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/devices.h"
#include "tests/support/tiny_llama.h"

namespace caldera::testing {
namespace {

constexpr std::int64_t kIn = 10, kOut = 7, kRows = 3;
constexpr int kRank = 2;

/// A matrix in double, row-major.
struct Matrix {
  std::int64_t rows, columns;
  std::vector<double> values;
  double& at(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * columns + j)]; }
  double at(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
};

Matrix read(const LazyTensor& x) {
  const std::vector<float> values = x.to_vector<float>();
  return {x.shape(0), x.rank() > 1 ? x.shape(1) : 1, {values.begin(), values.end()}};
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c{a.rows, b.columns, std::vector<double>(static_cast<std::size_t>(a.rows * b.columns))};
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < b.columns; ++j)
      for (std::int64_t k = 0; k < a.columns; ++k) c.at(i, j) += a.at(i, k) * b.at(k, j);
  return c;
}

/// The weight that the formula of the kind gives, then y = x W'^T + bias.
Matrix expected(const Matrix& x, const Matrix& weight, const Matrix& bias, const Matrix& change, double scale,
                const std::vector<double>* magnitude) {
  Matrix adapted = weight;
  for (std::size_t i = 0; i < adapted.values.size(); ++i) adapted.values[i] += scale * change.values[i];
  if (magnitude != nullptr) {  // Liu et al. 2024, equation 5
    for (std::int64_t i = 0; i < adapted.rows; ++i) {
      double squares = 0;
      for (std::int64_t j = 0; j < adapted.columns; ++j) squares += adapted.at(i, j) * adapted.at(i, j);
      for (std::int64_t j = 0; j < adapted.columns; ++j)
        adapted.at(i, j) *= (*magnitude)[static_cast<std::size_t>(i)] / std::sqrt(squares);
    }
  }
  Matrix y{x.rows, weight.rows, std::vector<double>(static_cast<std::size_t>(x.rows * weight.rows))};
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t o = 0; o < weight.rows; ++o) {
      y.at(i, o) = bias.values[static_cast<std::size_t>(o)];
      for (std::int64_t j = 0; j < x.columns; ++j) y.at(i, o) += x.at(i, j) * adapted.at(o, j);
    }
  return y;
}

void expect_near(const LazyTensor& actual, const Matrix& want, double tolerance) {
  const std::vector<float> values = actual.to_vector<float>();
  ASSERT_EQ(values.size(), want.values.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], want.values[i], tolerance) << i;
}

struct Kind {
  const char* name;
  LoRAOptions options;
};

class AdapterKinds : public ::testing::TestWithParam<std::tuple<Kind, Device>> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(device());
    weight_ = random_normal(Shape{kOut, kIn}, 1, DType::f32, device()) * 0.3;
    bias_ = random_normal(Shape{kOut}, 2, DType::f32, device());
    x_ = random_normal(Shape{kRows, kIn}, 3, DType::f32, device());
  }
  Device device() const { return std::get<1>(GetParam()); }
  const LoRAOptions& options() const { return std::get<0>(GetParam()).options; }

  std::unique_ptr<LoRALinear> module() const {
    return std::make_unique<LoRALinear>(std::make_unique<Linear>(weight_, bias_), options(), 7);
  }
  double scale() const { return options().use_rslora ? 3.0 / std::sqrt(2.0) : 3.0 / 2.0; }

  LazyTensor weight_, bias_, x_;
};
const LoRAOptions kBase{.rank = kRank, .alpha = 3};
LoRAOptions with(bool rslora, bool dora, LoRAInit init = LoRAInit::kaiming) {
  LoRAOptions options = kBase;
  options.use_rslora = rslora;
  options.use_dora = dora;
  options.init = init;
  return options;
}
std::string kind_name(const ::testing::TestParamInfo<std::tuple<Kind, Device>>& info) {
  return std::string(std::get<0>(info.param).name) +
         (std::get<1>(info.param).kind == DeviceKind::vulkan ? "_vulkan" : "_cpu");
}
INSTANTIATE_TEST_SUITE_P(
    All, AdapterKinds,
    ::testing::Combine(::testing::Values(Kind{"lora", with(false, false)}, Kind{"rslora", with(true, false)},
                                         Kind{"dora", with(false, true)}, Kind{"rsdora", with(true, true)},
                                         Kind{"gaussian", with(false, false, LoRAInit::gaussian)},
                                         Kind{"pissa", with(false, false, LoRAInit::pissa)},
                                         Kind{"rspissa", with(true, false, LoRAInit::pissa)},
                                         Kind{"dora_pissa", with(false, true, LoRAInit::pissa)}),
                       ::testing::ValuesIn(tested_devices())),
    kind_name);

/// The kinds that begin as the weight's largest part.
class PissaKinds : public AdapterKinds {};
INSTANTIATE_TEST_SUITE_P(
    All, PissaKinds,
    ::testing::Combine(::testing::Values(Kind{"pissa", with(false, false, LoRAInit::pissa)},
                                         Kind{"rspissa", with(true, false, LoRAInit::pissa)}),
                       ::testing::ValuesIn(tested_devices())),
    kind_name);

TEST_P(AdapterKinds, BeginsAsItsBase) {
  const Matrix nothing{kOut, kIn, std::vector<double>(kOut * kIn)};
  expect_near(module()->forward(x_), expected(read(x_), read(weight_), read(bias_), nothing, 1, nullptr),
              2e-5);
}

TEST_P(AdapterKinds, IsItsFormulaOnceTrained) {
  const auto lora = module();
  const Matrix a0 = read(lora->lora_a()), b0 = read(lora->lora_b());
  lora->lora_a() = lora->lora_a() + random_normal(Shape{kRank, kIn}, 11, DType::f32, device()) * 0.2;
  lora->lora_b() = lora->lora_b() + random_normal(Shape{kOut, kRank}, 12, DType::f32, device()) * 0.2;
  Matrix change = product(read(lora->lora_b()), read(lora->lora_a()));
  if (options().init == LoRAInit::pissa) {
    const Matrix first = product(b0, a0);
    for (std::size_t i = 0; i < change.values.size(); ++i) change.values[i] -= first.values[i];
  }
  std::vector<double> magnitude;
  if (options().use_dora) {
    lora->magnitude() = lora->magnitude() * 1.25;
    magnitude = read(lora->magnitude()).values;
  }
  const Matrix want = expected(read(x_), read(weight_), read(bias_), change, scale(),
                               options().use_dora ? &magnitude : nullptr);
  expect_near(lora->forward(x_), want, 5e-5);
  // What is published is the same: plain factors on the base, and the change of the weight as a whole.
  const LoRALinear::Published p = lora->published();
  EXPECT_NE(p.options.init, LoRAInit::pissa);
  const LazyTensor merged = weight_ + lora->weight_change();
  expect_near(matmul(x_, transpose(merged)) + bias_, want, 5e-5);
  if (!options().use_dora) {
    LoRALinear again(std::make_unique<Linear>(weight_, bias_), p.options, p.a, p.b);
    expect_near(again.forward(x_), want, 5e-5);
  }
}

TEST_P(PissaKinds, TakeTheLargestPart) {
  // By power iteration on W^T W, deflated: the rank-2 part that leaves the least.
  const Matrix w = read(weight_);
  const auto lora = module();
  const Matrix part = product(read(lora->lora_b()), read(lora->lora_a()));
  double left = 0;
  for (std::size_t i = 0; i < w.values.size(); ++i)
    left += std::pow(w.values[i] - scale() * part.values[i], 2);
  Matrix rest = w;
  for (int k = 0; k < kRank; ++k) {
    std::vector<double> v(kIn, 1);
    for (int turn = 0; turn < 3000; ++turn) {
      std::vector<double> u(kOut), next(kIn);
      for (std::int64_t i = 0; i < kOut; ++i)
        for (std::int64_t j = 0; j < kIn; ++j)
          u[static_cast<std::size_t>(i)] += rest.at(i, j) * v[static_cast<std::size_t>(j)];
      for (std::int64_t i = 0; i < kOut; ++i)
        for (std::int64_t j = 0; j < kIn; ++j)
          next[static_cast<std::size_t>(j)] += rest.at(i, j) * u[static_cast<std::size_t>(i)];
      const double length = std::sqrt(std::inner_product(next.begin(), next.end(), next.begin(), 0.0));
      for (std::size_t j = 0; j < v.size(); ++j) v[j] = next[j] / length;
    }
    for (std::int64_t i = 0; i < kOut; ++i) {
      double along = 0;
      for (std::int64_t j = 0; j < kIn; ++j) along += rest.at(i, j) * v[static_cast<std::size_t>(j)];
      for (std::int64_t j = 0; j < kIn; ++j) rest.at(i, j) -= along * v[static_cast<std::size_t>(j)];
    }
  }
  const double least = std::inner_product(rest.values.begin(), rest.values.end(), rest.values.begin(), 0.0);
  EXPECT_NEAR(left, least, 1e-4 * least);
}

TEST_P(PissaKinds, HaveGradientsAtTheBeginning) {
  // There the trained factors are the tensors that are taken away: their gradients must not cancel.
  const auto lora = module();
  const std::vector<LazyTensor> grads =
      grad(sum(lora->forward(x_) * slice(x_, 1, 0, kOut)), {lora->lora_a(), lora->lora_b()});
  for (const LazyTensor& g : grads) EXPECT_GT(max(abs(g)).item<float>(), 0.01F);
}

TEST_P(AdapterKinds, GradientsAreThoseOfTheFormula) {
  // Numeric derivatives of the formula in double; the lengths of DoRA's rows are constants to it.
  const auto lora = module();
  lora->lora_b() = lora->lora_b() + random_normal(Shape{kOut, kRank}, 12, DType::f32, device()) * 0.2;
  lora->lora_a().eval();
  lora->lora_b().eval();
  const LazyTensor weights = random_normal(Shape{kRows, kOut}, 20, DType::f32, device());
  std::vector<LazyTensor> inputs{lora->lora_a(), lora->lora_b()};
  if (options().use_dora) inputs.push_back(lora->magnitude());
  const std::vector<LazyTensor> grads = grad(sum(lora->forward(x_) * weights), inputs);
  const Matrix x = read(x_), w = read(weight_), r = read(weights), a = read(lora->lora_a()),
               b = read(lora->lora_b());
  // g = dL/dy, G = g^T x (out, in); with DoRA each row of G is scaled by m / |row|, which stands still.
  std::vector<double> rows(kOut, 1.0), lengths(kOut, 1.0), magnitude(kOut, 1.0);
  const LoRALinear::Published p = lora->published();
  const Matrix change = product(read(p.b), read(p.a));
  Matrix adapted = w;
  for (std::size_t i = 0; i < adapted.values.size(); ++i)
    adapted.values[i] += p.options.scaling() * change.values[i];
  if (options().use_dora) {
    magnitude = read(lora->magnitude()).values;
    for (std::int64_t i = 0; i < kOut; ++i) {
      double squares = 0;
      for (std::int64_t j = 0; j < kIn; ++j) squares += adapted.at(i, j) * adapted.at(i, j);
      lengths[static_cast<std::size_t>(i)] = std::sqrt(squares);
      rows[static_cast<std::size_t>(i)] = magnitude[static_cast<std::size_t>(i)] / std::sqrt(squares);
    }
  }
  Matrix g{kOut, kIn, std::vector<double>(kOut * kIn)};
  for (std::int64_t o = 0; o < kOut; ++o)
    for (std::int64_t j = 0; j < kIn; ++j)
      for (std::int64_t i = 0; i < kRows; ++i) g.at(o, j) += r.at(i, o) * x.at(i, j);
  Matrix of_a{kRank, kIn, std::vector<double>(kRank * kIn)},
      of_b{kOut, kRank, std::vector<double>(kOut * kRank)};
  Matrix of_m{kOut, 1, std::vector<double>(kOut)};
  for (std::int64_t o = 0; o < kOut; ++o)
    for (std::int64_t j = 0; j < kIn; ++j) {
      const double scaled = g.at(o, j) * rows[static_cast<std::size_t>(o)] * scale();
      for (std::int64_t k = 0; k < kRank; ++k) {
        of_a.at(k, j) += b.at(o, k) * scaled;
        of_b.at(o, k) += a.at(k, j) * scaled;
      }
      of_m.at(o, 0) += g.at(o, j) * adapted.at(o, j) / lengths[static_cast<std::size_t>(o)];
    }
  expect_near(grads[0], of_a, 2e-4);
  expect_near(grads[1], of_b, 2e-4);
  if (options().use_dora) expect_near(grads[2], of_m, 2e-4);
}

// ---- models and files

std::unique_ptr<Llama> model_of(std::uint64_t seed = 5) {
  auto model = std::make_unique<Llama>(tiny_llama({.hidden = 24, .layers = 3}), Device::cpu(), seed);
  model->set_training(false);
  return model;
}

void train_a_little(CausalLM& model) {
  std::uint64_t seed = 90;
  for (const Parameter& p : model.trainable_parameters())
    *p.tensor = *p.tensor + random_normal(p.tensor->shape(), seed++, DType::f32, model.device()) * 0.1;
  model.materialize();
}

std::vector<float> logits_of(CausalLM& model) {
  const std::vector<std::int32_t> ids{1, 5, 9, 30};
  return model.forward(model.make_ids(ids)).to_vector<float>();
}

std::vector<std::pair<LoRAOptions, std::vector<std::string>>> requests() {
  std::vector<std::pair<LoRAOptions, std::vector<std::string>>> all;
  for (const bool rslora : {false, true})
    for (const bool dora : {false, true})
      all.emplace_back(with(rslora, dora), std::vector<std::string>{"all-linear"});
  all.emplace_back(with(true, false, LoRAInit::pissa), std::vector<std::string>{"q_proj", "down_proj"});
  LoRAOptions patterns = kBase;
  patterns.rank_pattern = {{"layers.1.*q_proj", 4}, {"down_proj", 1}};
  patterns.alpha_pattern = {{"v_proj", 0.5}};
  patterns.exclude_modules = {"o_proj"};
  all.emplace_back(patterns, std::vector<std::string>{"all-linear"});
  LoRAOptions layers = kBase;
  layers.layers_to_transform = {0, 2};
  all.emplace_back(layers, std::vector<std::string>{"q_proj", "self_attn.v_proj"});
  all.emplace_back(kBase, std::vector<std::string>{R"(.*layers\.[01]\.mlp\.(up|down)_proj)"});
  return all;
}

TEST(AdapterKindFiles, AreReadAsTheyWereWrittenByteForByte) {
  for (const auto& [options, targets] : requests()) {
    const TempFolder folder;
    const auto model = model_of();
    apply_lora(*model, options, targets, 1);
    train_a_little(*model);
    save_adapter(*model, folder / "one", "base");
    const auto again = model_of();
    load_adapter(*again, folder / "one");
    const std::vector<float> before = logits_of(*model), after = logits_of(*again);
    for (std::size_t i = 0; i < before.size(); ++i) ASSERT_NEAR(after[i], before[i], 2e-6) << targets[0];
    save_adapter(*again, folder / "two", "base");
    for (const char* file : {"adapter_config.json", "adapter_model.safetensors"})
      EXPECT_EQ(slurp(folder / "two" / file), slurp(folder / "one" / file)) << file << " " << targets[0];
  }
}

TEST(AdapterKindFiles, NamesOfTensorsArePefts) {
  const TempFolder folder;
  const auto model = model_of();
  apply_lora(*model, with(false, true), {"q_proj"}, 1);
  save_adapter(*model, folder / "dora");
  const std::string text = slurp(folder / "dora" / "adapter_model.safetensors");
  EXPECT_CONTAINS(text, "base_model.model.model.layers.2.self_attn.q_proj.lora_magnitude_vector\"");
}

TEST(AdapterKinds, PatternsGiveModulesTheirOwnRanks) {
  const auto model = model_of();
  LoRAOptions options = kBase;
  options.rank_pattern = {{"layers.1.*q_proj", 4}};
  options.alpha_pattern = {{"v_proj", 12}};
  options.layers_to_transform = {1, 2};
  options.exclude_modules = {R"(.*\.2\..*v_proj)"};
  EXPECT_EQ(apply_lora(*model, options, {"q_proj", "v_proj"}, 1), 3u);
  std::vector<std::string> seen;
  model->visit_projections(
      [&](const std::string& path, const std::string&, std::unique_ptr<Projection>& slot) {
        if (const auto* lora = dynamic_cast<LoRALinear*>(slot.get()))
          seen.push_back(fmt::format("{} {} {}", path, lora->options().rank, lora->options().alpha));
      });
  EXPECT_EQ(seen, (std::vector<std::string>{"model.layers.1.self_attn.q_proj 4 3",
                                            "model.layers.1.self_attn.v_proj 2 12",
                                            "model.layers.2.self_attn.q_proj 2 3"}));
}

TEST(AdapterKinds, WhatNamesNothingIsRefusedAndChangesNothing) {
  const auto model = model_of();
  const std::size_t before = model->parameters().size();
  LoRAOptions layers = kBase;
  layers.layers_to_transform = {9};
  EXPECT_THROW(apply_lora(*model, layers, {"q_proj"}, 1), ValueError);
  EXPECT_THROW(apply_lora(*model, kBase, {"(q_proj"}, 1), ValueError);
  EXPECT_THROW(apply_lora(*model, kBase, {".*nothing"}, 1), ValueError);
  LoRAOptions ranks = kBase;
  ranks.rank_pattern = {{"q_proj", 1000}};
  EXPECT_THROW(apply_lora(*model, ranks, {"q_proj"}, 1), ValueError);
  EXPECT_EQ(model->parameters().size(), before);
}

TEST(AdapterKinds, ABankTakesRanksOfPatternsAndRefusesDora) {
  const TempFolder folder;
  const auto trained = model_of();
  LoRAOptions options = with(true, false);
  options.rank_pattern = {{"q_proj", 5}};
  apply_lora(*trained, options, {"q_proj", "v_proj"}, 1);
  train_a_little(*trained);
  save_adapter(*trained, folder / "lora");
  const std::vector<float> expected_logits = logits_of(*trained);
  const auto dora = model_of();
  apply_lora(*dora, with(false, true), {"q_proj"}, 1);
  save_adapter(*dora, folder / "dora");

  const auto model = model_of();
  AdapterBank bank(*model);
  EXPECT_CONTAINS(error_of<FileError>([&] { bank.load(folder / "dora"); }), "DoRA");
  const AdapterBank::AdapterPtr loaded = bank.load(folder / "lora");
  bank.select(std::vector<std::int32_t>{loaded->slot()});
  const std::vector<float> actual = logits_of(*model);
  for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected_logits[i], 1e-5);
}

}  // namespace
}  // namespace caldera::testing
