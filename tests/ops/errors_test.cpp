// Wrong operands are refused by the call that gets them, with the operation's name and the shapes in the
// message.
#include <gtest/gtest.h>

#include <functional>

#include "engine/graph/graph.h"
#include "ops/loss/cross_entropy.h"
#include "ops/ops.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

LazyTensor of(const Shape& shape, DType type = DType::f32) {
  return LazyTensor::zeros(shape, type, Device::cpu());
}

enum class Kind { shape, dtype, device, value };

struct Row {
  const char* what;
  Kind kind;
  std::function<void()> call;
  std::vector<const char*> mentions;
};

const Row kRows[] = {
    {"add of shapes that do not broadcast",
     Kind::shape,
     [] {
       add(of({2, 3}), of({4}));
     },
     {"add", "(2, 3)", "(4,)"}},
    {"comparison", Kind::shape, [] { less(of({2}), of({3})); }, {"less", "(2,)", "(3,)"}},
    {"empty with more than 1", Kind::shape, [] { multiply(of({0}), of({2})); }, {"multiply", "(0,)", "(2,)"}},
    {"where",
     Kind::shape,
     [] { where(of({2}, DType::boolean), of({3}), of({3})); },
     {"where", "(2,)", "(3,)"}},
    {"where of numbers", Kind::dtype, [] { where(of({2}), of({2}), of({2})); }, {"where", "float32"}},
    {"logic of numbers",
     Kind::dtype,
     [] { logical_and(of({2}, DType::i32), of({2}, DType::i32)); },
     {"logical_and", "int32"}},
    {"not of a number", Kind::dtype, [] { logical_not(of({2})); }, {"logical_not", "float32"}},
    {"negative of truth", Kind::dtype, [] { negative(of({2}, DType::boolean)); }, {"negative", "bool"}},
    {"sum of an axis that is not there",
     Kind::shape,
     [] {
       sum(of({2, 3}), 2);
     },
     {"sum", "(2, 3)", "2"}},
    {"mean of an axis that is not there",
     Kind::shape,
     [] {
       mean(of({2, 3}), -3);
     },
     {"mean", "(2, 3)", "-3"}},
    {"an axis twice",
     Kind::shape,
     [] {
       sum(of({2, 3}), {1, -1});
     },
     {"sum", "(2, 3)"}},
    {"max of nothing",
     Kind::shape,
     [] {
       max(of({2, 0}), 1);
     },
     {"max", "(2, 0)"}},
    {"min of nothing", Kind::shape, [] { min(of({0})); }, {"min", "(0,)"}},
    {"max of truth", Kind::dtype, [] { max(of({2}, DType::boolean)); }, {"max", "bool"}},
    {"matmul inside",
     Kind::shape,
     [] {
       matmul(of({2, 3}), of({4, 5}));
     },
     {"matmul", "(2, 3)", "(4, 5)"}},
    {"matmul of vectors", Kind::shape, [] { matmul(of({3}), of({4})); }, {"matmul", "3", "4"}},
    {"matmul batches",
     Kind::shape,
     [] {
       matmul(of({2, 3, 4}), of({5, 4, 3}));
     },
     {"matmul", "(2", "(5"}},
    {"matmul of a scalar",
     Kind::shape,
     [] {
       matmul(of({}), of({2, 2}));
     },
     {"matmul", "()", "(2, 2)"}},
    {"matmul of truth",
     Kind::dtype,
     [] {
       matmul(of({2, 2}, DType::boolean), of({2, 2}, DType::boolean));
     },
     {"matmul", "bool"}},
    {"take by reals", Kind::dtype, [] { take(of({3}), of({2})); }, {"take", "float32"}},
    {"take along an axis that is not there",
     Kind::shape,
     [] { take(of({3}), of({2}, DType::i32), 1); },
     {"take", "(3,)"}},
    {"take of too many dimensions",
     Kind::shape,
     [] {
       take(of({1, 1, 1, 1, 1, 1, 1}), of({1, 1, 1, 1, 1, 1, 1}, DType::i32));
     },
     {"take", "(1, 1, 1, 1, 1, 1, 1)"}},
    {"scatter_add of other updates",
     Kind::shape,
     [] {
       scatter_add(of({3, 2}), of({4}, DType::i32), of({4, 3}));
     },
     {"scatter_add", "(3, 2)", "(4,)", "(4, 3)"}},
    {"reshape",
     Kind::shape,
     [] {
       reshape(of({2, 3}), Shape{4, -1});
     },
     {"reshape", "(2, 3)", "(4, -1)"}},
    {"reshape by two unknowns",
     Kind::shape,
     [] {
       reshape(of({4}), Shape{-1, -1});
     },
     {"reshape", "(4,)"}},
    {"reshape of nothing to an unknown",
     Kind::shape,
     [] {
       reshape(of({0}), Shape{0, -1});
     },
     {"reshape", "(0,)"}},
    {"permutation that repeats",
     Kind::shape,
     [] {
       permute_dims(of({2, 3}), {0, 0});
     },
     {"permute_dims", "(2, 3)"}},
    {"permutation too short",
     Kind::shape,
     [] {
       permute_dims(of({2, 3}), {0});
     },
     {"permute_dims", "(2, 3)"}},
    {"transpose of a vector", Kind::shape, [] { transpose(of({3})); }, {"transpose", "(3,)"}},
    {"squeeze",
     Kind::shape,
     [] {
       squeeze(of({2, 3}), 0);
     },
     {"squeeze", "(2, 3)"}},
    {"expand_dims",
     Kind::shape,
     [] {
       expand_dims(of({2, 3}), 4);
     },
     {"expand_dims", "(2, 3)", "4"}},
    {"broadcast to less",
     Kind::shape,
     [] {
       broadcast_to(of({2, 3}), Shape{3});
     },
     {"broadcast_to", "(2, 3)", "(3,)"}},
    {"broadcast to other",
     Kind::shape,
     [] { broadcast_to(of({2}), Shape{1}); },
     {"broadcast_to", "(2,)", "(1,)"}},
    {"slice by 0",
     Kind::value,
     [] { slice(of({3}), 0, 0, 1, 0); },
     {"slice: slice step cannot be zero", "size 3"}},
    {"slice of an axis that is not there", Kind::shape, [] { slice(of({3}), 1, 0, 1); }, {"slice", "(3,)"}},
    {"pad by too few",
     Kind::shape,
     [] {
       pad(of({2, 3}), {1}, {1});
     },
     {"pad", "(2, 3)"}},
    {"pad by less than all", Kind::shape, [] { pad(of({3}), {-4}, {0}); }, {"pad", "(3,)"}},
    {"concatenate of nothing", Kind::shape, [] { concatenate({}); }, {"concatenate"}},
    {"concatenate",
     Kind::shape,
     [] {
       concatenate({of({2, 3}), of({2, 4})});
     },
     {"concatenate", "(2, 3)", "(2, 4)"}},
    {"concatenate of ranks",
     Kind::shape,
     [] {
       concatenate({of({2}), of({2, 4})});
     },
     {"concatenate", "(2,)", "(2, 4)"}},
    {"stack",
     Kind::shape,
     [] {
       stack({of({2}), of({3})});
     },
     {"stack", "(2,)", "(3,)"}},
    {"stack of nothing", Kind::shape, [] { stack({}); }, {"stack"}},
    {"random integers",
     Kind::dtype,
     [] { random_uniform(Shape{3}, 1, DType::i32); },
     {"random_uniform", "int32"}},
    {"negative extents", Kind::shape, [] { random_normal(Shape{-3}, 1); }, {"random_normal", "(-3,)"}},
    {"rms_norm",
     Kind::shape,
     [] {
       rms_norm(of({2, 3}), 1e-5, of({2}));
     },
     {"rms_norm", "(2, 3)", "(2,)"}},
    {"layer_norm",
     Kind::shape,
     [] {
       layer_norm(of({2, 3}), 1e-5, of({3}), of({3, 1}));
     },
     {"layer_norm", "(3, 1)"}},
    {"lora_delta",
     Kind::shape,
     [] {
       lora_delta(of({2, 3}), of({4, 1}), of({1, 3}), 1);
     },
     {"(2, 3)", "(4, 1)"}},
    {"cross_entropy",
     Kind::shape,
     [] {
       mean_cross_entropy(of({2, 3}), of({3}, DType::i32));
     },
     {"cross_entropy", "(2, 3)", "(3,)"}},
    {"devices",
     Kind::device,
     [] { add(of({2}), LazyTensor::zeros(Shape{2}, DType::f32, Device::null())); },
     {"add", "cpu", "null", "(2,)"}},
};

TEST(Errors, NameTheOperationAndTheShapes) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.what);
    const auto check = [&](Kind kind, const Error& error) {
      EXPECT_EQ(kind, row.kind) << error.what();
      for (const char* part : row.mentions)
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
            << error.what() << "\nlacks: " << part;
    };
    try {
      row.call();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const ShapeError& error) {
      check(Kind::shape, error);
    } catch (const DTypeError& error) {
      check(Kind::dtype, error);
    } catch (const DeviceError& error) {
      check(Kind::device, error);
    } catch (const ValueError& error) {
      check(Kind::value, error);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "another type of error: " << error.what();
    }
  }
}

TEST(Errors, ARefusedCallLeavesItsOperandsUsable) {
  const LazyTensor x = of({2, 3}) + 1.0;
  EXPECT_THROW(x + of({4}), ShapeError);
  EXPECT_EQ(sum(x).item<float>(), 6);
}

}  // namespace
}  // namespace caldera::testing
