// Building a graph explicitly: nothing is computed before eval(), and until then the graph can be looked at,
// counted, drawn and differentiated.
#include <caldera/caldera.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <vector>

using caldera::Graph;
using caldera::LazyTensor;

int main() {
  // z = softmax(x w + b), s = sum(z^2), and the gradient of s with respect to w: all of it graph.
  const LazyTensor x = LazyTensor::from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const LazyTensor w = LazyTensor::from_vector<float>({0.1f, -0.2f, 0.3f, 0.4f, -0.5f, 0.6f}, {3, 2});
  const LazyTensor b = LazyTensor::from_vector<float>({0.5f, -0.5f}, {2});
  const LazyTensor z = caldera::softmax(caldera::matmul(x, w) + b);
  const LazyTensor s = caldera::sum(caldera::square(z));
  const LazyTensor dw = caldera::grad(s, w);

  const Graph forward{s};
  const Graph both{s, dw};
  std::printf("nodes: %zu forward, %zu with the gradient\n", forward.node_count(), both.node_count());
  std::printf("%s\n", z.to_string().c_str());
  std::ofstream("lazy_graph.dot") << both.to_dot();
  std::printf("drawn in lazy_graph.dot (dot -Tsvg lazy_graph.dot > lazy_graph.svg)\n");
  const bool lazy = !s.is_evaluated() && !dw.is_evaluated() && both.node_count() > forward.node_count();

  caldera::eval({s, dw});  // one plan, one run, both results
  std::printf("s = %.6f after one eval\ndw =", s.item());
  const std::vector<float> gradient = dw.to_vector<float>();
  for (float value : gradient) std::printf(" %9.6f", value);
  std::printf("\n");

  // By hand: two classes, so softmax is a sigmoid of the difference of the two logits.
  double expected = 0;
  std::vector<double> slope(3, 0);  // d s / d w[i][0]; the other column is its negative
  const float dwx[3] = {0.3f, -0.1f, -1.1f};
  for (int row = 0; row < 2; ++row) {
    double difference = 1;  // of the biases
    for (int i = 0; i < 3; ++i) difference += (3 * row + i + 1) * static_cast<double>(dwx[i]);
    const double p = 1 / (1 + std::exp(-difference));
    expected += p * p + (1 - p) * (1 - p);
    for (std::size_t i = 0; i < 3; ++i)
      slope[i] +=
          (2 * p - 2 * (1 - p)) * p * (1 - p) * static_cast<double>(3 * row + 1 + static_cast<int>(i));
  }
  bool good = lazy && std::abs(s.item<double>() - expected) < 1e-5;
  for (std::size_t i = 0; i < 3; ++i)
    good = good && std::abs(static_cast<double>(gradient[2 * i]) - slope[i]) < 1e-4 &&
           std::abs(static_cast<double>(gradient[2 * i + 1]) + slope[i]) < 1e-4;
  std::printf("%s\n", good ? "as expected" : "WRONG");
  return good ? 0 : 1;
}
