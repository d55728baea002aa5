// What transforms are given that is empty or does not fit is refused by the one that was called, by name and
// position.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "ops/core/node_builder.h"
#include "tests/support/messages.h"
#include "tests/support/transforms/gradcheck.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;

const OpDef kRuleless{.name = "frobnicate", .kind = OpClass::identity};
LazyTensor ruleless(const LazyTensor& x) { return ops::make(kRuleless, x.shape(), x.dtype(), {x}); }

TEST(EmptyFunctions, AreRefusedByTheTransformThatIsCalled) {
  const LazyTensor x = vector_of({1, 2});
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"value_and_grad",
       [&] {
         value_and_grad({}, {&x, 1});
       }},
      {"jvp",
       [&] {
         jvp(VectorFunction(), {&x, 1}, {&x, 1});
       }},
      {"jvp",
       [&] {
         jvp(TensorFunction(), {&x, 1}, {&x, 1});
       }},
      {"hvp",
       [&] {
         hvp({}, {&x, 1}, {&x, 1});
       }},
      {"jacobian", [&] { jacobian(UnaryFunction(), x); }},
      {"jacobian", [&] { jacobian(UnaryFunction()); }},
      {"jacobian",
       [&] {
         jacobian(VectorFunction(), {&x, 1});
       }},
      {"hessian", [&] { hessian(UnaryFunction(), x); }},
      {"hessian", [&] { hessian(UnaryFunction()); }},
      {"hessian",
       [&] {
         hessian(TensorFunction(), {&x, 1});
       }},
      {"vmap", [&] { vmap(UnaryFunction()); }},
      {"vmap", [&] { vmap(TensorFunction()); }},
      {"vmap", [&] { vmap(VectorFunction()); }},
      {"checkpoint", [&] { checkpoint(UnaryFunction()); }},
      {"checkpoint", [&] { checkpoint(TensorFunction()); }},
      {"checkpoint", [&] { checkpoint(VectorFunction()); }},
  };
  for (const auto& [transform, call] : calls) {
    EXPECT_EQ(message_of<ValueError>(call).find(std::string(transform) + ": the function is empty"), 0U)
        << transform;
  }
}

TEST(EmptyTensors, AreRefusedByNameAndPosition) {
  const LazyTensor x = vector_of({1, 2}), none;
  const LazyTensor second[] = {x, none}, both[] = {x, x};
  const TensorFunction total = [](Inputs a) { return sum(a[0]); };
  const VectorFunction as_they_are = [](Inputs a) { return std::vector<LazyTensor>(a.begin(), a.end()); };
  const UnaryFunction forgets = [](const LazyTensor&) { return LazyTensor(); };
  const TensorFunction forgets_all = [](Inputs) { return LazyTensor(); };
  const VectorFunction forgets_one = [](Inputs a) { return std::vector<LazyTensor>{a[0], {}}; };
  const VectorFunction custom =
      custom_vjp(CustomVjp{.name = "mine", .forward = forgets_one, .backward = [](Inputs, Inputs, Inputs) {
                             return std::vector<LazyTensor>();
                           }});
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"vjp: output 1", [&] { vjp(second, both, both); }},
      {"vjp: input 1", [&] { vjp(both, second, both); }},
      {"vjp: cotangent 1", [&] { vjp(both, both, second); }},
      {"grad: output 0", [&] { grad(none, x); }},
      {"grad: input 1", [&] { grad(sum(x), second); }},
      {"value_and_grad: argument 1", [&] { value_and_grad(total, second); }},
      {"value_and_grad: result 0", [&] { value_and_grad(forgets_all, both); }},
      {"jvp: output 1", [&] { jvp(second, both, both); }},
      {"jvp: input 1", [&] { jvp(both, second, both); }},
      {"jvp: argument 1", [&] { jvp(as_they_are, second, both); }},
      {"jvp: result 1", [&] { jvp(forgets_one, both, both); }},
      {"hvp: argument 1", [&] { hvp(total, second, both); }},
      {"hvp: result 0", [&] { hvp(forgets_all, both, both); }},
      {"jacobian: argument 0", [&] { jacobian([](const LazyTensor& a) { return a; }, none); }},
      {"jacobian: result 0", [&] { jacobian(forgets, x); }},
      {"jacobian: result 1", [&] { jacobian(forgets_one, both); }},
      {"hessian: argument 0", [&] { hessian([](const LazyTensor& a) { return sum(a); }, none); }},
      {"hessian: result 0", [&] { hessian(forgets, x); }},
      {"vmap: argument 1", [&] { vmap(as_they_are)(second); }},
      {"vmap: result 1", [&] { vmap(forgets_one)(both); }},
      {"checkpoint: argument 1", [&] { checkpoint(as_they_are)(second); }},
      {"checkpoint: result 1", [&] { checkpoint(forgets_one)(both); }},
      {"custom_vjp 'mine': argument 1", [&] { custom(second); }},
      {"custom_vjp 'mine': result 1", [&] { custom(both); }},
  };
  for (const auto& [start, call] : calls) {
    EXPECT_EQ(message_of<ValueError>(call).find(std::string(start) + " is an empty LazyTensor"), 0U) << start;
  }
}

TEST(Errors, BeginWithTheTransformThatIsCalled) {
  const LazyTensor x = vector_of({1, 2}), narrow = vector_of({1}), k = astype(x, DType::i32);
  const LazyTensor both[] = {x, x}, one_wrong[] = {x, narrow}, one_whole[] = {x, k};
  const TensorFunction odd = [](Inputs a) { return sum(ruleless(a[0] * a[0])); };
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"vjp: cotangent 1 has shape (1,), output 1 has (2,)", [&] { vjp(both, both, one_wrong); }},
      {"vjp: input 1", [&] { vjp(both, one_whole, both); }},
      {"grad: input 1", [&] { grad(sum(x * k), one_whole); }},
      {"jvp: tangent 1 has shape (1,), input 1 has (2,)", [&] { jvp(both, both, one_wrong); }},
      {"vjp: 'frobnicate'",
       [&] {
         const LazyTensor y = odd({&x, 1}), g = ones_like(y);
         vjp({&y, 1}, {&x, 1}, {&g, 1});
       }},
      {"value_and_grad: 'frobnicate'",
       [&] {
         value_and_grad(odd, {&x, 1});
       }},
      {"value_and_grad: the output must be one",
       [&] {
         value_and_grad([](Inputs a) { return a[0]; }, {&x, 1});
       }},
      {"jvp: 'frobnicate'",
       [&] {
         jvp(odd, {&x, 1}, {&x, 1});
       }},
      {"hvp: 'frobnicate'",
       [&] {
         hvp(odd, {&x, 1}, {&x, 1});
       }},
      {"hvp: tangent 0",
       [&] {
         hvp([](Inputs a) { return sum(a[0]); }, {&x, 1}, {&narrow, 1});
       }},
      {"jacobian: 'frobnicate'",
       [&] {
         jacobian([&](const LazyTensor& a) { return odd({&a, 1}); }, x, JacobianMode::reverse);
       }},
      {"hessian: 'frobnicate'",
       [&] {
         hessian([&](const LazyTensor& a) { return odd({&a, 1}); }, x);
       }},
      {"grad: 'frobnicate'",
       [&] {
         grad(checkpoint(odd)({&x, 1}), x);
       }},
  };
  for (const auto& [start, call] : calls) {
    std::string text;
    try {
      call();
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_EQ(text.find(start), 0U) << start << " <- " << text;
  }
}

}  // namespace
}  // namespace caldera::testing
