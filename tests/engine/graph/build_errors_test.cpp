// A call that does not fit is refused at once, by an error that names the operation and the shapes.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <typeinfo>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

struct BadCall {
  std::vector<const char*> words;  // all of them stand in the message
  std::function<void()> call;
};

LazyTensor f32(const Shape& shape) {
  return LazyTensor::from_vector(std::vector<float>(static_cast<std::size_t>(shape.numel()), 1.0F), shape,
                                 Device::cpu());
}
LazyTensor i32(const Shape& shape) {
  return LazyTensor::from_vector(std::vector<std::int32_t>(static_cast<std::size_t>(shape.numel()), 0), shape,
                                 Device::cpu());
}

template <class Wanted>
void expect_refused(const std::vector<BadCall>& calls) {
  for (const BadCall& bad : calls) {
    SCOPED_TRACE(bad.words[0]);
    try {
      bad.call();
      ADD_FAILURE() << "accepted";
    } catch (const Wanted& error) {
      for (const char* word : bad.words) {
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
            << "no '" << word << "' in: " << error.what();
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << "the wrong kind of error: " << error.what();
    }
  }
}

TEST(BuildErrors, ShapesThatDoNotFit) {
  const LazyTensor a = f32({2, 3});
  const LazyTensor b = f32({2, 4});
  expect_refused<ShapeError>({
      {{"add", "(2, 3)", "(2, 4)"}, [&] { add(a, b); }},
      {{"maximum", "(2, 3)", "(3, 2)"},
       [&] {
         maximum(a, f32({3, 2}));
       }},
      {{"where", "(2, 3)", "(2, 4)"}, [&] { where(a > 0.0, a, b); }},
      {{"matmul", "(2, 3)", "(2, 4)"}, [&] { matmul(a, b); }},
      {{"matmul", "()"}, [&] { matmul(f32({}), a); }},
      {{"matmul", "(2, 2, 3)", "(3, 3, 2)"},
       [&] {
         matmul(f32({2, 2, 3}), f32({3, 3, 2}));
       }},
      {{"reshape", "(2, 3)", "(7,)"}, [&] { reshape(a, {7}); }},
      {{"reshape", "(2, 3)", "(-1, -1)"},
       [&] {
         reshape(a, {-1, -1});
       }},
      {{"permute_dims", "(2, 3)"},
       [&] {
         permute_dims(a, {0, 0});
       }},
      {{"permute_dims", "(2, 3)"}, [&] { permute_dims(a, {0}); }},
      {{"transpose", "(3"}, [&] { transpose(f32({3})); }},
      {{"squeeze", "axis 0", "(2, 3)"}, [&] { squeeze(a, 0); }},
      {{"expand_dims", "axis 4", "(2, 3)"}, [&] { expand_dims(a, 4); }},
      {{"broadcast_to", "(2, 3)", "(3, 3)"},
       [&] {
         broadcast_to(a, {3, 3});
       }},
      {{"broadcast_to", "(2, 3)", "(3"}, [&] { broadcast_to(a, {3}); }},
      {{"slice", "(2, 3)"}, [&] { slice(a, 2, 0, 1); }},
      {{"sum", "(2, 3)"}, [&] { sum(a, 2); }},
      {{"sum", "twice", "(2, 3)"},
       [&] {
         sum(a, {1, -1});
       }},
      {{"max", "axis 1", "(2, 0)"},
       [&] {
         max(f32({2, 0}), 1);
       }},
      {{"softmax", "(2, 3)"}, [&] { softmax(a, 2); }},
      {{"take", "(2, 3)"}, [&] { take(a, i32({1}), -3); }},
      {{"scatter_add", "(2, 3)", "(2, 4)"}, [&] { scatter_add(a, i32({2}), b); }},
      {{"pad", "(2, 3)"}, [&] { pad(a, {1}, {1}); }},
      {{"pad", "take more", "(2, 3)"},
       [&] {
         pad(a, {-3, 0}, {0, 0});
       }},
      {{"concatenate", "(2, 3)", "(2, 4)"},
       [&] {
         concatenate({a, b}, 0);
       }},
      {{"concatenate"}, [&] { concatenate({}, 0); }},
      {{"stack", "(2, 3)", "(2, 4)"},
       [&] {
         stack({a, b});
       }},
      {{"rms_norm", "(4", "(2, 3)"}, [&] { rms_norm(a, 1e-5, f32({4})); }},
      {{"lora", "(2, 3)", "(2, 4)"}, [&] { lora_delta(a, b, b, 1); }},
      {{"item", "(2, 3)"}, [&] { a.item(); }},
      {{"5", "(2, 3)"},
       [&] {
         LazyTensor::from_vector(std::vector<float>(5), {2, 3});
       }},
      {{"zeros", "(-1"},
       [&] {
         LazyTensor::zeros({-1, 2});
       }},
      {{"iota", "(2, 3)"},
       [&] {
         iota({2, 3}, 2, DType::i32, Device::cpu());
       }},
  });
}

TEST(BuildErrors, StepsOfZero) {
  const LazyTensor a = f32({2, 3});
  expect_refused<ValueError>({
      {{"slice: slice step cannot be zero", "axis 1", "3"}, [&] { slice(a, -1, 0, 1, 0); }},
      {{"at: slice step cannot be zero", "axis 0", "2"},
       [&] {
         at(a, {{0, 1, 0}});
       }},
  });
}

TEST(BuildErrors, TypesThatDoNotFit) {
  const LazyTensor a = f32({2, 3});
  const LazyTensor truth = a > 0.0;
  expect_refused<DTypeError>({
      {{"where", "float32"}, [&] { where(a, a, a); }},
      {{"logical_and", "float32"}, [&] { logical_and(a, truth); }},
      {{"add", "bool"}, [&] { truth + truth; }},
      {{"matmul", "bool"}, [&] { matmul(truth, transpose(truth)); }},
      {{"max", "bool"}, [&] { max(truth); }},
      {{"take", "float32"}, [&] { take(a, a); }},
      {{"random_normal", "int32"}, [&] { random_normal({2}, 1, DType::i32); }},
      {{"to_vector", "float32", "float64"}, [&] { a.to_vector<double>(); }},
  });
}

TEST(BuildErrors, OperandsOnDifferentDevices) {
  const LazyTensor here = f32({2});
  const LazyTensor there = LazyTensor::ones({2}, DType::f32, Device::null());
  expect_refused<DeviceError>({
      {{"add", "cpu", "null", "(2"}, [&] { here + there; }},
      {{"concatenate", "cpu", "null"},
       [&] {
         concatenate({here, there});
       }},
      {{"take", "cpu", "null"}, [&] { take(there, i32({1})); }},
  });
}

TEST(BuildErrors, GradientsThatDoNotExist) {
  const LazyTensor x = f32({2, 3});
  const LazyTensor other = f32({2, 3});
  expect_refused<GradientError>({
      {{"one floating number", "(2, 3)"}, [&] { grad(x * 2.0, x); }},
      {{"input 0", "(2, 3)"}, [&] { grad(sum(x), other); }},
      {{"int32"}, [&] { grad(sum(x), i32({2})); }},
      {{"int32"}, [&] { grad(sum(astype(x, DType::i32)), x); }},
      {{"history has ended", "multiply"},
       [&] {
         LazyTensor w = (x * 2.0).eval();
         w = w * x;
         grad(sum(w.eval()), x);
       }},
  });
}

TEST(BuildErrors, AFailedCallLeavesItsOperandsAlone) {
  const ScopedSettings scope;
  const LazyTensor x = f32({2, 3});
  const LazyTensor y = x + x;
  EXPECT_THROW(add(y, f32({2, 4})), ShapeError);
  EXPECT_EQ(y.graph_size(), 1U);
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(6, 2.0F));
}

}  // namespace
}  // namespace caldera::testing
