#include "engine/graph/origins_walk.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace caldera {
namespace {

using Tags = std::vector<OriginTag*>;  // in order of their addresses

bool may_be_target(const Node& node) { return node.is_held() && carries_gradients(node) && !node.is_call(); }

void sort_unique(Tags& tags) {
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
}

/// Sets of tags by number, each once; 0 is the empty set.
class TagSets {
 public:
  /// Beyond so many members of all sets, nobody is told apart any more.
  static constexpr std::size_t kMost = std::size_t{1} << 20;

  std::uint32_t number_of(Tags tags) {
    const auto [at, fresh] = numbers_.try_emplace(std::move(tags), static_cast<std::uint32_t>(sets_.size()));
    if (fresh) {
      sets_.push_back(&at->first);
      members_ += at->first.size();
    }
    return at->second;
  }
  std::uint32_t both(std::uint32_t a, std::uint32_t b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    const auto [at, fresh] = unions_.try_emplace(std::minmax(a, b), 0);
    if (fresh) {
      Tags merged;
      std::set_union(sets_[a]->begin(), sets_[a]->end(), sets_[b]->begin(), sets_[b]->end(),
                     std::back_inserter(merged));
      at->second = number_of(std::move(merged));
    }
    return at->second;
  }
  const Tags& operator[](std::uint32_t number) const { return *sets_[number]; }
  bool is_full() const { return members_ > kMost; }

 private:
  std::map<Tags, std::uint32_t> numbers_{{Tags{}, 0}};
  std::vector<const Tags*> sets_{&numbers_.begin()->first};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> unions_;
  std::size_t members_ = 0;
};

/// Nodes on the ways of gradients of some values, inputs first.
std::vector<Node*> ways_of(std::span<Node* const> values) {
  return topological_order(values,
                           [](const Node& node) { return node.op().zero_gradient || node.is_scalar_leaf(); });
}

/// The Origins of the cut values among `order`, each once.
std::vector<OriginsPtr> earlier_origins(const std::vector<Node*>& order) {
  std::vector<OriginsPtr> found;
  for (const Node* node : order) {
    if (!node->is_cut() || !node->origins()) continue;
    const OriginsPtr& origins = node->origins();
    const bool is_known =
        std::any_of(found.rbegin(), found.rend(), [&](const auto& f) { return f == origins; });
    if (!is_known) found.push_back(origins);
  }
  return found;
}

Tags alive(const Origins& origins) {
  Tags tags;
  origins.append_alive(tags);
  sort_unique(tags);
  return tags;
}

/// Origins of these tags: one of `earlier`, if it has the same.
OriginsPtr origins_with(const Tags& tags, std::span<const OriginsPtr> earlier) {
  if (tags.empty()) return {};
  for (const OriginsPtr& known : earlier) {
    if (known->size() == tags.size() &&
        std::all_of(tags.begin(), tags.end(), [&](const OriginTag* tag) { return known->contains(*tag); }))
      return known;
  }
  std::vector<OriginTagPtr> own;
  own.reserve(tags.size());
  for (OriginTag* tag : tags) own.push_back(OriginTagPtr::share(tag));
  return OriginsPtr(new Origins(std::move(own), {}));
}

}  // namespace

std::vector<OriginsPtr> origins_of(std::span<Node* const> values) {
  const std::vector<Node*> order = ways_of(values);
  const std::vector<OriginsPtr> earlier = earlier_origins(order);
  TagSets sets;
  std::vector<std::uint32_t> before(order.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Node& node = *order[i];
    if (node.op().zero_gradient) continue;
    if (node.is_cut()) {
      if (node.origins()) before[i] = sets.number_of(alive(*node.origins()));
      continue;
    }
    for (const NodePtr& input : node.inputs()) {
      if (!carries_gradients(*input)) continue;
      std::uint32_t of_input = before[input->walk_index];
      if (may_be_target(*input))
        of_input = sets.both(of_input, sets.number_of({input->make_origin_tag().get()}));
      before[i] = sets.both(before[i], of_input);
    }
    if (sets.is_full()) return std::vector<OriginsPtr>(values.size(), common_origins(values));
  }
  std::map<std::uint32_t, OriginsPtr> made;
  std::vector<OriginsPtr> all;
  all.reserve(values.size());
  for (const Node* value : values) {
    const std::uint32_t number = before[value->walk_index];
    const auto [at, fresh] = made.try_emplace(number);
    if (fresh) at->second = origins_with(sets[number], earlier);
    all.push_back(at->second);
  }
  return all;
}

OriginsPtr common_origins(std::span<Node* const> values) {
  const std::vector<Node*> order = ways_of(values);
  std::vector<OriginsPtr> earlier = earlier_origins(order);
  // A long list is taken over as it is: chains of values that are all held would copy it at every turn.
  constexpr std::size_t kLong = 64;
  OriginsPtr more;
  for (const OriginsPtr& known : earlier) {
    if (known->size() >= kLong && (!more || known->size() > more->size())) more = known;
  }
  Tags tags;
  for (const OriginsPtr& known : earlier) {
    if (known != more) known->append_alive(tags);
  }
  for (Node* node : order) {
    if (may_be_target(*node)) tags.push_back(node->make_origin_tag().get());
  }
  sort_unique(tags);
  if (!more) return origins_with(tags, earlier);
  std::vector<OriginTagPtr> own;
  for (OriginTag* tag : tags) {
    if (!more->contains(*tag)) own.push_back(OriginTagPtr::share(tag));
  }
  if (own.empty()) return more;
  return OriginsPtr(new Origins(std::move(own), more));
}

bool may_have_come_from(const Node& value, const Node& x) {
  if (value.id() <= x.id()) return false;  // a node is younger than what it is computed of
  return x.origin_tag() && value.origins() && value.origins()->contains(*x.origin_tag());
}

}  // namespace caldera
