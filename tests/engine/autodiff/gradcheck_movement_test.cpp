// Gradients of movement operations against central differences in f64.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/support/devices.h"
#include "tests/support/transforms/transform_cases.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
constexpr auto kOpen = std::nullopt;

/// Movement is linear: squared on both sides, so that second derivatives are not zero throughout.
void check_movement(const std::string& name, const Shape& shape,
                    const std::function<LazyTensor(const LazyTensor&)>& move) {
  check_case({name + " of " + shape.to_string(), {{shape}}, [&](Inputs x) {
                const LazyTensor y = move(x[0] * x[0]);
                return y * y;
              }});
  check_case(
      {name + " of " + shape.to_string() + ", alone", {{shape}}, [&](Inputs x) { return move(x[0]); }});
}

TEST(GradcheckMovement, Reshape) {
  check_movement("reshape", {6, 4}, [](auto& x) { return reshape(x, Shape{2, 3, -1}); });
  check_movement("reshape", {1}, [](auto& x) { return reshape(x, Shape{}); });
  check_movement("reshape", {}, [](auto& x) { return reshape(x, Shape{1, 1}); });
  check_movement("reshape", {3, 0}, [](auto& x) { return reshape(x, Shape{0, 5}); });
  check_movement("reshape of a transpose", {6, 4}, [](auto& x) {
    return reshape(transpose(x), Shape{8, 3});
  });
  check_movement("squeeze", {3, 1, 2}, [](auto& x) { return squeeze(x, 1); });
  check_movement("expand_dims", {3, 2}, [](auto& x) { return expand_dims(x, -1); });
}

TEST(GradcheckMovement, Permutation) {
  check_movement("permute", {2, 3, 4, 1, 5}, [](auto& x) { return permute_dims(x, {3, 0, 4, 2, 1}); });
  check_movement("permute", {7}, [](auto& x) { return permute_dims(x, {0}); });
  check_movement("transpose", {2, 3, 4}, [](auto& x) { return transpose(x); });
  check_movement("swapaxes", {2, 3, 4}, [](auto& x) { return swapaxes(x, 0, -1); });
  check_movement("transpose", {0, 3}, [](auto& x) { return transpose(x); });
}

TEST(GradcheckMovement, Broadcast) {
  check_movement("broadcast", {1, 3}, [](auto& x) { return broadcast_to(x, Shape{4, 3}); });
  check_movement("broadcast", {3, 1}, [](auto& x) { return broadcast_to(x, Shape{2, 3, 5}); });
  check_movement("broadcast", {}, [](auto& x) { return broadcast_to(x, Shape{2, 2}); });
  check_movement("broadcast to nothing", {1}, [](auto& x) { return broadcast_to(x, Shape{0}); });
  check_movement("broadcast of a row", {3, 4}, [](auto& x) {
    return broadcast_to(slice(x, 0, 1, 2), Shape{5, 4});
  });
}

TEST(GradcheckMovement, ToAnotherDeviceAndBack) {
  const auto there_and_back = [](const LazyTensor& x) {
    const std::vector<Device> devices = available_devices();
    const Device other = x.device() == devices.back() ? devices.front() : devices.back();
    return to(to(x, other) * 3.0, x.device());
  };
  check_movement("to", {3, 4}, there_and_back);
  check_movement("to of a transpose", {4, 3}, [&](auto& x) { return there_and_back(transpose(x)); });
  check_movement("to of nothing", {0, 4}, there_and_back);
}

TEST(GradcheckMovement, Slice) {
  struct Row {
    std::optional<std::int64_t> start, stop;
    std::int64_t step;
  };
  const Row kRows[] = {{kOpen, kOpen, 1},  {1, kOpen, 1},   {kOpen, 5, 1},  {2, 6, 1},
                       {kOpen, kOpen, 2},  {1, 7, 3},       {0, 7, 6},      {0, 7, 100},
                       {-3, kOpen, 1},     {-6, -1, 2},     {-100, 100, 2}, {kOpen, kOpen, -1},
                       {kOpen, kOpen, -2}, {5, 1, -1},      {5, 1, -3},     {-1, -7, -2},
                       {kOpen, 2, -3},     {3, 3, 1},       {5, 2, 1},      {2, 5, -1},
                       {7, kOpen, 1},      {100, kOpen, -4}};
  for (const Row& row : kRows) {
    const std::string name = "slice by " + std::to_string(row.step) + " from " +
                             (row.start ? std::to_string(*row.start) : "none") + " to " +
                             (row.stop ? std::to_string(*row.stop) : "none");
    check_movement(name, {7}, [&](auto& x) { return slice(x, 0, row.start, row.stop, row.step); });
    check_movement(name, {2, 7, 3}, [&](auto& x) { return slice(x, -2, row.start, row.stop, row.step); });
  }
  check_movement("slice of slice", {33}, [](auto& x) {
    return slice(slice(slice(x, 0, 30, 2, -3), 0, 1, kOpen, 2), 0, kOpen, kOpen, -1);
  });
  check_movement("slices of all axes", {7, 5},
                 [](auto& x) { return slice(slice(x, 0, kOpen, kOpen, -2), 1, 3, 0, -1); });
  check_movement("slice", {0, 3}, [](auto& x) { return slice(x, 1, kOpen, kOpen, -2); });
  check_movement("slice", {0}, [](auto& x) { return slice(x, 0, kOpen, kOpen, -1); });
  check_case({"overlapping windows", {{Shape{7}}}, [](Inputs x) {
                return slice(x[0], 0, kOpen, -1) * slice(x[0], 0, 1, kOpen) + slice(x[0], 0, -1, 0, -1);
              }});
}

TEST(GradcheckMovement, Pad) {
  check_movement("pad", {3}, [](auto& x) { return pad(x, {1}, {2}); });
  check_movement("pad with a value", {3}, [](auto& x) { return pad(x, {1}, {2}, 1.5); });
  check_movement("pad low", {2, 3}, [](auto& x) { return pad(x, {1, 2}, {0, 0}, -0.5); });
  check_movement("pad between", {4}, [](auto& x) { return pad(x, {0}, {0}, 0.5, {2}); });
  check_movement("pad everywhere", {2, 3}, [](auto& x) { return pad(x, {1, 0}, {2, 1}, 2, {1, 3}); });
  check_movement("pad between one", {1, 3}, [](auto& x) { return pad(x, {0, 1}, {0, 0}, 2, {5, 1}); });
  check_movement("pad nothing", {0, 2}, [](auto& x) { return pad(x, {2, 1}, {1, 0}, 0.5, {3, 0}); });
  check_movement("pad of a pad", {3},
                 [](auto& x) { return pad(pad(x, {1}, {0}, 0.5, {1}), {0}, {2}, 3, {2}); });
  check_movement("pad by nothing", {3}, [](auto& x) { return pad(x, {0}, {0}); });
  check_movement("pad of a reversed slice", {7},
                 [](auto& x) { return pad(slice(x, 0, kOpen, kOpen, -2), {1}, {1}, 0.25, {1}); });
}

TEST(GradcheckMovement, ConcatenateAndStack) {
  check_case({"two", {{Shape{2, 3}}, {Shape{4, 3}}}, [](Inputs x) {
                return concatenate({x[0], x[1] * x[1]});
              }});
  check_case({"three along -1", {{Shape{2, 1}}, {Shape{2, 0}}, {Shape{2, 5}}}, [](Inputs x) {
                const LazyTensor y = concatenate({x[0], x[1], x[2]}, -1);
                return y * y;
              }});
  check_case({"one", {{Shape{3}}}, [](Inputs x) { return concatenate({x[0]}) * 2.0; }});
  check_case({"itself", {{Shape{3}}}, [](Inputs x) {
                const LazyTensor y = concatenate({x[0], x[0], x[0] * x[0]});
                return y * y;
              }});
  check_case({"five", {{Shape{3}}, {Shape{1}}}, [](Inputs x) {
                const LazyTensor y = concatenate({x[0], x[1], sin(x[0]), x[1], x[0] * x[1]});
                return exp(y);
              }});
  for (const Layout left : kLayouts) {
    const Shape a{2, 3};
    const Shape b{2, 4};
    check_case({"of " + to_string(left), {{base_shape(a, left)}, {Shape{4, 2}}}, [&](Inputs x) {
                  const LazyTensor y = concatenate({view_of(x[0], a, left), transpose(x[1])}, 1);
                  return y * y;
                }});
  }
  for (int axis = -3; axis < 3; ++axis) {
    check_case({"stack along " + std::to_string(axis), {{Shape{2, 3}}, {Shape{2, 3}}}, [&](Inputs x) {
                  const LazyTensor y = stack({x[0], x[1], x[0] * x[1]}, axis);
                  return y * y;
                }});
  }
  check_case({"stack of scalars", {{Shape{}}, {Shape{}}}, [](Inputs x) { return exp(stack({x[0], x[1]})); }});
}

TEST(GradcheckMovement, LongChains) {
  check_movement("chain", {4, 6}, [](auto& x) {
    const LazyTensor y = reshape(transpose(slice(x, 0, kOpen, kOpen, -1)), Shape{3, 2, 4});
    return permute_dims(pad(slice(y, 2, 1, kOpen, 2), {0, 1, 0}, {1, 0, 0}, 0.5, {0, 0, 1}), {2, 0, 1});
  });
}

}  // namespace
}  // namespace caldera::testing
