#include "ops/spatial/convolution.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/shape/joining.h"
#include "ops/spatial/convolution_node.h"
#include "ops/spatial/spatial.h"
#include "ops/spatial/windows.h"

namespace caldera {
namespace {

using windows::each;
using windows::kLead;
using windows::padded;
using windows::spatial_axes;
using windows::Windows;

void check_weights(const char* op, const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias,
                   std::int64_t groups, bool transposed) {
  const auto refuse = [&](const std::string& why) {
    throw ShapeError(fmt::format("{}: x {} and weight {}: {}", op, x.shape().to_string(),
                                 weight.shape().to_string(), why));
  };
  ops::check_domain(op, ScalarDomain::floating, weight.dtype());
  if (groups < 1) throw ValueError(fmt::format("{}: groups is {}, want 1 or more", op, groups));
  if (weight.rank() != x.rank()) refuse("they have different numbers of axes");
  for (int i = kLead; i < weight.rank(); ++i) {
    if (weight.shape(i) == 0) refuse("the kernel is empty");
  }
  const std::int64_t channels = x.shape(1);
  const std::int64_t outputs = transposed ? weight.shape(1) * groups : weight.shape(0);
  const std::int64_t taken = transposed ? weight.shape(0) : weight.shape(1) * groups;
  if (taken != channels || channels % groups != 0 || outputs % groups != 0)
    refuse(fmt::format("{} channels in {} groups do not fit", channels, groups));
  if (bias.defined() && (bias.rank() != 1 || bias.shape(0) != outputs))
    throw ShapeError(fmt::format("{}: bias {} is not one value for each of {} channels", op,
                                 bias.shape().to_string(), outputs));
}

/// `x` is padded already, `weight` (O, C / groups, K...).
LazyTensor correlate(const char* op, const LazyTensor& x, const LazyTensor& weight, const Spatial& stride,
                     const Spatial& dilation, std::int64_t groups) {
  const Spatial kernel(weight.shape().begin() + kLead, weight.shape().end());
  const Windows windows(op, x, kernel, stride, dilation);
  std::int64_t positions = 1, taps = 1;
  for (const std::int64_t count : windows.counts) positions *= count;
  for (const std::int64_t extent : kernel) taps *= extent;
  const std::int64_t examples = x.shape(0), channels = x.shape(1) / groups,
                     outputs = weight.shape(0) / groups;
  // (N, groups, C / groups, taps, positions): the taps beside the channels, as the weight has them.
  std::vector<LazyTensor> patches;
  windows.for_each(x, [&](const LazyTensor& part) {
    patches.push_back(reshape(part, Shape{examples, groups, channels, 1, positions}));
  });
  const LazyTensor columns =
      reshape(concatenate(patches, 3), Shape{examples, groups, channels * taps, positions});
  const LazyTensor y = matmul(reshape(weight, Shape{groups, outputs, channels * taps}), columns);
  Shape shape{examples, groups * outputs};
  for (const std::int64_t count : windows.counts) shape.push_back(count);
  return reshape(y, shape);
}

/// One spatial axis as two.
Shape as_image(const Shape& shape) {
  Shape image = shape;
  if (image.rank() == 3) image.insert(kLead, 1);
  return image;
}
/// A setting of the spatial axes as that of an image's two, `otherwise` of the first of them where there is
/// one.
std::array<std::int64_t, 2> of_image(const Spatial& setting, std::int64_t otherwise) {
  if (setting.size() == 1) return {otherwise, setting[0]};
  return {setting[0], setting[1]};
}
/// Whether one node does it.
bool is_node(int axes, const LazyTensor& x, const LazyTensor& weight) {
  return axes <= 2 && ops::has_convolution_kernel(x, weight);
}
LazyTensor image_node(ConvolutionWork work, const LazyTensor& a, const LazyTensor& b, const Spatial& stride,
                      const Spatial& padding, const Spatial& dilation, std::int64_t groups,
                      const Shape& shape) {
  const ConvolutionNode node{.work = work,
                             .stride = of_image(stride, 1),
                             .padding = of_image(padding, 0),
                             .dilation = of_image(dilation, 1),
                             .groups = groups};
  return reshape(ops::convolution_node(node, reshape(a, as_image(a.shape())), reshape(b, as_image(b.shape())),
                                       as_image(shape)),
                 shape);
}

/// The transposed convolution of a volume by that of its images, where a node does it. The kernel's depth
/// becomes outputs: image d, of what tap k of them gives, belongs at depth d * stride + k * dilation.
LazyTensor transposed_volume(const LazyTensor& x, const LazyTensor& weight, const Spatial& stride,
                             const Spatial& padding, const Spatial& dilation, std::int64_t groups,
                             const Shape& shape) {
  const std::int64_t step = stride[0], taps = weight.shape(kLead), outputs = shape[1];
  // Depths with one remainder by the stride are `lines` images, which sums of images are. Empty ones around
  // those of x give every tap as many.
  const std::int64_t lines = (padding[0] + shape[kLead] + step - 1) / step;
  const std::int64_t before = (taps - 1) * dilation[0] / step;
  const std::int64_t behind = std::max<std::int64_t>(0, lines - x.shape(kLead));
  const LazyTensor deep = padded(x, {before, 0, 0}, {behind, 0, 0}, 0);
  const std::int64_t images = deep.shape(kLead);
  const auto rest = [](const Spatial& setting) { return Spatial(setting.begin() + 1, setting.end()); };
  const LazyTensor flat =
      reshape(swapaxes(deep, 1, kLead), Shape{x.shape(0) * images, x.shape(1), x.shape(3), x.shape(4)});
  const LazyTensor kernels =
      reshape(weight, Shape{weight.shape(0), weight.shape(1) * taps, weight.shape(3), weight.shape(4)});
  const LazyTensor parts =
      reshape(image_node(ConvolutionWork::input_gradient, flat, kernels, rest(stride), rest(padding),
                         rest(dilation), groups, Shape{flat.shape(0), outputs * taps, shape[3], shape[4]}),
              Shape{x.shape(0), images, outputs, taps, shape[3], shape[4]});
  std::vector<LazyTensor> by_remainder(static_cast<std::size_t>(step));
  for (std::int64_t k = 0; k < taps; ++k) {
    const std::int64_t first = before - k * dilation[0] / step;
    const LazyTensor part = squeeze(slice(slice(parts, 1, first, first + lines), 3, k, k + 1), 3);
    LazyTensor& sum = by_remainder[static_cast<std::size_t>(k * dilation[0] % step)];
    sum = sum.defined() ? sum + part : part;
  }
  const Shape each{x.shape(0), lines, 1, outputs, shape[3], shape[4]};
  for (LazyTensor& sum : by_remainder)
    sum = sum.defined() ? reshape(sum, each) : zeros(each, x.dtype(), x.device());
  const LazyTensor depths =
      reshape(concatenate(by_remainder, 2), Shape{x.shape(0), lines * step, outputs, shape[3], shape[4]});
  return swapaxes(slice(depths, 1, padding[0], padding[0] + shape[kLead]), 1, kLead);
}

LazyTensor with_bias(const LazyTensor& y, const LazyTensor& bias) {
  if (!bias.defined()) return y;
  Shape shape{bias.shape(0)};
  for (int i = kLead; i < y.rank(); ++i) shape.push_back(1);
  return y + reshape(bias, shape);
}

}  // namespace

namespace {

/// The convolution whose result has x's extents.
LazyTensor same_conv(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias,
                     const ConvOptions& options) {
  const auto is = [](const Spatial& all, std::int64_t value) {
    return std::ranges::all_of(all, [&](std::int64_t v) { return v == value; });
  };
  if (!is(options.padding, 0)) throw ValueError("conv: same takes no padding of its own");
  if (!is(options.stride, 1)) throw ValueError("conv: same takes strides of 1");
  const Spatial dilation = each("conv", "dilation", options.dilation, x.rank() - kLead, 1);
  ConvOptions explicitly = options;
  explicitly.same = false;
  explicitly.padding.clear();
  Spatial odd;
  for (std::size_t i = 0; i < dilation.size(); ++i) {
    const std::int64_t reach = dilation[i] * (weight.shape(static_cast<int>(i) + kLead) - 1);
    explicitly.padding.push_back(reach / 2);
    odd.push_back(reach % 2);
  }
  return conv(padded(x, Spatial(odd.size(), 0), odd, 0), weight, bias, explicitly);
}

}  // namespace

LazyTensor conv(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias,
                const ConvOptions& options) {
  const int n = spatial_axes("conv", x);
  check_weights("conv", x, weight, bias, options.groups, false);
  if (options.same) return same_conv(x, weight, bias, options);
  const Spatial padding = each("conv", "padding", options.padding, n, 0);
  const Spatial stride = each("conv", "stride", options.stride, n, 1),
                dilation = each("conv", "dilation", options.dilation, n, 1);
  const LazyTensor wide = padded(x, padding, padding, 0);
  if (is_node(n, x, weight)) {
    const Windows windows("conv", wide, Spatial(weight.shape().begin() + kLead, weight.shape().end()), stride,
                          dilation);
    Shape shape{x.shape(0), weight.shape(0)};
    for (const std::int64_t count : windows.counts) shape.push_back(count);
    return with_bias(
        image_node(ConvolutionWork::forward, x, weight, stride, padding, dilation, options.groups, shape),
        bias);
  }
  return with_bias(correlate("conv", wide, weight, stride, dilation, options.groups), bias);
}

LazyTensor conv_transpose(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias,
                          const ConvOptions& options) {
  const char* const op = "conv_transpose";
  if (options.same) throw ValueError("conv_transpose: same goes with conv alone");
  const int n = spatial_axes(op, x);
  check_weights(op, x, weight, bias, options.groups, true);
  const Spatial stride = each(op, "stride", options.stride, n, 1),
                padding = each(op, "padding", options.padding, n, 0),
                dilation = each(op, "dilation", options.dilation, n, 1),
                more = each(op, "output_padding", options.output_padding, n, 0);
  // Strides become gaps, and the kernel is turned round in every spatial axis.
  LazyTensor wide = x, turned = weight;
  Spatial low, high, interior;
  for (std::size_t i = 0; i < stride.size(); ++i) {
    const int axis = static_cast<int>(i) + kLead;
    if (more[i] >= std::max(stride[i], dilation[i]))
      throw ValueError(
          fmt::format("{}: output_padding {} is not less than the stride or the dilation", op, more[i]));
    if (x.shape(axis) == 0) throw ShapeError(fmt::format("{}: {} is empty", op, x.shape().to_string()));
    const std::int64_t reach = dilation[i] * (weight.shape(axis) - 1);
    low.push_back(std::max<std::int64_t>(0, reach - padding[i]));
    high.push_back(std::max<std::int64_t>(0, reach - padding[i] + more[i]));
    interior.push_back(stride[i] - 1);
    turned = slice(turned, axis, std::nullopt, std::nullopt, -1);
  }
  wide = padded(x, low, high, 0, interior);
  for (std::size_t i = 0; i < stride.size(); ++i) {
    const int axis = static_cast<int>(i) + kLead;
    const std::int64_t reach = dilation[i] * (weight.shape(axis) - 1);
    const std::int64_t cut_low = std::max<std::int64_t>(0, padding[i] - reach);
    const std::int64_t cut_high = std::max<std::int64_t>(0, padding[i] - reach - more[i]);
    if (cut_low + cut_high >= wide.shape(axis))
      throw ShapeError(
          fmt::format("{}: padding {} leaves nothing of {}", op, padding[i], x.shape().to_string()));
    if (cut_low + cut_high > 0) wide = slice(wide, axis, cut_low, wide.shape(axis) - cut_high);
  }
  if (ops::has_convolution_kernel(x, weight)) {
    Shape shape{x.shape(0), weight.shape(1) * options.groups};
    for (std::size_t i = 0; i < stride.size(); ++i) {
      const int axis = static_cast<int>(i) + kLead;
      shape.push_back((x.shape(axis) - 1) * stride[i] - 2 * padding[i] +
                      dilation[i] * (weight.shape(axis) - 1) + more[i] + 1);
    }
    const LazyTensor y = n == 3
                             ? transposed_volume(x, weight, stride, padding, dilation, options.groups, shape)
                             : image_node(ConvolutionWork::input_gradient, x, weight, stride, padding,
                                          dilation, options.groups, shape);
    return with_bias(y, bias);
  }
  // (C, O / groups, K...) -> (O, C / groups, K...)
  const std::int64_t groups = options.groups, channels = weight.shape(0) / groups, outputs = weight.shape(1);
  Shape split{groups, channels, outputs}, whole{groups * outputs, channels};
  for (int i = kLead; i < weight.rank(); ++i) {
    split.push_back(weight.shape(i));
    whole.push_back(weight.shape(i));
  }
  turned = reshape(swapaxes(reshape(turned, split), 1, 2), whole);
  return with_bias(correlate(op, wide, turned, Spatial(stride.size(), 1), dilation, groups), bias);
}

}  // namespace caldera
