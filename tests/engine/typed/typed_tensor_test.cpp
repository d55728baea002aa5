// Typed tensors when the program runs: they compute what untyped ones do, copy nothing, and refuse what has
// another type.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/typed/typed.h"

namespace caldera {
namespace {

using extents::Batch;

LazyTensor counted(const Shape& shape) {
  return reshape(arange(static_cast<double>(shape.numel()), DType::f32), shape) * 0.25 - 1.0;
}

TEST(TypedTensors, TakeAndGiveTheTensorItself) {
  const LazyTensor lazy = counted({4, 3}).eval();
  const auto x = typed<float, Batch, 3>(lazy);
  EXPECT_EQ(x.lazy().node_id(), lazy.node_id());
  EXPECT_EQ(LazyTensor(x).node_id(), lazy.node_id());
  EXPECT_THROW((typed<double, Batch, 3>(lazy)), DTypeError);
  EXPECT_THROW((typed<float, Batch, 4>(lazy)), ShapeError);
  EXPECT_THROW((typed<float, Batch>(lazy)), ShapeError);
  EXPECT_THROW((typed<float, Batch, Batch>(lazy)), ShapeError);  // one name, two extents
  EXPECT_THROW((typed<float>(LazyTensor())), ValueError);
  const TypedTensor<float> any = x;
  EXPECT_NO_THROW((TypedTensor<float, 4, 3>(any)));
  EXPECT_THROW((TypedTensor<float, 5, 3>(any)), ShapeError);
}

TEST(TypedTensors, ComputeWhatUntypedOnesDo) {
  const LazyTensor a = counted({4, 3}), b = counted({3, 5}), c = counted({5});
  const auto x = typed<float, Batch, 3>(a);
  const auto w = typed<float, 3, 5>(b);
  const auto y = softmax(matmul(x, w) * 2 + typed<float, 5>(c));
  EXPECT_EQ(y.to_vector(), softmax(matmul(a, b) * 2.0 + c).to_vector<float>());
  EXPECT_EQ(mean(y).item(), mean(y.lazy()).item<float>());
  EXPECT_EQ((sum<1, true>(x).to_vector()), sum(a, 1, true).to_vector<float>());
  EXPECT_EQ((reshape<3, Batch>(transpose(x)).shape()), (Shape{3, 4}));
  EXPECT_EQ((permute<1, 0>(x).to_vector()), a.T().to_vector<float>());
  EXPECT_EQ((slice<1, 1, 3>(x).to_vector()), slice(a, 1, 1, 3).to_vector<float>());
  EXPECT_EQ(concatenate<0>(x, x).shape(), (Shape{8, 3}));
  EXPECT_EQ(where(x > 0.0, x, -x).to_vector(), abs(a).to_vector<float>());
  EXPECT_EQ(cast<int>(x).to_vector(), astype(a, DType::i32).to_vector<int>());
  const auto values = host_values(w);
  EXPECT_EQ(values.size(), 15);
  EXPECT_EQ(values(2, 1), (b[{2, 1}].item<float>()));
}

TEST(TypedTensors, ModulesTrain) {
  namespace nn = typed_nn;
  manual_seed(1);
  nn::Sequential<nn::Conv2d<1, 4, 3>, nn::ReLU, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<36, 2>> net;
  const auto images = typed<float, Batch, 1, 8, 8>(random_normal({6, 1, 8, 8}, 3));
  const TypedTensor<float, Batch, 2> logits = net(images);
  std::vector<LazyTensor> parameters;
  for (const nn::TypedParameter& p : net.parameters()) parameters.push_back(*p.tensor);
  EXPECT_EQ(net.parameters()[2].name, "4.weight");
  const LazyTensor loss = mean(square(logits)).lazy();
  const std::vector<LazyTensor> grads = grad(loss, parameters);
  for (std::size_t i = 0; i < grads.size(); ++i)
    *net.parameters()[i].tensor = (parameters[i] - grads[i] * 0.1).eval();
  EXPECT_LT(mean(square(net(images))).item(), loss.item<float>());
}

}  // namespace
}  // namespace caldera
