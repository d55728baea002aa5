// A server: threads that answer requests with graphs of their own, over weights that they share.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class ProgramServing : public EngineTest {
 protected:
  static LazyTensor row(float value) {
    return LazyTensor::from_vector(std::vector<float>(8, value), {1, 8}, device());
  }
};
INSTANTIATE_TEST_SUITE_P(Setups, ProgramServing, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(ProgramServing, ThreadsReadSharedWeightsWithoutLocks) {
  const LazyTensor weights = LazyTensor::full({8, 4}, 0.25, DType::f32, device());  // lazy until first used
  std::vector<std::thread> servers;
  for (int server = 0; server < 4; ++server) {
    servers.emplace_back([&, server] {
      for (int request = 0; request < 25; ++request) {
        const auto input = static_cast<float>(server * 100 + request);
        const std::vector<float> answer = (matmul(row(input), weights) + 1.0).to_vector<float>();
        for (const float value : answer) EXPECT_EQ(value, 2 * input + 1);
      }
    });
  }
  for (std::thread& server : servers) server.join();
}

TEST_P(ProgramServing, AValueMadeByOneThreadIsReadByAnother) {
  std::vector<EvalFuture> started;
  std::vector<LazyTensor> stages{row(1)};
  for (int i = 0; i < 12; ++i) {  // each stage is begun by a thread of its own, before the one ahead is done
    std::thread([&] {
      stages.push_back(stages.back() * 1.5);
      started.push_back(stages.back().eval_async());
    }).join();
  }
  EXPECT_NEAR(stages.back().to_vector<float>()[0], std::pow(1.5F, 12.0F), 1e-3F);
  for (const EvalFuture& stage : started) EXPECT_NO_THROW(stage.get());
}

}  // namespace
}  // namespace caldera::testing
