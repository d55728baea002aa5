// Modules with extents in their types: a chain of them that does not fit does not compile.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/typed/typed_ops.h"

/// The short names of modules, which caldera itself has for others.
namespace caldera::typed_nn {

/// A named parameter: `tensor` points into the module.
struct TypedParameter {
  std::string name;
  LazyTensor* tensor = nullptr;
};

namespace detail {

template <class X, std::int64_t kIn>
concept LastExtentIs = AnyTyped<X> &&
    (!X::kShape.known ||
     (X::kShape.rank > 0 && caldera::detail::may_equal(X::kShape[X::kShape.rank - 1], kIn)));

/// An image has the axes (batch, channels, height, width).
template <class X, std::int64_t kChannels>
concept ChannelsAre = AnyTyped<X> && X::kShape.known&& X::kShape.rank == 4 &&
                      caldera::detail::may_equal(X::kShape[1], kChannels);

template <class X, std::int64_t kKernel, std::int64_t kPadding>
concept WindowFits = AnyTyped<X> && X::kShape.rank == 4 &&
                     caldera::detail::window_fits(X::kShape[2], kKernel, kPadding) &&
                     caldera::detail::window_fits(X::kShape[3], kKernel, kPadding);

constexpr StaticShape image_after(StaticShape s, Extent channels, std::int64_t kernel, std::int64_t stride,
                                  std::int64_t padding) {
  return shape_of(s[0], channels, caldera::detail::windowed(s[2], kernel, stride, padding),
                  caldera::detail::windowed(s[3], kernel, stride, padding));
}

constexpr StaticShape flat_image(StaticShape s) {
  std::int64_t rest = 1;
  for (int i = 1; i < s.rank; ++i) rest = s[i].is_static() && rest >= 0 ? rest * s[i].size : -1;
  return shape_of(s[0], rest < 0 ? dyn : Extent(rest));
}

/// Uniform on (-1/sqrt(n), 1/sqrt(n)), as torch.nn initialises layers of n inputs.
inline LazyTensor first_weight(const Shape& shape, std::int64_t inputs) {
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return (random_uniform(shape, DType::f32) * (2 * bound) - bound).eval();
}

}  // namespace detail

/// y = x W^T + b over the last axis, f32. Parameters "weight" (out, in) and "bias".
template <std::int64_t kIn, std::int64_t kOut>
class Linear {
 public:
  static constexpr std::int64_t kInputs = kIn, kOutputs = kOut;
  Linear() : weight_(detail::first_weight({kOut, kIn}, kIn)), bias_(detail::first_weight({kOut}, kIn)) {}

  template <class X>
  requires detail::LastExtentIs<X, kIn> && std::same_as<typename X::Element, float>
  auto operator()(const X& x) const {
    return Typed<float, caldera::detail::with_axis(X::kShape, -1, kOut)>(matmul(x.lazy(), weight_.T()) +
                                                                         bias_);
  }
  std::vector<TypedParameter> parameters() { return {{"weight", &weight_}, {"bias", &bias_}}; }

 private:
  LazyTensor weight_, bias_;
};

/// Convolution of images (batch, channels, height, width) by square kernels. Parameters "weight" (out, in,
/// kernel, kernel) and "bias".
template <std::int64_t kIn, std::int64_t kOut, std::int64_t kKernel, std::int64_t kStride = 1,
          std::int64_t kPadding = 0>
class Conv2d {
 public:
  static constexpr std::int64_t kInputs = kIn, kOutputs = kOut;
  Conv2d()
      : weight_(detail::first_weight({kOut, kIn, kKernel, kKernel}, kIn * kKernel * kKernel)),
        bias_(detail::first_weight({kOut}, kIn * kKernel * kKernel)) {}

  template <class X>
  requires detail::ChannelsAre<X, kIn> && detail::WindowFits<X, kKernel, kPadding> &&
      std::same_as<typename X::Element, float>
  auto operator()(const X& x) const {
    return Typed<float, detail::image_after(X::kShape, kOut, kKernel, kStride, kPadding)>(
        conv(x.lazy(), weight_, bias_, {.stride = {kStride}, .padding = {kPadding}}));
  }
  std::vector<TypedParameter> parameters() { return {{"weight", &weight_}, {"bias", &bias_}}; }

 private:
  LazyTensor weight_, bias_;
};

/// The largest of each square window of an image, next to one another.
template <std::int64_t kKernel>
struct MaxPool2d {
  template <class X>
  requires(AnyTyped<X>&& X::kShape.rank == 4) && detail::WindowFits<X, kKernel, 0> auto operator()(
                                                     const X& x) const {
    return Typed<typename X::Element, detail::image_after(X::kShape, X::kShape[1], kKernel, kKernel, 0)>(
        max_pool(x.lazy(), {kKernel}));
  }
};

struct ReLU {
  template <AnyTyped X>
  X operator()(const X& x) const {
    return relu(x);
  }
};
struct Tanh {
  template <HasFloats X>
  X operator()(const X& x) const {
    return tanh(x);
  }
};
/// All axes but the first as one.
struct Flatten {
  template <AnyTyped X>
  requires(X::kShape.known&& X::kShape.rank > 1) auto operator()(const X& x) const {
    return Typed<typename X::Element, detail::flat_image(X::kShape)>(x.lazy().flatten(1));
  }
};

namespace detail {

template <class M>
concept HasWidths = requires {
  M::kInputs, M::kOutputs;
};

/// Whether no module has a width that is not the one before it: what stands between passes widths on, but for
/// Flatten.
template <class... M>
constexpr bool widths_fit() {
  std::int64_t width = -1;
  bool fit = true;
  (
      [&] {
        if constexpr (HasWidths<M>) {
          fit = fit && (width < 0 || width == M::kInputs);
          width = M::kOutputs;
        } else if constexpr (std::same_as<M, Flatten>) {
          width = -1;
        }
      }(),
      ...);
  return fit;
}

}  // namespace detail

/// The widths of modules that follow one another are equal.
template <class... M>
concept WidthsOfModulesAgree = detail::widths_fit<M...>();

/// The module takes this tensor.
template <class M, class X>
concept ModuleTakes = requires(const M& module, const X& x) {
  module(x);
};

/// Modules one behind the other. Parameters are named "0.weight", "0.bias", "2.weight", ...
template <class... M>
requires WidthsOfModulesAgree<M...>
class Sequential {
 public:
  template <AnyTyped X>
  requires ModuleTakes<std::tuple_element_t<0, std::tuple<M...>>, X>
  auto operator()(const X& x) const { return from<0>(x); }

  std::vector<TypedParameter> parameters() {
    std::vector<TypedParameter> all;
    add<0>(all);
    return all;
  }
  template <std::size_t kIndex>
  auto& get() {
    return std::get<kIndex>(modules_);
  }

 private:
  template <std::size_t kIndex, class X>
  auto from(const X& x) const {
    if constexpr (kIndex == sizeof...(M)) {
      return x;
    } else {
      static_assert(ModuleTakes<std::tuple_element_t<kIndex, std::tuple<M...>>, X>,
                    "Sequential: a module does not take what the one before it gives");
      return from<kIndex + 1>(std::get<kIndex>(modules_)(x));
    }
  }
  template <std::size_t kIndex>
  void add(std::vector<TypedParameter>& all) {
    if constexpr (kIndex < sizeof...(M)) {
      if constexpr (requires { std::get<kIndex>(modules_).parameters(); })
        for (const TypedParameter& p : std::get<kIndex>(modules_).parameters())
          all.push_back({std::to_string(kIndex) + "." + p.name, p.tensor});
      add<kIndex + 1>(all);
    }
  }

  std::tuple<M...> modules_;
};

}  // namespace caldera::typed_nn
