// Gathers and scatters, with indices outside of the axis.
#include <random>
#include <string>

#include "engine/check/doctor/checks.h"

namespace caldera::doctor {
namespace {

using reference::integer;
using reference::view;

constexpr DType kIndexedTypes[] = {DType::f32, DType::f64, DType::i32, DType::i64,
                                   DType::u8,  DType::u32, DType::i8,  DType::i16};
constexpr std::int64_t kInner[] = {1, 7, 33, 1025};
constexpr std::int64_t kOuter = 3;
constexpr std::int64_t kExtent = 11;
constexpr std::int64_t kCount = 17;

int add_indexed_rows(PlanCase& plan, std::int64_t count = kCount) {
  const int index = plan.input(DType::i32, count);
  std::uniform_int_distribution<std::int64_t> pick(-2, kExtent + 1);
  for (std::int64_t i = 0; i < count; ++i) plan.set(index, i, integer(pick(plan.random())));
  return index;
}

void check_gather(Examination& x, DType type, std::int64_t inner) {
  PlanCase plan(x.device());
  const int in = plan.input(type, kOuter * kExtent * inner);
  const int index = add_indexed_rows(plan);
  const int own = add_indexed_rows(plan, kOuter * kCount);  // differ from one outer place to the next
  const int dense = plan.output(type, kOuter * kCount * inner);
  const int turned = plan.output(type, kOuter * kCount * inner);
  const Shape dims{kOuter, kCount, inner};
  plan.indexed(
      GatherStep{.axis = {kExtent, inner}}, type, dims,
      {view(in, {kExtent * inner, 0, 1}), view(index, {0, 1, 0}), view(dense, {kCount * inner, inner, 1})});
  // The axis innermost, indices backwards, the output with `inner` before the indices.
  plan.indexed(GatherStep{.axis = {kExtent, 1}}, type, dims,
               {view(in, {kExtent * inner, 0, kExtent}), view(index, {0, -1, 0}, kCount - 1),
                view(turned, {kCount * inner, 1, kCount})});
  const int picked = plan.output(type, kOuter * kCount * inner);
  plan.indexed(GatherStep{.axis = {kExtent, inner}}, type, dims,
               {view(in, {kExtent * inner, 0, 1}), view(own, {kCount, 1, 0}),
                view(picked, {kCount * inner, inner, 1})});
  x.compare("gather of " + std::string(name(type)) + ", inner " + std::to_string(inner), plan, {{}, "exact"});
}

void check_scatter(Examination& x, DType type, std::int64_t inner) {
  PlanCase plan(x.device());
  const int in = plan.input(type, kOuter * kCount * inner);
  const int index = add_indexed_rows(plan);
  const int own = add_indexed_rows(plan, kOuter * kCount);  // differ from one outer place to the next
  const int dense = plan.output_with_data(type, kOuter * kExtent * inner);
  const int spread = plan.output_with_data(type, 2 * kOuter * kExtent * inner);
  const Shape dims{kOuter, kCount, inner};
  plan.indexed(
      ScatterStep{.axis = {kExtent, inner}}, type, dims,
      {view(in, {kCount * inner, inner, 1}), view(index, {0, 1, 0}), view(dense, {kExtent * inner, 0, 1})});
  plan.indexed(ScatterStep{.axis = {kExtent, 2}}, type, dims,
               {view(in, {kCount * inner, 1, kCount}), view(index, {0, 1, 0}),
                view(spread, {2 * kExtent * inner, 0, 2 * kExtent})});
  for (const Scatter how : {Scatter::set, Scatter::maximum, Scatter::minimum, Scatter::multiply}) {
    const int out = plan.output_with_data(type, kOuter * kExtent * inner);
    plan.indexed(ScatterStep{.axis = {kExtent, inner}, .combine = how}, type, dims,
                 {view(in, {kCount * inner, inner, 1}), view(own, {kCount, 1, 0}),
                  view(out, {kExtent * inner, 0, 1})});
  }
  x.compare("scatter-add of " + std::string(name(type)) + ", inner " + std::to_string(inner), plan,
            {{}, "exact: added in order, each sum rounded"});
}

}  // namespace

void check_indexed(Examination& x) {
  for (DType type : kIndexedTypes) {
    if (!x.supports(type)) {
      x.skip("gather and scatter of " + std::string(name(type)), "the device lacks the type");
      continue;
    }
    for (std::int64_t inner : kInner) {
      check_gather(x, type, inner);
      if (type != DType::i64 && type != DType::u8 && !is_memory_type(type)) check_scatter(x, type, inner);
    }
  }
}

}  // namespace caldera::doctor
