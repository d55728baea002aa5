// More entries of the family `interpolation`: images.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Integers = Arguments::Integers;

Results call_grid_sample(Tensors x, const Arguments& a) {
  const std::string mode = a.text("mode", "linear"), padding = a.text("padding_mode", "zeros");
  return {grid_sample(x[0], x[1],
                      {.mode = mode == "linear"    ? GridInterpolation::linear
                               : mode == "nearest" ? GridInterpolation::nearest
                                                   : GridInterpolation::cubic,
                       .padding_mode = padding == "zeros"    ? GridPadding::zeros
                                       : padding == "border" ? GridPadding::border
                                                             : GridPadding::reflection,
                       .align_corners = a.flag("align_corners", false)})};
}

std::vector<Sample> grid_samples(const Operation& operation) {
  const Range grid = operation.ranges[1];
  std::vector<Sample> out;
  for (const char* mode : {"linear", "nearest", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const bool align_corners : {false, true}) {
        const Arguments a{{"mode", std::string(mode)},
                          {"padding_mode", std::string(padding)},
                          {"align_corners", align_corners}};
        // Volumes with every other of them: the axes are alike.
        if (align_corners == (std::string(padding) == "border") && std::string(mode) != "cubic")
          out.push_back({{{{1, 2, 2, 3, 4}}, {{1, 2, 2, 1, 3}, grid}}, a});
        else
          out.push_back({{{{2, 2, 5, 4}}, {{2, 3, 3, 2}, grid}}, a});
      }
    }
  }
  out.push_back({{{{0, 2, 3, 3}}, {{0, 2, 2, 2}, grid}}});
  return out;
}

std::vector<ErrorSample> grid_errors(const Operation&) {
  return {{Refusal::shape, {{{1, 2, 3}}, {{1, 2, 2}}}, {}, "(1, 2, 3)"},
          {Refusal::shape, {{{1, 2, 3, 3}}, {{2, 4, 4, 2}}}, {}, "(2, 4, 4, 2)"},
          {Refusal::shape, {{{1, 2, 3, 3}}, {{1, 4, 4, 3}}}, {}, "(1, 4, 4, 3)"},
          {Refusal::shape, {{{1, 2, 0, 3}}, {{1, 4, 4, 2}}}, {}, "(1, 2, 0, 3)"},
          {Refusal::value,
           {{{1, 1, 2, 2, 2}}, {{1, 1, 1, 1, 3}}},
           {{"mode", std::string("cubic")}},
           "(1, 1, 2, 2, 2)"}};
}

Results call_affine_grid(Tensors x, const Arguments& a) {
  Shape size;
  for (const std::int64_t extent : a.integers("size")) size.push_back(extent);
  return {affine_grid(x[0], size, a.flag("align_corners", false))};
}

std::vector<Sample> affine_samples(const Operation&) {
  std::vector<Sample> out;
  for (const bool align_corners : {false, true}) {
    out.push_back({{{{2, 2, 3}}}, {{"size", Integers{2, 3, 4, 5}}, {"align_corners", align_corners}}});
    out.push_back({{{{1, 2, 3}}}, {{"size", Integers{1, 1, 1, 3}}, {"align_corners", align_corners}}});
    out.push_back({{{{1, 3, 4}}}, {{"size", Integers{1, 1, 2, 3, 4}}, {"align_corners", align_corners}}});
  }
  return out;
}

std::vector<ErrorSample> affine_errors(const Operation&) {
  return {{Refusal::shape, {{{1, 2, 3}}}, {{"size", Integers{1, 1, 2}}}, "(1, 1, 2)"},
          {Refusal::shape, {{{1, 3, 3}}}, {{"size", Integers{1, 1, 2, 2}}}, "(1, 3, 3)"},
          {Refusal::shape, {{{1, 2, 3}}}, {{"size", Integers{1, 1, 0, 2}}}, "(1, 1, 0, 2)"}};
}

template <auto F>
Results call_with_number(Tensors x, const Arguments& a) {
  return {F(x[0], a.values().empty() ? 1 : a.integer(a.values()[0].first, 1))};
}

std::vector<Sample> factor_samples(const char* name, std::int64_t factor, const std::vector<Shape>& shapes) {
  std::vector<Sample> out;
  out.reserve(shapes.size());
  for (const Shape& shape : shapes) out.push_back({{{shape}}, {{name, factor}}});
  return out;
}

std::vector<Sample> shuffle_samples(const Operation&) {
  std::vector<Sample> out =
      factor_samples("upscale_factor", 2, {{1, 8, 2, 3}, {4, 3, 2}, {2, 1, 4, 1, 1}, {0, 4, 2, 2}});
  for (const Sample& s : factor_samples("upscale_factor", 3, {{1, 9, 2, 2}})) out.push_back(s);
  return out;
}
std::vector<ErrorSample> shuffle_errors(const Operation&) {
  return {{Refusal::shape, {{{4, 3}}}, {{"upscale_factor", std::int64_t{2}}}, "(4, 3)"},
          {Refusal::shape, {{{1, 6, 2, 2}}}, {{"upscale_factor", std::int64_t{2}}}, "(1, 6, 2, 2)"},
          {Refusal::value, {{{1, 4, 2, 2}}}, {{"upscale_factor", std::int64_t{0}}}, "factor of 0"}};
}
std::vector<Sample> unshuffle_samples(const Operation&) {
  std::vector<Sample> out =
      factor_samples("downscale_factor", 2, {{1, 2, 4, 6}, {1, 6, 4}, {2, 1, 1, 2, 2}, {0, 4, 2, 2}});
  for (const Sample& s : factor_samples("downscale_factor", 3, {{1, 1, 6, 3}})) out.push_back(s);
  return out;
}
std::vector<ErrorSample> unshuffle_errors(const Operation&) {
  return {{Refusal::shape, {{{4, 3}}}, {{"downscale_factor", std::int64_t{2}}}, "(4, 3)"},
          {Refusal::shape, {{{1, 1, 4, 3}}}, {{"downscale_factor", std::int64_t{2}}}, "(1, 1, 4, 3)"},
          {Refusal::value, {{{1, 4, 2, 2}}}, {{"downscale_factor", std::int64_t{-1}}}, "factor of -1"}};
}
std::vector<Sample> channel_samples(const Operation&) {
  std::vector<Sample> out =
      factor_samples("groups", 2, {{1, 6, 3}, {2, 4, 2, 3}, {1, 2, 1, 2, 2}, {0, 4, 2}});
  for (const Sample& s : factor_samples("groups", 3, {{1, 6, 2, 2}})) out.push_back(s);
  return out;
}
std::vector<ErrorSample> channel_errors(const Operation&) {
  return {{Refusal::shape, {{{4, 4}}}, {{"groups", std::int64_t{2}}}, "(4, 4)"},
          {Refusal::shape, {{{1, 5, 2}}}, {{"groups", std::int64_t{2}}}, "(1, 5, 2)"},
          {Refusal::value, {{{1, 4, 2}}}, {{"groups", std::int64_t{0}}}, "groups is 0"}};
}

ColumnOptions column_options(const Arguments& a) {
  return {.dilation = a.integers("dilation", {1}),
          .padding = a.integers("padding", {0}),
          .stride = a.integers("stride", {1})};
}
Results call_im2col(Tensors x, const Arguments& a) {
  return {im2col(x[0], a.integers("kernel"), column_options(a))};
}
Results call_col2im(Tensors x, const Arguments& a) {
  return {col2im(x[0], a.integers("output_size"), a.integers("kernel"), column_options(a))};
}

std::vector<Sample> im2col_samples(const Operation&) {
  return {{{{{2, 3, 4, 5}}}, {{"kernel", Integers{2, 3}}}},
          {{{{1, 2, 5, 6}}},
           {{"kernel", Integers{3}},
            {"stride", Integers{2}},
            {"padding", Integers{1}},
            {"dilation", Integers{1, 2}}}},
          {{{{1, 1, 3, 3}}}, {{"kernel", Integers{1}}}},
          {{{{1, 2, 6}}}, {{"kernel", Integers{3}}, {"stride", Integers{2}}, {"padding", Integers{1}}}},
          {{{{1, 1, 3, 2, 3}}}, {{"kernel", Integers{2}}}}};
}
std::vector<ErrorSample> im2col_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}}, {{"kernel", Integers{2}}}, "(2, 3)"},
          {Refusal::shape, {{{1, 1, 3}}}, {{"kernel", Integers{4}}}, "4"},
          {Refusal::value, {{{1, 1, 3}}}, {{"kernel", Integers{0}}}, "kernel is 0"},
          {Refusal::value, {{{1, 1, 3}}}, {{"kernel", Integers{2}}, {"stride", Integers{0}}}, "stride is 0"}};
}
std::vector<Sample> col2im_samples(const Operation&) {
  return {{{{{2, 6, 9}}}, {{"output_size", Integers{4, 5}}, {"kernel", Integers{2, 3}}}},
          {{{{1, 18, 6}}},
           {{"output_size", Integers{5, 6}},
            {"kernel", Integers{3}},
            {"stride", Integers{2}},
            {"padding", Integers{1}},
            {"dilation", Integers{1, 2}}}},
          {{{{1, 6, 3}}},
           {{"output_size", Integers{6}},
            {"kernel", Integers{3}},
            {"stride", Integers{2}},
            {"padding", Integers{1}}}},
          {{{{1, 8, 4}}}, {{"output_size", Integers{3, 2, 3}}, {"kernel", Integers{2}}}}};
}
std::vector<ErrorSample> col2im_errors(const Operation&) {
  const Integers size{4, 5}, kernel{2, 3};
  return {{Refusal::shape, {{{6, 9}}}, {{"output_size", size}, {"kernel", kernel}}, "(6, 9)"},
          {Refusal::shape, {{{1, 6, 8}}}, {{"output_size", size}, {"kernel", kernel}}, "8 windows"},
          {Refusal::shape, {{{1, 5, 9}}}, {{"output_size", size}, {"kernel", kernel}}, "(1, 5, 9)"},
          {Refusal::value, {{{1, 6, 9}}}, {{"kernel", kernel}}, "0 extents"}};
}

constexpr EntriesOf entry{"interpolation", kFloating}, rearranged{"interpolation", kAnyType};

}  // namespace

std::span<const Operation> image_operations() {
  static const Operation kTable[] = {
      entry(
          "grid_sample", "grid_sample(x, grid, {mode=linear, padding_mode=zeros, align_corners=false})",
          "x (N, C, H, W) at places (N, H', W', 2) from -1 to 1, or x (N, C, D, H, W) at (N, D', H', W', 3): "
          "linear, nearest or cubic, with zeros, the border or the reflection outside.",
          call_grid_sample, grid_samples, grid_errors,
          Ranges{Range{}, Range{-1.5, 1.5, 0, 1.0 / 128}, Range{}}),
      entry("affine_grid", "affine_grid(theta, size, align_corners=false)",
            "The places of a regular grid of (N, C, H, W) or (N, C, D, H, W) mapped by theta (N, 2, 3) or "
            "(N, 3, 4).",
            call_affine_grid, affine_samples, affine_errors),
      rearranged("pixel_shuffle", "pixel_shuffle(x, upscale_factor)",
                 "(..., C r^2, H, W) as (..., C, H r, W r).", call_with_number<caldera::pixel_shuffle>,
                 shuffle_samples, shuffle_errors),
      rearranged("pixel_unshuffle", "pixel_unshuffle(x, downscale_factor)",
                 "(..., C, H r, W r) as (..., C r^2, H, W).", call_with_number<caldera::pixel_unshuffle>,
                 unshuffle_samples, unshuffle_errors),
      rearranged("channel_shuffle", "channel_shuffle(x, groups)",
                 "The channels, axis 1 of (N, C, ...), one of each group in turn.",
                 call_with_number<caldera::channel_shuffle>, channel_samples, channel_errors),
      entry("im2col", "im2col(x, kernel, {dilation, padding, stride})",
            "The windows of (N, C, D...) as columns (N, C prod(kernel), windows).", call_im2col,
            im2col_samples, im2col_errors),
      entry("col2im", "col2im(columns, output_size, kernel, {dilation, padding, stride})",
            "Columns added up where im2col would read them.", call_col2im, col2im_samples, col2im_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
