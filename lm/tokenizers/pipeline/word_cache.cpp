#include "lm/tokenizers/pipeline/word_cache.h"

#include <functional>

namespace caldera::detail {
namespace {

constexpr std::size_t kFirstSlots = 1 << 10;
constexpr std::size_t kMaxSlots = 1 << 17;

std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

}  // namespace

WordCache::WordCache() : slots_(kFirstSlots) {}

std::uint64_t WordCache::hash_of(std::string_view word) { return std::hash<std::string_view>{}(word); }

std::size_t WordCache::slot_of(std::string_view word, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  const std::uint32_t tag = tag_of(hash);
  for (std::size_t slot = static_cast<std::size_t>(hash) & mask;; slot = (slot + 1) & mask) {
    const Slot& s = slots_[slot];
    if (s.entry == 0) return slot;
    if (s.tag != tag) continue;
    const Entry& entry = entries_[s.entry - 1];
    if (std::string_view(texts_).substr(entry.text, entry.bytes) == word) return slot;
  }
}

std::optional<std::span<const std::int32_t>> WordCache::find(std::string_view word,
                                                             std::uint64_t hash) const {
  const Slot& slot = slots_[slot_of(word, hash)];
  if (slot.entry == 0) return std::nullopt;
  const Entry& entry = entries_[slot.entry - 1];
  return std::span(ids_).subspan(entry.ids, entry.count);
}

void WordCache::grow() {
  if (slots_.size() == kMaxSlots) {
    slots_.assign(kMaxSlots, Slot{});
    entries_.clear();
    texts_.clear();
    ids_.clear();
    return;
  }
  slots_.assign(slots_.size() * 2, Slot{});
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < entries_.size(); ++i) {  // no two of them are equal
    const std::uint64_t hash = entries_[i].hash;
    std::size_t slot = static_cast<std::size_t>(hash) & mask;
    while (slots_[slot].entry != 0) slot = (slot + 1) & mask;
    slots_[slot] = {static_cast<std::uint32_t>(i + 1), tag_of(hash)};
  }
}

void WordCache::insert(std::string_view word, std::uint64_t hash, std::span<const std::int32_t> ids) {
  if (word.empty() || word.size() > kMaxWord || ids.size() > UINT16_MAX) return;
  if (2 * (entries_.size() + 1) > slots_.size()) grow();
  Slot& slot = slots_[slot_of(word, hash)];
  if (slot.entry != 0) return;
  entries_.push_back({hash, static_cast<std::uint32_t>(texts_.size()),
                      static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint16_t>(word.size()),
                      static_cast<std::uint16_t>(ids.size())});
  slot = {static_cast<std::uint32_t>(entries_.size()), tag_of(hash)};
  texts_ += word;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

std::unique_ptr<WordCache> WordCachePool::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return std::make_unique<WordCache>();
  auto cache = std::move(free_.back());
  free_.pop_back();
  return cache;
}

void WordCachePool::give_back(std::unique_ptr<WordCache> cache) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(cache));
}

}  // namespace caldera::detail
