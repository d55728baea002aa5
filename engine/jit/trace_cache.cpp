#include "engine/jit/trace_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace caldera {
namespace {

bool has_numbers_of(const Trace& trace, std::span<const LazyTensor> arguments) {
  return std::all_of(trace.fixed.begin(), trace.fixed.end(), [&](const Trace::FixedNumber& number) {
    return arguments[number.argument].node().attributes()[0] == number.bits;
  });
}

}  // namespace

Hash128 TraceCache::key_of(std::span<const LazyTensor> arguments, const Hash128& signature) const {
  Hash128 key = signature;
  const auto found = looked_at_.find(signature);
  if (found == looked_at_.end()) return key;
  for (const std::uint32_t i : found->second)
    key.mix(static_cast<std::uint64_t>(arguments[i].node().attributes()[0]));
  return key;
}

std::shared_ptr<const Trace> TraceCache::find(std::span<const LazyTensor> arguments) {
  std::shared_ptr<const Trace> latest;
  {
    const std::scoped_lock lock(mutex_);
    if (entries_.empty()) return nullptr;
    latest = entries_.front().trace;
  }
  if (latest->signature.matches(arguments) && has_numbers_of(*latest, arguments)) return latest;
  const Hash128 signature = Signature::hash(arguments);
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(key_of(arguments, signature));
  if (found == index_.end() || !has_numbers_of(*found->second->trace, arguments)) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->trace;
}

void TraceCache::insert(std::span<const LazyTensor> arguments, std::shared_ptr<const Trace> trace) {
  const Hash128 signature = Signature::hash(arguments);
  std::list<Entry> dropped;  // destroyed outside of the mutex
  const std::scoped_lock lock(mutex_);
  if (!trace->fixed.empty()) {
    // Signatures come and go, and few have any: to forget them all costs traces, and no more.
    if (looked_at_.size() > 2 * limit_) looked_at_.clear();
    std::vector<std::uint32_t>& numbers = looked_at_[signature];
    for (const Trace::FixedNumber& number : trace->fixed) numbers.push_back(number.argument);
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  }
  const Hash128 key = key_of(arguments, signature);
  const auto known = index_.find(key);  // by another thread, or of an earlier opening
  if (known != index_.end()) {
    dropped.splice(dropped.end(), entries_, known->second);
    index_.erase(known);
  }
  entries_.push_front({key, std::move(trace)});
  index_.emplace(key, entries_.begin());
  if (entries_.size() <= limit_) return;
  index_.erase(entries_.back().key);
  dropped.splice(dropped.end(), entries_, std::prev(entries_.end()));
}

void TraceCache::drop(const std::shared_ptr<const Trace>& trace) {
  std::list<Entry> dropped;
  const std::scoped_lock lock(mutex_);
  const auto entry =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.trace == trace; });
  if (entry == entries_.end()) return;
  index_.erase(entry->key);
  dropped.splice(dropped.end(), entries_, entry);
}

}  // namespace caldera
