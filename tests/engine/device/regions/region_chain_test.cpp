// Checks that steps which run piece by piece, one behind the other, give the bits that each gives by itself:
// over random graphs, with memory that is handed on, and on several numbers of threads.
#include "engine/device/cpu/regions/region_chain.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/cpu_threads.h"
#include "tests/support/machine_code.h"

namespace caldera::testing {
namespace {

using cpu::MachineCodeUse;
using Bits = std::vector<std::uint32_t>;  // as NaN is no equal of itself

class RegionChains : public ::testing::Test {
 protected:
  ~RegionChains() override {
    set_cpu_threads(threads_);
    cpu::set_chains_run(true);
  }
  static LazyTensor normal(const Shape& shape, std::uint64_t seed) {
    LazyTensor x = random_normal(shape, seed, DType::f32, Device::cpu());
    x.eval();
    return x;
  }
  static std::vector<Bits> bits_of(const std::vector<LazyTensor>& tensors) {
    eval(std::span<const LazyTensor>(tensors));
    std::vector<Bits> values;
    for (const LazyTensor& x : tensors) {
      const std::vector<float> floats = x.to_vector<float>();
      std::memcpy(values.emplace_back(floats.size()).data(), floats.data(), floats.size() * sizeof(float));
    }
    return values;
  }

 private:
  int threads_ = cpu_threads();
};

/// Tensors of `rows` x `columns`, and sums of them; the same for the same seed.
struct Graph {
  std::uint64_t seed;
  std::int64_t rows, columns;

  /// Outputs of a graph on tensors that nobody else holds.
  std::vector<LazyTensor> build() const {
    std::mt19937_64 random(seed);
    const auto pick = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
    const auto normal = [&](const Shape& shape) {
      LazyTensor x = random_normal(shape, random(), DType::f32, Device::cpu());
      x.eval();
      return x;
    };
    std::vector<LazyTensor> all{normal({rows, columns}), normal({rows, columns})};
    const LazyTensor of_column = normal({columns}), of_row = normal({rows, 1});
    const auto any = [&] { return all[pick(all.size())]; };
    const std::size_t computed = 1 + pick(3);
    for (std::size_t i = 0; i < computed; ++i) {
      const LazyTensor x = any();
      switch (pick(8)) {
        case 0:
          all.push_back(softmax(x, -1));
          break;
        case 1:
          all.push_back(x - mean(x, -1, true));
          break;
        case 2:
          all.push_back(layer_norm(x, 1e-5, of_column));
          break;
        case 3:
          all.push_back(x * of_column + any());
          break;
        case 4:
          all.push_back(tanh(x) * of_row);
          break;
        case 5:
          all.push_back(exp(x) * any());
          break;
        case 6:
          all.push_back(x + any());
          break;
        default:
          all.push_back(maximum(x, any()));
          break;
      }
    }
    std::vector<LazyTensor> outputs;
    if (pick(2) == 0) outputs.push_back(all.back());
    const std::size_t sums = 2 + pick(3);
    for (std::size_t i = 0; i < sums; ++i) {
      const LazyTensor x = i == 0 ? all.back() : any();
      switch (pick(9)) {
        case 0:
          outputs.push_back(sum(x));
          break;
        case 1:
          outputs.push_back(sum(x * any()));
          break;
        case 2:
          outputs.push_back(sum(x * any(), 0));
          break;
        case 3:
          outputs.push_back(max(x, 0));
          break;
        case 4:
          outputs.push_back(mean(x * of_column, 0));
          break;
        case 5:
          outputs.push_back(sum(x, -1));
          break;
        case 6:
          outputs.push_back(sum(transpose(x) * reshape(any(), {columns, rows})));
          break;
        case 7:
          outputs.push_back(sum(sum(x, 0) * of_column));
          break;
        default:
          outputs.push_back(sum(x, 0));
          break;
      }
    }
    return outputs;
  }
};

TEST_F(RegionChains, GiveTheBitsOfEachStepByItself) {
  struct Extents {
    std::int64_t rows, columns;
  };
  std::uint64_t seed = 1;
  const std::uint64_t before = cpu::chains_run();
  for (const auto& [rows, columns] :
       std::vector<Extents>{{300, 1000}, {1024, 256}, {96, 4096}, {2100, 130}, {40000, 7}, {3, 100000}}) {
    for (int round = 0; round < 24; ++round, ++seed) {
      const Graph graph{seed, rows, columns};
      SCOPED_TRACE(::testing::Message() << rows << " x " << columns << ", seed " << seed);
      set_cpu_threads(1 + static_cast<int>(seed % 5));
      const UseMachineCode use(seed % 3 == 0 ? MachineCodeUse::never : MachineCodeUse::always);
      cpu::set_chains_run(false);
      const std::vector<Bits> alone = bits_of(graph.build());
      cpu::set_chains_run(true);
      ASSERT_EQ(bits_of(graph.build()), alone);
    }
  }
  if (!cpu::machine_code_set().empty()) {
    EXPECT_GT(cpu::chains_run(), before + 60);
  }
}

TEST_F(RegionChains, GradientsOfNormsAreOneChain) {
  const UseMachineCode use(MachineCodeUse::always);
  set_cpu_threads(2);
  const LazyTensor x = normal({512, 512}, 1), g = normal({512, 512}, 2), w = normal({512}, 3),
                   b = normal({512}, 4);
  const auto gradients = [&] {
    const LazyTensor loss = sum(layer_norm(x, 1e-5, w, b) * g);
    std::vector<LazyTensor> all = grad(loss, {x, w, b});
    all.push_back(loss);
    return all;
  };
  cpu::set_chains_run(false);
  const std::vector<Bits> values = bits_of(gradients());
  cpu::set_chains_run(true);
  const std::uint64_t before = cpu::chains_run();
  EXPECT_EQ(bits_of(gradients()), values);
  const bool has_code = !cpu::machine_code_set().empty();  // without, each step runs by itself
  EXPECT_EQ(cpu::chains_run(), before + (has_code ? 1 : 0));
  for (int threads : {1, 2, 3, 7}) {
    set_cpu_threads(threads);
    EXPECT_EQ(bits_of(gradients()), values) << threads << " threads";
  }
}

}  // namespace
}  // namespace caldera::testing
