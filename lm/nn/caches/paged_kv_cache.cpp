#include "lm/nn/caches/paged_kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/runtime/runtime.h"
#include "lm/nn/caches/layer_buffers.h"
#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/ranges.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/index/scatter.h"
#include "ops/shape/joining.h"

namespace caldera {

PagedKVCache::PagedKVCache(std::vector<PagedLayers> groups, std::int64_t kv_heads, const CacheForm& form,
                           std::int64_t page_positions, std::int64_t max_positions, Device device)
    : groups_(std::move(groups)),
      page_positions_(page_positions),
      max_positions_(max_positions),
      device_(device),
      form_(form),
      heads_(kv_heads) {
  std::size_t layers = 0;
  for (const PagedLayers& g : groups_) layers += g.layers.size();
  if (layers == 0 || kv_heads < 1 || form.head_dim() < 1 || page_positions < 2 || max_positions < 1)
    throw ValueError(
        fmt::format("PagedKVCache: layers {}, kv_heads {}, head_dim {}, page_positions {}, max_positions {}: "
                    "all must be positive, and a page has two positions at least",
                    layers, kv_heads, form.head_dim(), page_positions, max_positions));
  group_of_.assign(layers, groups_.size());
  keys_.resize(layers);
  values_.resize(layers);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].pages < 2)
      throw ValueError(fmt::format("PagedKVCache: {} pages; two are the least", groups_[g].pages));
    const Shape shape{groups_[g].pages * kv_heads * page_positions, form.width()};
    for (const std::int64_t layer : groups_[g].layers) {
      const auto i = static_cast<std::size_t>(layer);
      if (layer < 0 || i >= layers || group_of_[i] != groups_.size())
        throw ValueError(fmt::format("PagedKVCache: layer {} is not named exactly once", layer));
      group_of_[i] = g;
      keys_[i] = LazyTensor::zeros(shape, form.dtype(), device);
      values_[i] = LazyTensor::zeros(shape, form.dtype(), device);
    }
  }
  // Leaves from the start, so that the first call has the plan of all later ones.
  eval(state());
}

std::int64_t PagedKVCache::bytes() const {
  std::int64_t bytes = 0;
  for (const LazyTensor& buffer : state())
    bytes += buffer.numel() * static_cast<std::int64_t>(size_of(buffer.dtype()));
  return bytes;
}

/// The rows of slots (batch, length), (batch, heads, length): a page has the positions of one head after the
/// other.
std::vector<std::int32_t> PagedKVCache::rows_of_slots(std::span<const std::int32_t> slots,
                                                      std::int64_t length) const {
  const auto page = static_cast<std::int32_t>(page_positions_);
  const auto heads = static_cast<std::int32_t>(heads_);
  std::vector<std::int32_t> rows;
  rows.reserve(slots.size() * static_cast<std::size_t>(heads_));
  for (auto row = slots.begin(); row != slots.end(); row += length)
    for (std::int32_t h = 0; h < heads; ++h)
      for (auto slot = row; slot != row + length; ++slot)
        rows.push_back(*slot < 0 ? kNoSlot : (*slot / page * heads + h) * page + *slot % page);
  return rows;
}

void PagedKVCache::plan(const PagedCall& call) {
  const auto rows = static_cast<std::size_t>(call.batch);
  const auto tokens = static_cast<std::size_t>(call.batch * call.length);
  bool fits = call.batch > 0 && call.length > 0 && call.positions.size() == tokens &&
              call.groups.size() == groups_.size();
  for (const PagedCall::Layers& g : call.groups)
    fits = fits && g.slots.size() == tokens && g.first.size() == rows && !g.pages.empty() &&
           g.pages.size() % rows == 0;
  if (!fits) throw ShapeError("PagedKVCache: the lists of a call do not fit its batch and length");

  if (!keys_before_.empty()) {  // the call before this one failed half way
    keys_ = std::move(keys_before_);
    values_ = std::move(values_before_);
    finish();
  }
  locate(shapes_of(call), data_of(call));
}

PagedKVCache::CallShapes PagedKVCache::shapes_of(const PagedCall& call) {
  CallShapes shapes{call.batch, call.length, call.longest, {}};
  for (const PagedCall::Layers& g : call.groups)
    shapes.pages.push_back(static_cast<std::int64_t>(g.pages.size()) / call.batch);
  return shapes;
}

/// All lists of a call in one transfer.
LazyTensor PagedKVCache::data_of(const PagedCall& call) const {
  std::vector<std::int32_t> all = call.positions;
  for (auto row = call.positions.begin(); row != call.positions.end(); row += call.length)
    all.push_back(*std::max_element(row, row + call.length));
  for (const PagedCall::Layers& g : call.groups) {
    const std::vector<std::int32_t> slots = rows_of_slots(g.slots, call.length);
    for (const auto* list : {&slots, &g.first, &g.pages}) all.insert(all.end(), list->begin(), list->end());
  }
  return LazyTensor::from_vector(all, Shape{std::ssize(all)}, device_);
}

void PagedKVCache::locate(const CallShapes& call, const LazyTensor& data) {
  // Where a part of the data begins is an argument of the plan.
  std::int64_t at = 0;
  const auto take_part = [&](const Shape& shape) {
    const LazyTensor part = slice(data, 0, at, at + shape.numel());
    at += shape.numel();
    return reshape(part, shape);
  };
  batch_ = call.batch;
  length_ = call.length;
  longest_ = call.longest;
  positions_ = take_part(Shape{batch_, length_});
  last_ = take_part(Shape{batch_, 1});
  located_.clear();
  for (const std::int64_t pages : call.pages) {
    const std::int64_t keys = pages * page_positions_;
    Located located;
    located.slots = take_part(Shape{batch_ * heads_ * length_});
    const LazyTensor first = take_part(Shape{batch_, 1, 1, 1});
    const LazyTensor numbers = take_part(Shape{batch_, 1, pages, 1});
    const auto within = static_cast<std::int32_t>(page_positions_);
    const LazyTensor heads = reshape(arange(heads_, DType::i32, device_), Shape{heads_, 1, 1}) * within;
    const LazyTensor of_pages = reshape(numbers * (within * static_cast<std::int32_t>(heads_)) + heads +
                                            arange(page_positions_, DType::i32, device_),
                                        Shape{batch_, heads_, keys});
    located.positions = first + arange(keys, DType::i32, device_);
    // Behind a sequence's own positions is what another one left there: its weight is 0, but 0 * NaN is NaN.
    const LazyTensor own =
        less_equal(reshape(located.positions, Shape{batch_, 1, keys}), reshape(last_, Shape{batch_, 1, 1}));
    located.rows = where(own, of_pages, 0);
    located_.push_back(std::move(located));
  }
}

PagedKVCache PagedKVCache::traced(const CallShapes& call, const LazyTensor& data,
                                  std::span<const LazyTensor> buffers) const {
  PagedKVCache cache(form_, device_);
  cache.groups_ = groups_;
  cache.group_of_ = group_of_;
  cache.page_positions_ = page_positions_;
  cache.max_positions_ = max_positions_;
  cache.heads_ = heads_;
  cache.set_buffers(buffers);
  cache.locate(call, data);
  return cache;
}

std::vector<LazyTensor> PagedKVCache::give_buffers() { return give_layers(keys_, values_); }

void PagedKVCache::set_buffers(std::span<const LazyTensor> buffers) { set_layers(buffers, keys_, values_); }

void PagedKVCache::begin(std::int64_t batch, std::int64_t length) {
  if (batch != batch_ || length != length_)
    throw ShapeError(
        fmt::format("PagedKVCache: ids ({}, {}), but ({}, {}) are planned", batch, length, batch_, length_));
  keys_before_ = keys_;
  values_before_ = values_;
}

void PagedKVCache::finish() {
  keys_before_.clear();
  values_before_.clear();
}

TokenPositions PagedKVCache::positions() const {
  return {.length = length_, .first = 0, .rows = positions_, .reach = max_positions_, .longest = longest_};
}

AttendedKeys PagedKVCache::attended(std::int64_t layer, const LazyTensor& k, const LazyTensor& v,
                                    const AttentionForm& form) {
  const auto i = static_cast<std::size_t>(layer);
  const Located& at = located_.at(group_of_.at(i));
  const Shape expected{batch_, heads_, length_, form_.head_dim()};
  if (k.shape() != expected || v.shape() != expected)
    throw ShapeError(fmt::format("PagedKVCache: k {} and v {} do not fit, the call in progress writes {}",
                                 k.shape().to_string(), v.shape().to_string(), expected.to_string()));
  const auto written = [&](const LazyTensor& buffer, const LazyTensor& update) {
    return scatter(buffer, at.slots,
                   reshape(form_.kept(update), Shape{batch_ * heads_ * length_, form_.width()}));
  };
  LazyTensor keys = written(keys_[i], k);
  values_[i] = written(values_[i], v);
  keys_[i] = std::move(keys);

  // The zeros of row 0 stand for sinks, before the others.
  LazyTensor rows = at.rows, key_positions = at.positions;
  if (form.sinks) {
    const auto behind = [&](const LazyTensor& x) {
      Shape one = x.shape();
      one[x.rank() - 1] = 1;
      return concatenate({zeros(one, DType::i32, device_), x}, -1);
    };
    rows = behind(rows);
    key_positions = behind(key_positions);
  }
  const LazyTensor query_positions = reshape(positions_, Shape{batch_, 1, length_, 1});
  return {.keys = form_.rows(keys_[i], rows),
          .values = form_.rows(values_[i], rows),
          .mask = visible_by_position(query_positions, key_positions, form),
          .offset = 0,
          .sink_key = form.sinks};
}

std::size_t PagedKVCache::row_bytes() const {
  return 2 * keys_.size() * static_cast<std::size_t>(heads_ * form_.bytes());
}

/// The rows of the slots, of each group.
std::vector<LazyTensor> PagedKVCache::row_numbers(const GroupSlots& slots) const {
  std::vector<LazyTensor> numbers;
  for (const std::vector<std::int32_t>& of_group : slots) {
    const std::vector<std::int32_t> rows = rows_of_slots(of_group, std::ssize(of_group));
    numbers.push_back(
        LazyTensor::from_span(std::span<const std::int32_t>(rows), Shape{std::ssize(rows)}, device_));
  }
  return numbers;
}

std::vector<std::byte> PagedKVCache::rows(const GroupSlots& slots) const {
  const std::vector<LazyTensor> at = row_numbers(slots);
  std::vector<LazyTensor> taken;
  for (std::size_t i = 0; i < keys_.size(); ++i)
    for (const LazyTensor* buffer : {&keys_[i], &values_[i]})
      taken.push_back(take(*buffer, at[group_of_[i]]));
  eval(taken);
  std::vector<std::byte> bytes(row_bytes() * slots.front().size());
  const std::size_t part = bytes.size() / taken.size();
  for (std::size_t i = 0; i < taken.size(); ++i) taken[i].copy_to_host(bytes.data() + i * part);
  return bytes;
}

void PagedKVCache::set_rows(const GroupSlots& slots, std::span<const std::byte> bytes) {
  if (bytes.size() != row_bytes() * slots.front().size())
    throw ShapeError("PagedKVCache: rows do not fit the cache");
  const std::vector<LazyTensor> at = row_numbers(slots);
  const std::size_t part = bytes.size() / (2 * keys_.size());
  for (std::size_t i = 0; i < keys_.size(); ++i)
    for (std::vector<LazyTensor>* buffers : {&keys_, &values_}) {
      LazyTensor& buffer = (*buffers)[i];
      const LazyTensor& numbers = at[group_of_[i]];
      const Shape shape{numbers.shape(0), form_.width()};
      buffer = scatter(buffer, numbers,
                       LazyTensor::from_bytes(bytes.data(), part, buffer.dtype(), shape, device_));
      bytes = bytes.subspan(part);
    }
  eval(state());
}

std::vector<LazyTensor> PagedKVCache::state() const { return layers_of(keys_, values_); }

}  // namespace caldera
