// Origins against a record of what every value was really computed of: none may be missed, and hardly any may
// be found where there are none.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engine/graph/histories.h"
#include "engine/graph/origins_walk.h"
#include "ops/ops.h"

namespace caldera {
namespace {

/// A random program: tensors, some of which are replaced, and for each the tensors that a gradient of it
/// would come by.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed) {}

  void step() {
    switch (pick(12)) {
      case 0:
        add(LazyTensor::from_vector<double>({1, 2}, Shape{2}, Device::cpu()), {});
        break;
      case 1:
        add(random_normal(Shape{2}, tensors_.size(), DType::f64, Device::cpu()), {});
        break;
      case 2: {
        const std::size_t a = any();
        add(pick(2) == 0 ? stop_gradient(tensors_[a]) : floor(tensors_[a]), {});
        break;
      }
      case 3:
        evaluate(1 + pick(3));
        break;
      case 4:
        if (pick(4) == 0) evaluate(9 + pick(8));
        break;
      case 5: {
        const std::size_t a = any();
        add(sin(tensors_[a]), {a});
        break;
      }
      case 6: {  // an update: the tensor itself is replaced
        const std::size_t a = any(), b = any();
        add(tensors_[a] * tensors_[b], {a, b});
        tensors_[a] = LazyTensor();
        tensors_.back().eval();
        break;
      }
      case 7:
        if (pick(20) == 0) give_up_histories();
        break;
      case 8:
        tensors_[any()] = LazyTensor();
        break;
      default: {
        const std::size_t a = any(), b = any();
        add(tensors_[a] * tensors_[b] + 1.0, {a, b});
        break;
      }
    }
  }

  /// Whether no origin is missed; counts those that are found where there are none.
  void check(std::size_t& ways, std::size_t& false_ways, std::size_t& constants) const {
    const std::scoped_lock lock(graph_mutex());
    for (std::size_t x = 0; x < tensors_.size(); ++x) {
      for (std::size_t y = x + 1; y < tensors_.size(); ++y) {
        if (!tensors_[x].defined() || !tensors_[y].defined() || !tensors_[y].node().is_cut()) continue;
        if (tensors_[y].node().op().zero_gradient) continue;
        const bool found = may_have_come_from(tensors_[y].node(), tensors_[x].node());
        if (came_from_[y][x]) {
          ++ways;
          ASSERT_TRUE(found) << "value " << y << " came from " << x;
        } else {
          ++constants;
          if (found) ++false_ways;
        }
      }
    }
  }

 private:
  std::size_t pick(std::size_t count) { return random_() % count; }
  /// Mostly a late one, so that there are chains.
  std::size_t any() {
    while (true) {
      const std::size_t back =
          pick(pick(3) == 0 ? tensors_.size() : std::min<std::size_t>(tensors_.size(), 6));
      const std::size_t at = tensors_.size() - 1 - back;
      if (tensors_[at].defined()) return at;
      if (pick(50) == 0) add(LazyTensor::from_vector<double>({1, 2}, Shape{2}, Device::cpu()), {});
    }
  }

  void add(const LazyTensor& x, const std::vector<std::size_t>& inputs) {
    std::vector<bool> all(tensors_.size() + 1, false);
    for (const std::size_t input : inputs) {
      all[input] = true;
      for (std::size_t i = 0; i < input; ++i) all[i] = all[i] || came_from_[input][i];
    }
    tensors_.push_back(x);
    came_from_.push_back(all);
  }

  void evaluate(std::size_t count) {
    std::vector<LazyTensor> outputs;
    for (std::size_t i = 0; i < count; ++i) outputs.push_back(tensors_[any()]);
    eval(outputs);
  }

  std::mt19937_64 random_;
  std::vector<LazyTensor> tensors_{LazyTensor::from_vector<double>({1, 2}, Shape{2}, Device::cpu())};
  std::vector<std::vector<bool>> came_from_{{false}};  // by tensor, then by earlier tensor
};

TEST(Origins, MissNothingThatAValueCameFrom) {
  std::size_t ways = 0, false_ways = 0, constants = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomProgram program(seed);
    for (int step = 0; step < 200; ++step) program.step();
    program.check(ways, false_ways, constants);
    if (HasFatalFailure()) FAIL() << "program " << seed;
  }
  EXPECT_GT(ways, 1000U);
  EXPECT_GT(constants, 1000U);
  RecordProperty("false_ways_percent", static_cast<int>(100 * false_ways / constants));
  EXPECT_LT(false_ways * 4, constants) << "what is found everywhere tells nothing";
}

}  // namespace
}  // namespace caldera
