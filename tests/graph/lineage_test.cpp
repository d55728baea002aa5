// Lineages against a record of what every value was really computed of: none that matters may be missed.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engine/graph/lineage_walk.h"
#include "ops/ops.h"

namespace caldera {
namespace {

/// A random program: tensors, and for each the tensors that a gradient of it would come by.
class LineageProgram {
 public:
  explicit LineageProgram(std::uint64_t seed) : random_(seed) {}

  void step() {
    switch (pick(10)) {
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
      const Origin origin(tensors_[x].node());
      for (std::size_t y = x + 1; y < tensors_.size(); ++y) {
        if (!tensors_[y].node().is_detached() || tensors_[y].node().op().zero_gradient) continue;
        const bool found = origin.may_be_of(tensors_[y].node());
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
    const std::size_t back = pick(pick(3) == 0 ? tensors_.size() : std::min<std::size_t>(tensors_.size(), 6));
    return tensors_.size() - 1 - back;
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

TEST(Lineage, MissesNothingThatAValueCameFrom) {
  std::size_t ways = 0, false_ways = 0, constants = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    LineageProgram program(seed);
    const int steps = seed < 36 ? 200 : 800;  // the long ones have more origins than a lineage names
    for (int step = 0; step < steps; ++step) program.step();
    program.check(ways, false_ways, constants);
    if (HasFatalFailure()) FAIL() << "program " << seed;
  }
  EXPECT_GT(ways, 1000U);
  EXPECT_GT(constants, 1000U);
  RecordProperty("false_ways_percent", static_cast<int>(100 * false_ways / constants));
  EXPECT_LT(false_ways * 2, constants) << "what is found everywhere tells nothing";
}

}  // namespace
}  // namespace caldera
