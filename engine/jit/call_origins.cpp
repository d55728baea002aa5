#include "engine/jit/call_origins.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace caldera {
namespace {

using Tags = std::vector<OriginTag*>;  // in order of their addresses

void sort_unique(Tags& tags) {
  if (!std::is_sorted(tags.begin(), tags.end())) std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
}

OriginsPtr make_origins(const Tags& tags, OriginsPtr more) {
  std::vector<OriginTagPtr> own;
  own.reserve(tags.size());
  for (OriginTag* tag : tags) own.push_back(OriginTagPtr::share(tag));
  return OriginsPtr(new Origins(std::move(own), std::move(more)));
}

/// Of lists, the one that is shared: a long one, if there is any. The others are copied.
const Origins* take_longest(std::vector<const Origins*>& lists) {
  if (lists.empty()) return nullptr;
  const auto longest = std::max_element(
      lists.begin(), lists.end(), [](const Origins* a, const Origins* b) { return a->size() < b->size(); });
  const Origins* taken = *longest;
  lists.erase(longest);
  return taken;
}

/// `tags` and all of `shared`. What of `shared` is not much longer than what there is already is copied, and
/// with it goes what is dead: a chain of lists doubles in length from one to the next.
OriginsPtr merged(Tags& tags, const Origins* shared) {
  constexpr std::size_t kShort = 64;
  while (shared != nullptr && shared->own().size() <= std::max(2 * tags.size(), kShort)) {
    for (const OriginTagPtr& tag : shared->own()) {
      if (tag->is_alive()) tags.push_back(tag.get());
    }
    shared = shared->more().get();
  }
  sort_unique(tags);
  if (shared == nullptr) return tags.empty() ? OriginsPtr() : make_origins(tags, {});
  std::erase_if(tags, [&](const OriginTag* tag) { return shared->contains(*tag); });
  const auto more = OriginsPtr::share(const_cast<Origins*>(shared));
  return tags.empty() ? more : make_origins(tags, more);
}

}  // namespace

OriginGroups trace_origins(std::span<Node* const> results, std::span<const Node* const> stand_ins) {
  const std::vector<OriginsPtr> origins = origins_of(results);
  std::unordered_map<const OriginTag*, std::uint32_t> arguments;
  for (std::size_t i = 0; i < stand_ins.size(); ++i) {
    if (stand_ins[i]->origin_tag())
      arguments.emplace(stand_ins[i]->origin_tag().get(), static_cast<std::uint32_t>(i));
  }
  OriginGroups all;
  std::unordered_map<const Origins*, std::int32_t> known;
  for (const OriginsPtr& of_result : origins) {
    if (!of_result) {
      all.group_of.push_back(-1);
      continue;
    }
    const auto [at, fresh] = known.try_emplace(of_result.get(), static_cast<std::int32_t>(all.groups.size()));
    all.group_of.push_back(at->second);
    if (!fresh) continue;
    ResultOrigins& group = all.groups.emplace_back();
    Tags tags, captured;
    of_result->append_alive(tags);
    for (OriginTag* tag : tags) {
      const auto found = arguments.find(tag);
      if (found == arguments.end())
        captured.push_back(tag);
      else
        group.arguments.push_back(found->second);
    }
    std::sort(group.arguments.begin(), group.arguments.end());
    sort_unique(captured);
    if (!captured.empty()) group.captured = make_origins(captured, {});
  }
  return all;
}

const Origins* CallOrigins::earlier_of(std::size_t argument) {
  const Node& node = *arguments_[argument];
  if (node.is_cut()) return node.origins().get();
  if (node.inputs().empty()) return nullptr;
  if (histories_.empty()) {
    std::vector<Node*> kept;
    for (Node* x : arguments_) {
      if (carries_gradients(*x) && !x->is_cut() && !x->inputs().empty()) kept.push_back(x);
    }
    std::vector<OriginsPtr> found = origins_of(kept);
    histories_.resize(arguments_.size());
    auto next = found.begin();
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const Node& x = *arguments_[i];
      if (carries_gradients(x) && !x.is_cut() && !x.inputs().empty()) histories_[i] = std::move(*next++);
    }
  }
  return histories_[argument].get();
}

OriginsPtr CallOrigins::of(const ResultOrigins& result) {
  Tags& tags = tags_;
  std::vector<const Origins*>& earlier = earlier_;
  tags.clear();
  earlier.clear();
  if (result.captured) earlier.push_back(result.captured.get());
  for (const std::uint32_t i : result.arguments) {
    Node& node = *arguments_[i];
    if (!carries_gradients(node)) continue;
    if (are_gone_.empty() || !are_gone_[i]) tags.push_back(node.make_origin_tag().get());
    const Origins* known = earlier_of(i);
    if (known != nullptr && (earlier.empty() || earlier.back() != known)) earlier.push_back(known);
  }
  std::sort(earlier.begin(), earlier.end());
  earlier.erase(std::unique(earlier.begin(), earlier.end()), earlier.end());
  const Origins* shared = take_longest(earlier);
  for (const Origins* list : earlier) list->append_alive(tags);
  return merged(tags, shared);
}

}  // namespace caldera
