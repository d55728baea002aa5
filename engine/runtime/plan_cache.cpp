#include "engine/runtime/plan_cache.h"

#include <exception>
#include <iterator>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/runtime/settings.h"

namespace caldera {
namespace {

template <class T>
std::size_t bytes_of(const std::vector<T>& list) {
  return list.capacity() * sizeof(T);
}

std::size_t bytes_of(const Kernel& kernel) {
  return sizeof(Kernel) + kernel.name.capacity() + bytes_of(kernel.inputs) + bytes_of(kernel.scalars) +
         bytes_of(kernel.code) + bytes_of(kernel.outputs);
}

}  // namespace

Hash128 plan_key(const Hash128& structure, const DeviceTraits& traits, std::uint64_t opening) {
  Hash128 key = structure;
  key.mix(settings().fusion ? 1 : 0);
  key.mix(static_cast<std::uint64_t>(settings().arena_segment));
  traits.mix_into(key);
  key.mix(opening);
  return key;
}

std::size_t cached_bytes(const Executable& executable) {
  const Plan& plan = executable.plan();
  std::size_t bytes = sizeof(Plan) + bytes_of(plan.buffers) + bytes_of(plan.scalars) + bytes_of(plan.steps) +
                      bytes_of(plan.positions) + bytes_of(plan.donations) + bytes_of(plan.stored_values) +
                      bytes_of(plan.optional_outputs) + executable.bytes();
  std::unordered_set<const Kernel*> kernels;
  for (const Step& step : plan.steps) {
    bytes += bytes_of(step.operands) + bytes_of(step.scalars) + step.heap_bytes() + bytes_of(step.nodes) +
             step.label.capacity();
    for (const StepKernel& used : step.kernels()) {
      if (kernels.insert(used.kernel).second) bytes += bytes_of(*used.kernel);
    }
  }
  return bytes;
}

std::shared_ptr<Executable> PlanCache::find(const Hash128& key, Lookup lookup) {
  const std::scoped_lock lock(mutex_);
  if (lookup == Lookup::further && hits_ > 0) --hits_;
  const auto found = index_.find(key);
  if (found == index_.end()) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  if (found->second != entries_.begin()) entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->executable;
}

void PlanCache::insert(const Hash128& key, std::shared_ptr<Executable> executable) {
  const std::size_t bytes = cached_bytes(*executable);
  std::list<Entry> dropped;
  const std::scoped_lock lock(mutex_);
  if (index_.contains(key)) return;  // another thread was first
  entries_.push_front({key, std::move(executable), bytes});
  index_.emplace(key, entries_.begin());
  bytes_ += bytes;
  shrink(dropped);
}

std::shared_ptr<Executable> PlanCache::make_once(const Hash128& key,
                                                 const std::function<std::shared_ptr<Executable>()>& make) {
  std::shared_ptr<Making> mine;
  std::shared_ptr<Making> theirs;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = index_.find(key);
    if (found != index_.end()) return found->second->executable;  // another thread was first
    auto [at, fresh] = making_.try_emplace(key);
    if (fresh) at->second = mine = std::make_shared<Making>();
    theirs = at->second;
  }
  if (mine == nullptr) {
    theirs->done.wait();
    return theirs->made;
  }
  std::exception_ptr error;
  try {
    mine->made = make();
    insert(key, mine->made);
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::scoped_lock lock(mutex_);
    making_.erase(key);
  }
  mine->done.set(error);
  mine->done.wait();  // rethrows
  return mine->made;
}

void PlanCache::shrink(std::list<Entry>& dropped) {
  while (bytes_ > limit_ && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes;
    index_.erase(entries_.back().key);
    dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
    ++evictions_;
  }
}

void PlanCache::clear() {
  std::list<Entry> dropped;
  const std::scoped_lock lock(mutex_);
  index_.clear();
  dropped.swap(entries_);
  bytes_ = 0;
}

void PlanCache::drop(Device device) {
  std::list<Entry> dropped;
  const std::scoped_lock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->executable->plan().device == device) {
      bytes_ -= entry->bytes;
      index_.erase(entry->key);
      dropped.splice(dropped.begin(), entries_, entry);
    }
    entry = next;
  }
}

void PlanCache::set_limit(std::size_t bytes) {
  std::list<Entry> dropped;
  const std::scoped_lock lock(mutex_);
  limit_ = bytes;
  shrink(dropped);
}

void PlanCache::drop_unused(Device device) {
  std::list<Entry> dropped;
  const std::scoped_lock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->executable->plan().device == device && entry->executable.use_count() == 1) {
      bytes_ -= entry->bytes;
      index_.erase(entry->key);
      dropped.splice(dropped.begin(), entries_, entry);
      ++evictions_;
    }
    entry = next;
  }
}

CacheStats PlanCache::stats() const {
  const std::scoped_lock lock(mutex_);
  return {.hits = hits_,
          .misses = misses_,
          .evictions = evictions_,
          .entries = entries_.size(),
          .bytes = bytes_,
          .limit = limit_};
}

PlanCache& plan_cache() {
  static auto* cache = new PlanCache;  // executables must not die after their device's libraries
  return *cache;
}

}  // namespace caldera
