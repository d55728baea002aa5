#include "lm/generate/cache/paged_forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "lm/generate/token_step.h"
#include "lm/generate/traced_step.h"
#include "lm/nn/precision.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

// A call of another length needs a plan of its own: these are few.
constexpr std::int64_t kPagedPiece = 64;
constexpr std::int64_t kSmallPagedPiece = 8;
constexpr std::int64_t kLeastPages = 4;
// Traces that are kept: of a few batch sizes, each with the page counts that texts grow through.
constexpr std::size_t kMostSteps = 128;

std::int64_t power_of_two(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

std::int64_t pages_for(std::int64_t positions) {
  return (positions + PagedForward::kPagePositions - 1) / PagedForward::kPagePositions;
}

/// Of 4, 6, 8, 12, 16, 24, ...: what is read of pages in vain is a third at most.
std::int64_t padded_pages(std::int64_t pages) {
  const std::int64_t whole = power_of_two(std::max(pages, kLeastPages));
  return whole > kLeastPages && pages <= whole / 4 * 3 ? whole / 4 * 3 : whole;
}

/// Pages of which a text of a layer with a window may need one at a time.
std::int64_t window_pages(std::int64_t window, std::int64_t chunk) { return pages_for(window + chunk) + 2; }

std::vector<PagedLayers> layer_groups(const CausalLM& model, const PagingOptions& options) {
  std::vector<PagedLayers> groups;
  const std::vector<std::optional<std::int64_t>> windows = model.attention_windows();
  for (std::size_t layer = 0; layer < windows.size(); ++layer) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const PagedLayers& g) { return g.window == windows[layer]; });
    if (group == groups.end()) group = groups.insert(groups.end(), {windows[layer], {}, 0});
    group->layers.push_back(static_cast<std::int64_t>(layer));
  }
  for (PagedLayers& g : groups) {
    g.pages = pages_for(options.positions) + 1;  // and page 0, which is nobody's
    // As many again are kept for texts to come.
    if (g.window) g.pages = std::min(g.pages, 2 * options.texts * window_pages(*g.window, options.chunk) + 1);
  }
  return groups;
}

std::vector<PageStore::Group> store_groups(const PagedKVCache& cache) {
  std::vector<PageStore::Group> groups;
  for (const PagedLayers& g : cache.groups()) groups.push_back({g.pages, g.window});
  return groups;
}

std::int64_t longest_row(std::span<const PagedRow> rows) {
  std::int64_t longest = 1;
  for (const PagedRow& row : rows) longest = std::max(longest, std::ssize(row.ids));
  return longest;
}

std::vector<std::int32_t> ids_of(std::span<const PagedRow> rows, std::int64_t batch, std::int64_t length) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(batch * length), 0);
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::copy(rows[r].ids.begin(), rows[r].ids.end(), ids.begin() + static_cast<std::ptrdiff_t>(r) * length);
  return ids;
}

bool has_no_adapter(const PagedRow& row) { return row.adapter == 0; }

/// (batch, length, hidden) to (batch * length, hidden).
LazyTensor as_rows(const LazyTensor& hidden) {
  return reshape(hidden, Shape{hidden.shape(0) * hidden.shape(1), hidden.shape(2)});
}

/// The length that all tokens are rotated for. Those that are the last of their text go with every other one.
std::int64_t common_text_length(std::span<const PagedRow> rows) {
  std::int64_t common = 0;
  for (const PagedRow& row : rows) {
    if (row.position + 1 >= row.text_length) continue;
    if (common != 0 && common != row.text_length)
      throw ValueError(fmt::format("PagedForward: prompts of {} and {} tokens are not fed in one call",
                                   common, row.text_length));
    common = row.text_length;
  }
  return common;
}

}  // namespace

PagedForward::PagedForward(CausalLM& model, const PagingOptions& options)
    : model_(model),
      chunk_(options.chunk),
      cache_(layer_groups(model, options), model.config().num_key_value_heads, model.cache_form(),
             kPagePositions, options.context, model.device()),
      store_(store_groups(cache_), kPagePositions, options.reuse) {}

void PagedForward::forget() {
  store_.forget();
  steps_.clear();
}

std::int64_t PagedForward::bytes_per_position(const CausalLM& model) {
  const ModelConfig& c = model.config();
  return 2 * c.num_hidden_layers * c.num_key_value_heads * model.cache_form().bytes();
}

std::int64_t PagedForward::padded_length(std::int64_t length) const {
  if (length == 1) return 1;
  if (length <= kSmallPagedPiece) return kSmallPagedPiece;
  return length <= kPagedPiece ? kPagedPiece : chunk_;
}

std::int64_t PagedForward::piece_of(std::int64_t tokens) const {
  if (tokens >= chunk_) return chunk_;
  return tokens > 2 * kSmallPagedPiece ? std::min(tokens, kPagedPiece) : std::min(tokens, kSmallPagedPiece);
}

PagedCall PagedForward::call_for(std::span<const PagedRow> rows, std::int64_t batch,
                                 std::int64_t length) const {
  const auto tokens = static_cast<std::size_t>(batch * length);
  PagedCall call;
  call.batch = batch;
  call.length = length;
  call.longest = common_text_length(rows);
  call.positions.assign(tokens, 0);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t t = 0; t < rows[r].ids.size(); ++t)
      call.positions[r * static_cast<std::size_t>(length) + t] =
          static_cast<std::int32_t>(rows[r].position + static_cast<std::int64_t>(t));
  for (std::size_t g = 0; g < store_.groups().size(); ++g) {
    const auto& window = store_.groups()[g].window;
    const auto first_block = [&](const PagedRow& row) {
      return window ? std::max<std::int64_t>(row.position - *window + 1, 0) / kPagePositions : 0;
    };
    const auto end_block = [](const PagedRow& row) {
      return pages_for(row.position + static_cast<std::int64_t>(row.ids.size()));
    };
    std::int64_t pages = 1;
    for (const PagedRow& row : rows) pages = std::max(pages, end_block(row) - first_block(row));
    pages = padded_pages(pages);
    if (window) pages = std::min(pages, std::max(window_pages(*window, length), kLeastPages));
    PagedCall::Layers to;
    to.slots.assign(tokens, PagedKVCache::kNoSlot);
    to.first.assign(static_cast<std::size_t>(batch), 0);
    to.pages.assign(static_cast<std::size_t>(batch * pages), 0);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const PagedRow& row = rows[r];
      const std::int64_t first = first_block(row);
      to.first[r] = static_cast<std::int32_t>(first * kPagePositions);
      for (std::int64_t b = first; b < end_block(row); ++b)
        to.pages[r * static_cast<std::size_t>(pages) + static_cast<std::size_t>(b - first)] =
            static_cast<std::int32_t>(store_.page(*row.text, g, b));
      for (std::size_t t = 0; t < row.ids.size(); ++t) {
        const std::int64_t position = row.position + static_cast<std::int64_t>(t);
        to.slots[r * static_cast<std::size_t>(length) + t] =
            static_cast<std::int32_t>(store_.page(*row.text, g, position / kPagePositions) * kPagePositions +
                                      position % kPagePositions);
      }
    }
    call.groups.push_back(std::move(to));
  }
  return call;
}

bool PagedForward::has_windows() const {
  return std::ranges::any_of(store_.groups(), [](const PageStore::Group& g) { return g.window.has_value(); });
}

bool PagedForward::has_rows(const PageStore::Text& text, std::int64_t begin, std::int64_t count) const {
  for (std::size_t g = 0; g < store_.groups().size(); ++g)
    for (std::int64_t block = begin / kPagePositions; block * kPagePositions < begin + count; ++block)
      if (block >= text.blocks() || store_.page(text, g, block) == 0) return false;
  return true;
}

PagedKVCache::GroupSlots PagedForward::slots_of(const PageStore::Text& text, std::int64_t begin,
                                                std::int64_t count) const {
  PagedKVCache::GroupSlots slots(store_.groups().size());
  for (std::size_t g = 0; g < slots.size(); ++g)
    for (std::int64_t at = begin; at < begin + count; ++at) {
      const std::int64_t page = store_.page(text, g, at / kPagePositions);
      slots[g].push_back(page == 0 ? PagedKVCache::kNoSlot
                                   : static_cast<std::int32_t>(page * kPagePositions + at % kPagePositions));
    }
  return slots;
}

std::vector<std::byte> PagedForward::rows(const PageStore::Text& text, std::int64_t begin,
                                          std::int64_t count) const {
  return cache_.rows(slots_of(text, begin, count));
}

void PagedForward::set_rows(const PageStore::Text& text, std::int64_t begin, std::int64_t count,
                            std::span<const std::byte> bytes) {
  cache_.set_rows(slots_of(text, begin, count), bytes);
}

void PagedForward::select_adapters(std::span<const PagedRow> rows, std::int64_t batch) {
  if (bank_ == nullptr) return;
  std::vector<std::int32_t> slots(static_cast<std::size_t>(batch), 0);
  for (std::size_t r = 0; r < rows.size(); ++r) slots[r] = rows[r].adapter;
  bank_->select(slots);
}

LazyTensor PagedForward::hidden_states(std::span<const PagedRow> rows, std::int64_t batch,
                                       std::int64_t length) {
  select_adapters(rows, batch);
  cache_.plan(call_for(rows, batch, length));
  return model_.hidden_states(model_.make_ids(ids_of(rows, batch, length), batch), &cache_);
}

/// Feeds one token of each row.
LazyTensor PagedForward::feed_tokens(std::span<const PagedRow> rows, std::int64_t batch, bool choose) {
  select_adapters(rows, batch);
  const PagedCall call = call_for(rows, batch, 1);
  const PagedKVCache::CallShapes shapes = PagedKVCache::shapes_of(call);
  if (steps_.size() >= kMostSteps) steps_.clear();
  VectorFunction& step = steps_[{shapes, choose}];
  if (!step) {
    const auto traced = [this, shapes, choose](std::span<const LazyTensor> arguments) {
      PagedKVCache cache = cache_.traced(shapes, arguments[1], arguments.subspan(2));
      const LazyTensor hidden = model_.hidden_states(arguments[0], &cache);
      std::vector<LazyTensor> results = constants(cache.give_buffers());
      results.push_back(stop_gradient(logits_or_choices(model_, as_rows(hidden), choose)));
      return results;
    };
    step = traced_step(traced, 2, cache_.state().size());
  }
  return run_traced_step(step, {model_.make_ids(ids_of(rows, batch, 1), batch), cache_.data_of(call)},
                         cache_);
}

LazyTensor PagedForward::feed(std::span<const PagedRow> rows, bool choose) {
  const std::int64_t batch = power_of_two(static_cast<std::int64_t>(rows.size()));
  const std::int64_t length = padded_length(longest_row(rows));
  const bool may_be_traced = length == 1 && std::ranges::all_of(rows, has_no_adapter);
  if (is_traced_ && may_be_traced) {
    try {
      return feed_tokens(rows, batch, choose);
    } catch (const ValueError&) {  // the model evaluates inside, or has an error of its own, which follows
    }
  }
  LazyTensor hidden = hidden_states(rows, batch, length);
  if (may_be_traced) is_traced_ = false;
  hidden = as_rows(hidden);
  // The head is the widest matrix: one position of each row goes through it.
  if (length > 1) {
    std::vector<std::int32_t> last(static_cast<std::size_t>(batch), 0);
    for (std::size_t r = 0; r < rows.size(); ++r)
      last[r] =
          static_cast<std::int32_t>(static_cast<std::int64_t>(r) * length + std::ssize(rows[r].ids) - 1);
    hidden = take(hidden,
                  LazyTensor::from_span(std::span<const std::int32_t>(last), Shape{batch}, model_.device()));
  }
  return logits_or_choices(model_, hidden, choose);
}

LazyTensor PagedForward::feed_drafts(std::span<const PagedRow> rows) {
  const std::int64_t batch = power_of_two(static_cast<std::int64_t>(rows.size()));
  // One token, and a number of drafted ones of which there are few.
  const std::int64_t length = 1 + power_of_two(std::max<std::int64_t>(longest_row(rows) - 1, 1));
  return in_dtype(model_.logits(hidden_states(rows, batch, length)), DType::f32);
}

LazyTensor PagedForward::feed_scored(const PagedRow& row) {
  const LazyTensor hidden = hidden_states({&row, 1}, 1, padded_length(std::ssize(row.ids)));
  const LazyTensor logits = in_dtype(model_.logits(hidden), DType::f32);
  return reshape(logits, Shape{logits.shape(1), logits.shape(2)});
}

}  // namespace caldera
