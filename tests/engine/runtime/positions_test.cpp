// Slices of stored data and windows that numbers move, against a model on the host: chains of views and
// slices at random places, evaluated by few plans that are proved, and computed by the reference interpreter
// too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "engine/base/error.h"
#include "engine/check/reference/reference_plan.h"
#include "engine/plan/verify.h"
#include "engine/runtime/evaluate.h"
#include "ops/ops.h"
#include "tests/support/op_setting.h"

namespace caldera {
namespace {

using testing::OpTest;

class Positions : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Settings, Positions, ::testing::ValuesIn(testing::op_settings()),
                         testing::op_setting_name);

/// A tensor of numbers on the host, and the same as the library sees it.
struct Both {
  LazyTensor tensor;
  std::vector<std::int64_t> extents;
  std::vector<float> values;

  /// Element i of a result is that one of this which `source` says for its coordinates.
  template <class Source>
  Both picked(LazyTensor result, std::vector<std::int64_t> shape, Source source) const {
    Both out{std::move(result), std::move(shape), {}};
    const std::int64_t count =
        std::accumulate(out.extents.begin(), out.extents.end(), std::int64_t{1}, std::multiplies<>());
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<std::int64_t> at(out.extents.size());
      std::int64_t rest = i;
      for (std::size_t d = at.size(); d-- > 0; rest /= out.extents[d]) at[d] = rest % out.extents[d];
      const std::vector<std::int64_t> from = source(at);
      std::int64_t element = 0;
      for (std::size_t d = 0; d < from.size(); ++d) element = element * extents[d] + from[d];
      out.values.push_back(values[static_cast<std::size_t>(element)]);
    }
    return out;
  }
};

Both stored(std::vector<std::int64_t> extents) {
  const LazyTensor x = arange(extents[0] * extents[1] * extents[2], DType::f32);
  Both out{reshape(x, Shape{extents[0], extents[1], extents[2]}), std::move(extents), {}};
  eval({out.tensor});
  out.values = out.tensor.to_vector<float>();
  return out;
}

/// The operations of a chain, without the places: chains of one form share a plan.
struct Form {
  int axis;
  std::int64_t count, step;
  bool turned;  // axes exchanged first
};

Both moved(const Both& x, const Form& form, std::int64_t first) {
  Both from = x;
  if (form.turned) {
    const std::vector<std::int64_t> extents{x.extents[2], x.extents[0], x.extents[1]};
    from = x.picked(permute_dims(x.tensor, {2, 0, 1}), extents, [](const std::vector<std::int64_t>& at) {
      return std::vector<std::int64_t>{at[1], at[2], at[0]};
    });
  }
  const auto axis = static_cast<std::size_t>(form.axis);
  std::vector<std::int64_t> extents = from.extents;
  extents[axis] = form.count;
  const std::int64_t last = first + (form.count - 1) * form.step;
  const std::optional<std::int64_t> stop = form.step > 0 ? std::optional(last + 1)
                                           : last > 0    ? std::optional(last - 1)
                                                         : std::nullopt;
  return from.picked(slice(from.tensor, form.axis, first, stop, form.step), extents,
                     [&](std::vector<std::int64_t> at) {
                       at[axis] = first + at[axis] * form.step;
                       return at;
                     });
}

TEST_P(Positions, OfChainsOfSlicesAreArguments) {
  std::mt19937_64 random(7);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  const Both x = stored({7, 8, 9});
  for (int form = 0; form < 12; ++form) {
    std::vector<Form> forms;
    std::vector<std::int64_t> extents = x.extents;
    for (int i = 0; i < 2; ++i) {
      Form f{.axis = static_cast<int>(below(3)), .count = 1 + below(3), .step = 0, .turned = below(2) == 0};
      if (f.turned) extents = {extents[2], extents[0], extents[1]};
      auto& extent = extents[static_cast<std::size_t>(f.axis)];
      f.count = std::min(f.count, extent);
      f.step = f.count < 2 ? 1 : 1 + below((extent - 1) / (f.count - 1));
      if (below(2) == 0) f.step = -f.step;
      extent = f.count;
      forms.push_back(f);
    }
    const std::uint64_t before = plan_cache_stats().misses;
    for (int place = 0; place < 6; ++place) {
      Both y = x;
      for (const Form& f : forms) {
        const std::vector<std::int64_t> shape =
            f.turned ? std::vector<std::int64_t>{y.extents[2], y.extents[0], y.extents[1]} : y.extents;
        const std::int64_t reach = (f.count - 1) * f.step;
        const std::int64_t free = shape[static_cast<std::size_t>(f.axis)] - std::abs(reach);
        y = moved(y, f, below(free) - std::min<std::int64_t>(reach, 0));
      }
      ASSERT_EQ((y.tensor + 1.0).to_vector<float>().size(), y.values.size());
      const std::vector<float> actual = (y.tensor * 2.0).to_vector<float>();
      for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_EQ(actual[i], 2 * y.values[i]) << form;
    }
    EXPECT_LE(plan_cache_stats().misses - before, 2U) << form;
  }
}

/// Runs a plan of one output by the reference interpreter.
std::vector<float> interpreted(const Plan& plan, const std::vector<std::vector<float>>& inputs,
                               std::vector<std::uint64_t> scalars) {
  reference::PlanMemory memory;
  memory.scalars = std::move(scalars);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    auto& bytes = memory.buffers.emplace_back(static_cast<std::size_t>(plan.buffers[b].bytes));
    if (b < inputs.size()) std::memcpy(bytes.data(), inputs[b].data(), bytes.size());
  }
  reference::run_reference(plan, memory);
  const auto& out = memory.buffers[static_cast<std::size_t>(plan.input_count)];
  std::vector<float> values(out.size() / sizeof(float));
  std::memcpy(values.data(), out.data(), out.size());
  return values;
}

TEST_P(Positions, MeanTheSameToTheInterpreterAndAreProved) {
  const LazyTensor x = LazyTensor::from_vector(std::vector<float>{0, 1, 2, 3, 4, 5}, {6});
  const LazyTensor u = LazyTensor::from_vector(std::vector<float>{8, 9}, {2});
  const LazyTensor y = dynamic_update_slice(x, u, {3}) + roll(x, 0);
  const auto plan = plan_for({y});
  ASSERT_EQ(plan->positions.size(), 1U);
  const std::vector<std::vector<float>> inputs{{0, 1, 2, 3, 4, 5}, {8, 9}};
  EXPECT_EQ(interpreted(*plan, inputs, {3}), (std::vector<float>{0, 2, 4, 11, 13, 10}));
  // A number that would move the window out of the tensor is clamped.
  EXPECT_EQ(interpreted(*plan, inputs, {77}), (std::vector<float>{0, 2, 4, 6, 12, 14}));
  EXPECT_EQ(interpreted(*plan, inputs, {~std::uint64_t{0}}), (std::vector<float>{8, 10, 4, 6, 8, 10}));

  Plan damaged = *plan;
  damaged.positions[0].terms[0].limit += 1;  // beyond the end of the buffer
  EXPECT_THROW(verify_plan(damaged), PlanError);
  damaged = *plan;
  damaged.scalars[0] = DType::f32;
  EXPECT_THROW(verify_plan(damaged), PlanError);
  damaged = *plan;
  damaged.positions.clear();
  EXPECT_THROW(verify_plan(damaged), PlanError);
  damaged = *plan;  // what the window leaves alone has no value without the copy before it
  const auto copy = std::find_if(damaged.steps.begin(), damaged.steps.end(), is_copy);
  ASSERT_NE(copy, damaged.steps.end());
  damaged.steps.erase(copy);
  EXPECT_THROW(verify_plan(damaged), PlanError);
}

}  // namespace
}  // namespace caldera
