// Tensors whose element types and shapes the compiler knows, and small ones on the stack. Without the
// comment marks the line in train_step() does not compile, and the error says which extents disagree.
#include <caldera/caldera.h>
#include <caldera/typed.h>

#include <cmath>
#include <cstdio>

using caldera::FixedTensor;
using caldera::LazyTensor;
using caldera::TypedTensor;
using caldera::extents::Batch;
namespace nn = caldera::typed_nn;

using Points = TypedTensor<float, Batch, 2>;
using Labels = TypedTensor<float, Batch, 1>;
using Net = nn::Sequential<nn::Linear<2, 16>, nn::Tanh, nn::Linear<16, 1>>;

namespace {

/// One step of gradient descent on the mean square error.
float train_step(Net& net, const Points& points, const Labels& labels) {
  const Labels guess = net(points);
  // const auto refused = matmul(points, labels);  // InnerExtentsAgree: 2 and Batch do not
  const caldera::TypedNumber<float> loss = mean(square(guess - labels));
  std::vector<LazyTensor> parameters;
  for (const nn::TypedParameter& p : net.parameters()) parameters.push_back(*p.tensor);
  const std::vector<LazyTensor> grads = caldera::grad(loss.lazy(), parameters);
  for (std::size_t i = 0; i < grads.size(); ++i) *net.parameters()[i].tensor = parameters[i] - grads[i] * 0.2;
  std::vector<LazyTensor> updated{loss.lazy()};
  for (const nn::TypedParameter& p : net.parameters()) updated.push_back(*p.tensor);
  caldera::eval(updated);
  for (const nn::TypedParameter& p : net.parameters()) *p.tensor = p.tensor->detach();
  return loss.item();
}

// Computed by the compiler.
constexpr FixedTensor<double, 3, 3> kTurn{0, -1, 0, 1, 0, 0, 0, 0, 1};
static_assert(matmul(kTurn, transpose(kTurn)) == caldera::fixed_identity<double, 3>());
static_assert(determinant(kTurn) == 1);

}  // namespace

int main() {
  caldera::manual_seed(1);
  const auto points = caldera::typed<float, Batch, 2>(caldera::random_normal({128, 2}));
  // Whether both coordinates have one sign: no line tells.
  const Labels labels = sign(caldera::prod<1, true>(points));
  Net net;
  float first = 0, last = 0;
  for (int step = 0; step < 400; ++step) {
    last = train_step(net, points, labels);
    if (step == 0) first = last;
  }
  std::printf("loss %.3f at first, %.3f after 400 steps\n", static_cast<double>(first),
              static_cast<double>(last));

  const FixedTensor<double, 3> x{1, 2, 3}, turned = matmul(kTurn, x);
  std::printf("turned: (%g, %g, %g), of length %.4f\n", turned(0), turned(1), turned(2), norm(turned));
  const bool good = last < 0.3F * first && turned == FixedTensor<double, 3>{-2, 1, 3};
  std::printf("%s\n", good ? "as expected" : "WRONG");
  return good ? 0 : 1;
}
