// Movement, gather and scatter-add on every device against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class ForwardMovement : public OpTest {
 protected:
  std::vector<DType> all_types() const { return supported(kAllDTypes); }
  Operand operand(const Shape& shape, Layout layout, DType type, std::uint64_t seed) const {
    return random_operand(shape, layout, type, device(), 1, 99, true, seed);
  }
  LazyTensor indices(const std::vector<std::int32_t>& values, const Shape& shape) const {
    return LazyTensor::from_vector(values, shape, device());
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, ForwardMovement, ::testing::ValuesIn(op_settings()), op_setting_name);

constexpr auto kAbsent = std::nullopt;

struct MovementRow {
  const char* name;
  Shape shape;
  std::function<LazyTensor(const LazyTensor&)> move;
  Shape result;
  std::function<double(const Host&, const Index&)> oracle;
};

/// The element with the same place in row-major order.
double same_place(const Host& x, const Index& at, const Shape& result) { return x.values[ravel(at, result)]; }

const MovementRow kMovementRows[] = {
    {"reshape",
     {6, 4},
     [](auto& x) {
       return reshape(x, Shape{2, -1, 3});
     },
     {2, 4, 3},
     [](auto& x, auto& at) {
       return same_place(x, at, Shape{2, 4, 3});
     }},
    {"reshape to rank 0",
     {1, 1},
     [](auto& x) { return reshape(x, Shape{}); },
     {},
     [](auto& x, auto&) { return x.values[0]; }},
    {"reshape of nothing",
     {3, 0},
     [](auto& x) {
       return reshape(x, Shape{0, 7});
     },
     {0, 7},
     [](auto&, auto&) { return 0.0; }},
    {"reshape of a transpose",
     {33, 7},
     [](auto& x) { return reshape(transpose(x), Shape{-1}); },
     {231},
     [](auto& x, auto& at) {
       return x[{at[0] % 33, at[0] / 33}];
     }},
    {"permute",
     {2, 3, 1, 4, 5},
     [](auto& x) {
       return permute_dims(x, {3, 0, 4, 2, -4});
     },
     {4, 2, 5, 1, 3},
     [](auto& x, auto& at) {
       return x[{at[1], at[4], at[3], at[0], at[2]}];
     }},
    {"swapaxes",
     {2, 3, 4},
     [](auto& x) { return swapaxes(x, 0, -1); },
     {4, 3, 2},
     [](auto& x, auto& at) {
       return x[{at[2], at[1], at[0]}];
     }},
    {"squeeze and expand",
     {7, 1, 3},
     [](auto& x) { return expand_dims(squeeze(x, -2), 0); },
     {1, 7, 3},
     [](auto& x, auto& at) {
       return x[{at[1], 0, at[2]}];
     }},
    {"broadcast",
     {7, 1},
     [](auto& x) {
       return broadcast_to(x, Shape{2, 7, 33});
     },
     {2, 7, 33},
     [](auto& x, auto& at) {
       return x[{at[1], 0}];
     }},
    {"slice with a step",
     {33, 7},
     [](auto& x) { return slice(x, 0, 2, -1, 3); },
     {10, 7},
     [](auto& x, auto& at) {
       return x[{2 + 3 * at[0], at[1]}];
     }},
    {"slice backwards",
     {7, 33},
     [](auto& x) { return slice(x, 1, -2, 3, -4); },
     {7, 7},
     [](auto& x, auto& at) {
       return x[{at[0], 31 - 4 * at[1]}];
     }},
    {"slice of nothing",
     {7},
     [](auto& x) { return slice(x, 0, 5, 2); },
     {0},
     [](auto&, auto&) { return 0.0; }},
    {"slice of slices",
     {1025},
     [](auto& x) {
       return slice(slice(slice(x, 0, kAbsent, kAbsent, -1), 0, 4, 1000, 5), 0, kAbsent, kAbsent, -2);
     },
     {100},
     [](auto& x, auto& at) { return x[{1024 - (4 + 5 * (199 - 2 * at[0] + 0))}]; }},
    {"pad",
     {3, 5},
     [](auto& x) {
       return pad(x, {1, 0}, {2, 3}, 1);
     },
     {6, 8},
     [](auto& x, auto& at) {
       const bool inside = at[0] >= 1 && at[0] < 4 && at[1] < 5;
       return inside ? x[{at[0] - 1, at[1]}] : 1.0;
     }},
    {"pad between",
     {5},
     [](auto& x) { return pad(x, {1}, {0}, 1, {2}); },
     {14},
     [](auto& x, auto& at) { return at[0] >= 1 && (at[0] - 1) % 3 == 0 ? x[{(at[0] - 1) / 3}] : 1.0; }},
    {"pad of nothing",
     {0, 2},
     [](auto& x) {
       return pad(x, {2, 0}, {1, 1}, 1, {4, 0});
     },
     {3, 3},
     [](auto&, auto&) { return 1.0; }},
    {"concatenate",
     {7, 3},
     [](auto& x) {
       return concatenate({x, slice(x, 0, 2, 3), x});
     },
     {15, 3},
     [](auto& x, auto& at) {
       return x[{at[0] < 7 ? at[0] : at[0] == 7 ? 2 : at[0] - 8, at[1]}];
     }},
    {"concatenate along -1",
     {3, 4},
     [](auto& x) {
       return concatenate({slice(x, 1, 0, 0), slice(x, 1, kAbsent, kAbsent, -1), x}, -1);
     },
     {3, 8},
     [](auto& x, auto& at) {
       return x[{at[0], at[1] < 4 ? 3 - at[1] : at[1] - 4}];
     }},
    {"stack",
     {3, 3},
     [](auto& x) {
       return stack({x, transpose(x)}, 1);
     },
     {3, 2, 3},
     [](auto& x, auto& at) {
       return at[1] == 0 ? x[{at[0], at[2]}] : x[{at[2], at[0]}];
     }},
};

TEST_P(ForwardMovement, OfEveryLayout) {
  std::vector<Pending> all;
  std::uint64_t seed = 1;
  for (const MovementRow& row : kMovementRows) {
    for (const DType type : all_types()) {
      for (const Layout layout : kLayouts) {
        // Bytes, and everything but f32 in odd layouts, take the same paths: one layout each is enough on
        // Vulkan.
        if (is_vulkan() && type != DType::f32 && layout != kLayouts[seed % 5]) continue;
        const Operand x = operand(row.shape, layout, type, seed++);
        all.push_back({std::string(row.name) + " of " + std::string(name(type)) + " " + to_string(layout),
                       row.move(x.tensor),
                       Host::from(row.result, [&](const Index& at) { return row.oracle(x.host, at); }),
                       {}});
      }
    }
  }
  check_all(all);
}

TEST_P(ForwardMovement, ViewsOfTheResultOfAnEvaluation) {
  const Operand x = operand(Shape{33, 7}, Layout::plain, DType::f32, 3);
  const LazyTensor view = slice(transpose(x.tensor), 1, kAbsent, kAbsent, -2).eval();
  const LazyTensor again = slice(view, 0, 1, 6) + 1;
  EXPECT_TRUE(agrees(again,
                     Host::from(Shape{5, 17},
                                [&](const Index& at) {
                                  return static_cast<float>(x.host[{32 - 2 * at[1], at[0] + 1}]) + 1.0F;
                                }),
                     {}));
}

// ---- gather and scatter
// ------------------------------------------------------------------------------------------

struct IndexRow {
  Shape shape;
  std::vector<std::int32_t> values;  // -1 and 9 lie outside
};
const IndexRow kIndices[] = {{{}, {1}}, {{5}, {2, 0, 2, -1, 1}}, {{2, 3}, {0, 9, 2, 2, 0, 1}}, {{0}, {}}};

/// Splits an index of a taken result: where it reads, and whether that is inside.
struct Source {
  Index at;
  bool inside;
};
Source source_of(const Index& at, const IndexRow& row, const Shape& x, int axis) {
  const auto before = at.begin() + axis;
  const Index which(before, before + row.shape.rank());
  const std::int64_t index = row.values[ravel(which, row.shape)];
  Index from(at.begin(), before);
  from.push_back(index);
  from.insert(from.end(), before + row.shape.rank(), at.end());
  return {from, index >= 0 && index < x[axis]};
}

Shape taken(const Shape& x, const Shape& which, int axis) {
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) out.push_back(x[i]);
    if (i == axis) {
      for (std::int64_t extent : which) out.push_back(extent);
    }
  }
  return out;
}

TEST_P(ForwardMovement, Take) {
  const Shape shape{3, 4, 3};
  std::vector<Pending> all;
  std::uint64_t seed = 1;
  for (const IndexRow& row : kIndices) {
    for (int axis = 0; axis < 3; ++axis) {
      for (const DType type : supported(kNumericTypes)) {
        const Operand x = operand(shape, kLayouts[seed % 5], type, seed);
        ++seed;
        const double outside = is_floating(type) ? std::nan("") : 0;
        all.push_back(
            {std::string(name(type)) + " along " + std::to_string(axis) + " by " + row.shape.to_string(),
             take(x.tensor, indices(row.values, row.shape), axis),
             Host::from(taken(shape, row.shape, axis),
                        [&](const Index& at) {
                          const Source from = source_of(at, row, shape, axis);
                          return from.inside ? x.host[from.at] : outside;
                        }),
             {}});
      }
    }
  }
  check_all(all);
}

TEST_P(ForwardMovement, ScatterAdd) {
  const Shape shape{3, 4, 3};
  std::vector<Pending> all;
  std::uint64_t seed = 1;
  for (const IndexRow& row : kIndices) {
    for (int axis = 0; axis < 3; ++axis) {
      for (const DType type :
           supported({DType::f32, DType::i32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i16})) {
        const Shape updates = taken(shape, row.shape, axis);
        const auto whole = [&](const Shape& s) {  // whole numbers: sums are exact in every type and order
          Operand x = operand(s, kLayouts[seed % 5], DType::i32, seed);
          ++seed;
          return Operand{astype(x.tensor, type), x.host};
        };
        const Operand base = whole(shape);
        const Operand more = whole(updates);
        Host expected = base.host;
        for (std::size_t i = 0; i < more.host.values.size(); ++i) {
          const Source to = source_of(unravel(static_cast<std::int64_t>(i), updates), row, shape, axis);
          if (to.inside) expected[to.at] += more.host.values[i];
        }
        all.push_back(
            {std::string(name(type)) + " along " + std::to_string(axis) + " by " + row.shape.to_string(),
             scatter_add(base.tensor, indices(row.values, row.shape), more.tensor, axis),
             expected,
             {}});
      }
    }
  }
  check_all(all);
}

TEST_P(ForwardMovement, ScatterAddLeavesItsBaseAlone) {
  const LazyTensor base = LazyTensor::from_vector<float>({1, 2, 3}, Shape{3}, device());
  const LazyTensor sum =
      scatter_add(base, indices({1}, Shape{1}), LazyTensor::ones(Shape{1}, DType::f32, device()));
  EXPECT_EQ(sum.to_vector<float>(), (std::vector<float>{1, 3, 3}));
  EXPECT_EQ(base.to_vector<float>(), (std::vector<float>{1, 2, 3}));
}

TEST_P(ForwardMovement, IndicesOfOtherTypesAndComputedIndices) {
  const Operand x = operand(Shape{1025, 3}, Layout::plain, DType::f32, 1);
  const LazyTensor computed = remainder(arange(7, DType::i32, device()) * 300, 1025);
  const Host expected = Host::from(Shape{7, 3}, [&](const Index& at) {
    return x.host[{at[0] * 300 % 1025, at[1]}];
  });
  EXPECT_TRUE(agrees(take(x.tensor, computed), expected, {}));
  if (supports(DType::i64)) {
    EXPECT_TRUE(agrees(take(x.tensor, astype(computed, DType::i64)), expected, {}));
  }
}

TEST_P(ForwardMovement, Iota) {
  EXPECT_EQ(arange(5, DType::i32, device()).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(agrees(iota(Shape{3, 33, 2}, 1, DType::f32, device()),
                     Host::from(Shape{3, 33, 2}, [](const Index& at) { return static_cast<double>(at[1]); }),
                     {}));
  EXPECT_TRUE(agrees(
      iota(Shape{3, 4}, -2, DType::i32, device()) * 10 + iota(Shape{3, 4}, 1, DType::i32, device()),
      Host::from(Shape{3, 4}, [](const Index& at) { return static_cast<double>(at[0] * 10 + at[1]); }), {}));
  EXPECT_EQ(arange(0, DType::i32, device()).to_vector<std::int32_t>().size(), 0U);
  EXPECT_TRUE(
      agrees(one_hot(indices({2, 0, 7}, Shape{3}), 3), Host(Shape{3, 3}, {0, 0, 1, 1, 0, 0, 0, 0, 0}), {}));
}

}  // namespace
}  // namespace caldera::testing
