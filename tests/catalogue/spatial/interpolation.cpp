// The entries of the family `interpolation`.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Integers = Arguments::Integers;

Interpolation mode_of(const std::string& name) {
  if (name == "linear") return Interpolation::linear;
  if (name == "cubic") return Interpolation::cubic;
  if (name == "area") return Interpolation::area;
  return name == "nearest" ? Interpolation::nearest : Interpolation::nearest_exact;
}

std::vector<LazyTensor> call_interpolate(Tensors x, const Arguments& a) {
  InterpolateOptions options{.size = a.integers("size"),
                             .mode = mode_of(a.text("mode", "nearest")),
                             .align_corners = a.flag("align_corners", false),
                             .recompute_scale_factor = a.flag("recompute_scale_factor", false),
                             .antialias = a.flag("antialias", false)};
  if (a.has("scale_factor")) options.scale_factor = {a.real("scale_factor", 1)};
  return {interpolate(x[0], options)};
}

Sample sized(const Shape& shape, Integers size, const char* mode, bool align_corners = false) {
  Arguments a{{"size", std::move(size)}, {"mode", std::string(mode)}};
  if (align_corners) a.set("align_corners", true);
  return {{{shape}}, a};
}
Sample scaled(const Shape& shape, double scale, const char* mode, bool align_corners = false,
              bool recompute = false) {
  Arguments a{{"scale_factor", scale}, {"mode", std::string(mode)}};
  if (align_corners) a.set("align_corners", true);
  if (recompute) a.set("recompute_scale_factor", true);
  return {{{shape}}, a};
}

std::vector<Sample> interpolate_samples(const Operation&) {
  std::vector<Sample> out;
  for (const char* mode : {"nearest", "nearest-exact", "linear"}) {
    for (const bool align_corners : {false, true}) {
      if (align_corners && std::string(mode) != "linear") continue;
      for (const std::int64_t size : {1, 3, 7, 14, 10})
        out.push_back(sized({1, 2, 7}, {size}, mode, align_corners));
      out.push_back(sized({1, 1, 1}, {4}, mode, align_corners));
      out.push_back(sized({0, 2, 3}, {4}, mode, align_corners));
      out.push_back(sized({2, 1, 9}, {3}, mode, align_corners));
      out.push_back(sized({1, 2, 3, 4}, {5, 6}, mode, align_corners));
      out.push_back(sized({2, 1, 5, 4}, {2, 7}, mode, align_corners));
      out.push_back(sized({1, 1, 3, 2, 4}, {2, 4, 5}, mode, align_corners));
      for (const double scale : {2.0, 0.5, 1.7, 0.3})
        out.push_back(scaled({1, 2, 6}, scale, mode, align_corners));
      out.push_back(scaled({1, 2, 3, 4}, 2, mode, align_corners));
      out.push_back(scaled({1, 1, 4, 6}, 0.6, mode, align_corners));
      out.push_back(scaled({1, 1, 6, 5}, 1.3, mode, align_corners, true));
      out.push_back(scaled({1, 1, 2, 3, 2}, 1.5, mode, align_corners));
    }
  }
  for (const bool align_corners : {false, true}) {
    for (const std::int64_t size : {1, 3, 7, 10})
      out.push_back(sized({1, 2, 7}, {size}, "cubic", align_corners));
    out.push_back(sized({1, 2, 3, 4}, {5, 6}, "cubic", align_corners));
    out.push_back(sized({1, 1, 5, 4}, {2, 4}, "cubic", align_corners));
    out.push_back(scaled({1, 1, 4, 6}, 0.6, "cubic", align_corners));
    out.push_back(scaled({1, 1, 3, 5}, 1.7, "cubic", align_corners));
    for (const char* mode : {"linear", "cubic"}) {
      for (const Integers& size : {Integers{2, 3}, Integers{9, 5}, Integers{5, 1}, Integers{13, 17}}) {
        out.push_back(sized({1, 2, 9, 11}, size, mode, align_corners));
        out.back().arguments.set("antialias", true);
      }
      out.push_back(scaled({1, 1, 8, 7}, 0.4, mode, align_corners));
      out.back().arguments.set("antialias", true);
    }
  }
  for (const std::int64_t size : {1, 3, 7, 10}) out.push_back(sized({1, 2, 7}, {size}, "area"));
  out.push_back(sized({1, 2, 5, 4}, {3, 2}, "area"));
  out.push_back(scaled({1, 1, 4, 6}, 0.6, "area"));
  out.push_back(sized({1, 1, 3, 2, 4}, {2, 1, 3}, "area"));
  return out;
}

std::vector<ErrorSample> interpolate_errors(const Operation&) {
  const Integers two{2};
  return {{Refusal::shape, {{{2, 3}}}, {{"size", two}}, "(2, 3)"},
          {Refusal::shape, {{{1, 1, 0}}}, {{"size", two}}, "(1, 1, 0)"},
          {Refusal::value, {{{1, 1, 3}}}, {}, "neither"},
          {Refusal::value, {{{1, 1, 3}}}, {{"size", two}, {"scale_factor", 2.0}}, "both"},
          {Refusal::value, {{{1, 1, 3}}}, {{"size", Integers{2, 2}}}, "2 values"},
          {Refusal::value, {{{1, 1, 3}}}, {{"size", Integers{0}}}, "(1, 1, 3)"},
          {Refusal::value, {{{1, 1, 3}}}, {{"scale_factor", 0.1}}, "(1, 1, 3)"},
          {Refusal::value, {{{1, 1, 3}}}, {{"scale_factor", -1.0}}, "(1, 1, 3)"},
          {Refusal::value, {{{1, 1, 3}}}, {{"size", two}, {"align_corners", true}}, "align_corners"},
          {Refusal::value, {{{1, 1, 3}}}, {{"size", two}, {"antialias", true}}, "antialias"}};
}

}  // namespace

std::span<const Operation> interpolation_operations() {
  static const Operation kTable[] = {
      {.name = "interpolate",
       .family = "interpolation",
       .signature = "interpolate(x, {size, scale_factor, mode=nearest, align_corners, "
                    "recompute_scale_factor, antialias})",
       .summary =
           "x (N, C, D...) resampled to other spatial extents: nearest, nearest_exact, linear or cubic along "
           "each axis, or area. PyTorch's coordinates.",
       .types = kFloating,
       .call = call_interpolate,
       .samples = interpolate_samples,
       .errors = interpolate_errors},
  };
  return kTable;
}

}  // namespace caldera::catalogue
