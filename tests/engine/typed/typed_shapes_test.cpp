// What the compiler knows of typed tensors: the type that each operation gives, and that what must not
// compile does not. refused.cmake compiles such programs, for the words of the errors.
#include <gtest/gtest.h>

#include <concepts>
#include <utility>

#include "engine/typed/typed.h"

namespace caldera {
namespace {

using extents::Batch;

constexpr Extent Time{"Time"};

template <Extent... E>
using F = TypedTensor<float, E...>;
template <class A, class B>
constexpr bool kSame = std::same_as<A, B>;
template <class X>
const X& of();

using N = TypedNumber<float>;
using Any = TypedTensor<float>;
using X = F<Batch, 784>;
using W = F<784, 10>;

#define SAME(expression, ...) static_assert(kSame<decltype(expression), __VA_ARGS__>)

// Element by element.
SAME((of<X>() + of<X>()), X);
SAME((of<X>() * of<F<784>>()), X);
SAME((of<F<784>>() - of<X>()), X);
SAME((of<F<5, 1>>() + of<F<1, 7>>()), F<5, 7>);
SAME((of<F<3>>() + of<N>()), F<3>);
SAME((of<X>() + of<F<1, 784>>()), X);
SAME((of<F<dyn, 784>>() + of<X>()), X);
SAME((of<F<dyn>>() + of<F<4>>()), F<4>);
SAME((of<Any>() + of<X>()), Any);
SAME((of<X>() + 1), X);
SAME((2.0 * of<X>()), X);
SAME((of<X>() / of<X>()), X);
SAME((-of<X>()), X);
SAME((exp(of<X>())), X);
SAME((relu(of<TypedTensor<int, 3>>())), TypedTensor<int, 3>);
SAME((of<X>() < of<F<784>>()), TypedTensor<bool, Batch, 784>);
SAME((of<X>() >= 0), TypedTensor<bool, Batch, 784>);
SAME((where(of<TypedTensor<bool, Batch, 1>>(), of<X>(), of<N>())), X);
SAME((maximum(of<X>(), of<N>())), X);
SAME((cast<double>(of<X>())), TypedTensor<double, Batch, 784>);
SAME((cast<int>(of<Any>())), TypedTensor<int>);

// Products.
SAME((matmul(of<X>(), of<W>())), F<Batch, 10>);
SAME((matmul(of<F<3>>(), of<F<3, 4>>())), F<4>);
SAME((matmul(of<F<4, 3>>(), of<F<3>>())), F<4>);
SAME((matmul(of<F<3>>(), of<F<3>>())), N);
SAME((matmul(of<F<Batch, Time, 8>>(), of<F<8, 2>>())), F<Batch, Time, 2>);
SAME((matmul(of<F<Batch, 1, 4, 8>>(), of<F<6, 8, 2>>())), F<Batch, 6, 4, 2>);
SAME((matmul(of<F<2, dyn>>(), of<F<7, 3>>())), F<2, 3>);
SAME((matmul(of<Any>(), of<W>())), Any);

// Reductions.
SAME((sum(of<X>())), N);
SAME((sum<1>(of<X>())), F<Batch>);
SAME((sum<-1>(of<X>())), F<Batch>);
SAME((sum<0>(of<X>())), F<784>);
SAME((sum<1, true>(of<X>())), F<Batch, 1>);
SAME((mean(of<X>())), N);
SAME((max<0>(of<F<2, 3, 4>>())), F<3, 4>);
SAME((sum(of<TypedTensor<std::uint8_t, 3>>())), TypedNumber<int>);
SAME((softmax(of<X>())), X);
SAME((sum<5>(of<Any>())), Any);

// Shapes.
SAME((reshape<Batch, 28, 28>(of<X>())), F<Batch, 28, 28>);
SAME((reshape<12>(of<F<3, 4>>())), F<12>);
SAME((reshape<dyn, 2>(of<X>())), F<dyn, 2>);
SAME((transpose(of<X>())), F<784, Batch>);
SAME((transpose(of<F<Batch, 3, 4>>())), F<Batch, 4, 3>);
SAME((permute<2, 0, 1>(of<F<2, 3, 4>>())), F<4, 2, 3>);
SAME((expand_dims<0>(of<X>())), F<1, Batch, 784>);
SAME((expand_dims<-1>(of<X>())), F<Batch, 784, 1>);
SAME((squeeze<0>(of<F<1, 5>>())), F<5>);
SAME((concatenate<1>(of<X>(), of<F<Batch, 16>>())), F<Batch, 800>);
SAME((concatenate<0>(of<X>(), of<X>())), F<dyn, 784>);
SAME((slice<1, 0, 28>(of<X>())), F<Batch, 28>);
SAME((broadcast_to<4, 3>(of<F<3>>())), F<4, 3>);

// Types, and what they become.
static_assert(sizeof(X) == sizeof(LazyTensor));
static_assert(std::convertible_to<X, Any>);
static_assert(!std::convertible_to<Any, X> && std::constructible_from<X, Any>);
static_assert(!std::convertible_to<LazyTensor, X> && std::constructible_from<X, LazyTensor>);
static_assert(!std::convertible_to<X, LazyTensor>);
static_assert(!std::constructible_from<F<3>, F<4>>);
static_assert(std::constructible_from<F<4>, F<dyn>>);
static_assert(!std::constructible_from<TypedTensor<double>, Any>);
static_assert(kSame<F<Extent("Batch"), 3>, F<Batch, 3>>);
static_assert(!std::default_initializable<X>);

// What there is no operation for.
template <class A, class B>
concept CanAdd = requires(const A& a, const B& b) {
  a + b;
};
template <class A, class B>
concept CanMultiply = requires(const A& a, const B& b) {
  matmul(a, b);
};
template <class A, class B>
concept CanDivide = requires(const A& a, const B& b) {
  a / b;
};
template <class A, Extent... E>
concept CanReshape = requires(const A& a) {
  reshape<E...>(a);
};
template <class A, int kAxis>
concept CanSum = requires(const A& a) {
  sum<kAxis>(a);
};
static_assert(!CanAdd<Any, TypedTensor<double>>);
static_assert(!CanAdd<F<3>, TypedTensor<int, 3>>);
static_assert(!CanAdd<F<3>, F<4>>);
static_assert(!CanAdd<F<Batch>, F<Time>>);
static_assert(!CanAdd<F<Batch>, F<3>>);
static_assert(!CanAdd<TypedTensor<int, 3>, double>);
static_assert(!CanMultiply<X, F<10, 784>>);
static_assert(!CanMultiply<X, N>);
static_assert(!CanMultiply<F<2, 3, 4>, F<3, 4, 5>>);
static_assert(!CanMultiply<F<2, 3>, TypedTensor<double, 3, 2>>);
static_assert(!CanDivide<TypedTensor<int, 3>, TypedTensor<int, 3>>);
static_assert(!CanReshape<F<3, 4>, 13>);
static_assert(!CanReshape<X, Time, 784>);
static_assert(!CanSum<X, 2> && !CanSum<X, -3>);

// Modules.
namespace nn = typed_nn;
using LeNet =
    nn::Sequential<nn::Conv2d<1, 6, 5>, nn::ReLU, nn::MaxPool2d<2>, nn::Conv2d<6, 16, 5>, nn::ReLU,
                   nn::MaxPool2d<2>, nn::Flatten, nn::Linear<256, 120>, nn::ReLU, nn::Linear<120, 10>>;
SAME((of<LeNet>()(of<F<Batch, 1, 28, 28>>())), F<Batch, 10>);
SAME((of<nn::Conv2d<3, 8, 3, 2, 1>>()(of<F<4, 3, 32, 32>>())), F<4, 8, 16, 16>);
SAME((of<nn::Linear<784, 10>>()(of<X>())), F<Batch, 10>);
static_assert(!nn::ModuleTakes<nn::Linear<784, 10>, F<Batch, 783>>);
static_assert(!nn::ModuleTakes<nn::Conv2d<3, 8, 3>, F<Batch, 1, 28, 28>>);
static_assert(!nn::ModuleTakes<nn::Conv2d<1, 8, 5>, F<Batch, 1, 4, 4>>);
static_assert(!nn::WidthsOfModulesAgree<nn::Linear<4, 5>, nn::ReLU, nn::Linear<6, 7>>);

TEST(TypedShapes, AreCheckedByTheCompiler) { SUCCEED(); }

}  // namespace
}  // namespace caldera
