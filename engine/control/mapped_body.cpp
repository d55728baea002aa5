#include "engine/control/mapped_body.h"

#include <algorithm>

#include "engine/autodiff/batching.h"
#include "engine/autodiff/mapping.h"
#include "engine/autodiff/snapshot.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"

namespace caldera {

std::vector<Batched> mapped_body(const Body& body, std::span<const Batched> parameters) {
  return mapped_over([&](std::span<const LazyTensor> values) { return body(values); }, parameters);
}

std::vector<bool> reached(const Body& body, const std::vector<bool>& is_mapped) {
  std::vector<LazyTensor> targets;
  for (std::size_t i = 0; i < is_mapped.size(); ++i) {
    if (is_mapped[i]) targets.push_back(body.parameters()[i]);
  }
  Snapshot s = take_snapshot(body.results(), targets);
  for (Snapshot::Entry& entry : s.entries) entry.depends = entry.is_target || s.has_path(entry);
  std::vector<bool> out;
  out.reserve(s.outputs.size());
  for (const std::uint32_t output : s.outputs) out.push_back(s.entries[output].depends);
  return out;
}

void mark_carried(const Body& body, std::vector<bool>& is_mapped, std::size_t first, std::size_t count) {
  for (bool changes = true; changes;) {
    changes = false;
    const std::vector<bool> after = reached(body, is_mapped);
    for (std::size_t i = 0; i < count; ++i) {
      if (!after[i] || is_mapped[first + i]) continue;
      is_mapped[first + i] = true;
      changes = true;
    }
  }
}

std::vector<bool> which_mapped(std::span<const Batched> values) {
  std::vector<bool> out;
  out.reserve(values.size());
  for (const Batched& x : values) out.push_back(x.is_mapped);
  return out;
}

std::vector<Batched> flagged(std::span<const LazyTensor> values, const std::vector<bool>& is_mapped,
                             std::size_t first) {
  std::vector<Batched> out;
  out.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out.push_back({values[i], is_mapped[first + i]});
  return out;
}

std::vector<LazyTensor> placed(std::span<const Batched> values, const std::vector<bool>& is_mapped,
                               std::int64_t examples, std::size_t first) {
  std::vector<LazyTensor> out;
  out.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    out.push_back(is_mapped[first + i] ? with_mapped_axis(values[i], examples) : values[i].value);
  return out;
}

std::vector<std::vector<LazyTensor>> placed_lists(std::span<const Batched> listed, std::size_t turns,
                                                  std::int64_t examples, std::vector<bool>& is_mapped) {
  std::vector<std::vector<LazyTensor>> lists;
  for (; !listed.empty(); listed = listed.subspan(turns)) {
    const auto list = listed.first(turns);
    is_mapped.push_back(std::ranges::any_of(list, &Batched::is_mapped));
    lists.push_back(placed(list, std::vector<bool>(turns, is_mapped.back()), examples));
  }
  return lists;
}

LazyTensor turns_in_front(const Batched& x) { return x.is_mapped ? swapaxes(x.value, 0, 1) : x.value; }

Batched examples_in_front(const LazyTensor& x, bool is_mapped) {
  return {is_mapped ? swapaxes(x, 0, 1) : x, is_mapped};
}

LazyTensor chosen_by(const LazyTensor& flags, const LazyTensor& a, const LazyTensor& b) {
  Shape shape = a.shape();
  for (int axis = 1; axis < shape.rank(); ++axis) shape[axis] = 1;
  return where(reshape(flags, shape), a, b);
}

}  // namespace caldera
