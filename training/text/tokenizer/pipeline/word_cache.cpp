#include "training/text/tokenizer/pipeline/word_cache.h"

#include <functional>

namespace caldera::detail {
namespace {

constexpr std::size_t kFirstSlots = 1 << 10;
constexpr std::size_t kMaxSlots = 1 << 17;

}  // namespace

WordCache::WordCache() : slots_(kFirstSlots) {}

std::uint64_t WordCache::hash_of(std::string_view word) { return std::hash<std::string_view>{}(word); }

std::size_t WordCache::slot_of(std::string_view word, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = static_cast<std::size_t>(hash) & mask;
  for (;; slot = (slot + 1) & mask) {
    const Slot& s = slots_[slot];
    if (s.bytes == 0) return slot;
    if (s.hash == hash && std::string_view(texts_).substr(s.text, s.bytes) == word) return slot;
  }
}

std::optional<std::span<const std::int32_t>> WordCache::find(std::string_view word,
                                                             std::uint64_t hash) const {
  const Slot& slot = slots_[slot_of(word, hash)];
  if (slot.bytes == 0) return std::nullopt;
  return std::span(ids_).subspan(slot.ids, slot.count);
}

void WordCache::insert(std::string_view word, std::uint64_t hash, std::span<const std::int32_t> ids) {
  if (word.empty() || word.size() > kMaxWord || ids.size() > UINT16_MAX) return;
  if (2 * (used_ + 1) > slots_.size()) {
    if (slots_.size() == kMaxSlots) {
      slots_.assign(kMaxSlots, Slot{});
      used_ = 0;
      texts_.clear();
      ids_.clear();
    } else {
      std::vector<Slot> old(slots_.size() * 2);
      old.swap(slots_);
      for (const Slot& slot : old) {
        if (slot.bytes == 0) continue;
        slots_[slot_of(std::string_view(texts_).substr(slot.text, slot.bytes), slot.hash)] = slot;
      }
    }
  }
  Slot& slot = slots_[slot_of(word, hash)];
  if (slot.bytes != 0) return;
  ++used_;
  slot = {hash, static_cast<std::uint32_t>(texts_.size()), static_cast<std::uint32_t>(ids_.size()),
          static_cast<std::uint16_t>(word.size()), static_cast<std::uint16_t>(ids.size())};
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
