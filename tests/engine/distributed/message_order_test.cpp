// The order of messages in plans, which must be one on all ranks, whatever sizes their tensors have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/distributed/distributed.h"
#include "engine/graph/host_exchange.h"
#include "engine/plan/plan.h"
#include "engine/runtime/evaluate.h"

namespace caldera::testing {
namespace {

/// A group of two ranks whose graphs are built and compiled, and never run.
distributed::Group group_of_two() {
  auto ranks = std::make_shared<distributed::RankSet>();
  ranks->size = 2;
  return distributed::Group(std::make_shared<distributed::Communicator>(nullptr, std::move(ranks)));
}

/// The gradients of `widths.size()` layers of `rows` rows, each layer's summed over ranks, the last layer's
/// first; of every other one what ranks have is gathered.
std::vector<LazyTensor> summed_gradients(const std::vector<std::int64_t>& widths, std::int64_t rows) {
  const distributed::Group group = group_of_two();
  const auto leaf = [](const Shape& shape) { return LazyTensor::zeros(shape, DType::f32, Device::null()); };
  std::vector<LazyTensor> weights;
  LazyTensor x = leaf({rows, 8});
  std::int64_t inner = 8;
  for (const std::int64_t width : widths) {
    weights.push_back(leaf({inner, width}));
    weights.back().eval();
    x = silu(matmul(x, weights.back()));
    inner = width;
  }
  std::vector<LazyTensor> grads = grad(sum(x * x), weights);
  for (std::size_t k = grads.size(); k-- > 0;) {
    grads[k] =
        k % 2 == 0 ? distributed::all_sum(grads[k], group) : sum(distributed::all_gather(grads[k], group), 0);
  }
  return grads;
}

/// The places that messages have among all of the plan, in the order in which they were made.
std::vector<std::uint64_t> numbers_of_messages(const Plan& plan) {
  std::vector<std::uint64_t> numbers;
  for (const Step& step : plan.steps) {
    const auto* control = step.if_a<ControlStep>();
    if (control != nullptr && control->exchange != nullptr) numbers.push_back(control->exchange->number());
  }
  return numbers;
}

TEST(MessageOrder, IsThatInWhichTheyWereMadeWhateverTheSizes) {
  std::mt19937 random(3);
  const auto size = [&] { return std::int64_t{1} << random() % 9; };
  for (int time = 0; time < 40; ++time) {
    const std::vector<std::int64_t> widths{size(), size(), size(), size(), size(), size()};
    const std::int64_t rows = size();
    SCOPED_TRACE("widths of time " + std::to_string(time) + ", rows " + std::to_string(rows));
    const auto plan = plan_for(summed_gradients(widths, rows));
    const std::vector<std::uint64_t> numbers = numbers_of_messages(*plan);
    ASSERT_EQ(numbers.size(), widths.size());
    EXPECT_TRUE(std::ranges::is_sorted(numbers)) << plan->to_string();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace caldera::testing
