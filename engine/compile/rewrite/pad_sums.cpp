#include "engine/compile/rewrite/pad_sums.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace caldera {
namespace {

using Id = std::uint32_t;

/// A set of intervals that do not overlap.
class Intervals {
 public:
  bool overlaps(std::int64_t begin, std::int64_t end) const {
    const auto next = by_end_.upper_bound({begin, 0});  // the first that ends behind `begin`
    return next != by_end_.end() && next->second < end;
  }
  void add(std::int64_t begin, std::int64_t end) { by_end_.emplace(end, begin); }

 private:
  struct Later {
    bool operator()(const std::pair<std::int64_t, std::int64_t>& a,
                    const std::pair<std::int64_t, std::int64_t>& b) const {
      return a.first < b.first;
    }
  };
  std::set<std::pair<std::int64_t, std::int64_t>, Later> by_end_;  // (end, begin)
};

class Finder {
 public:
  Finder(const Program& program, const std::vector<std::uint32_t>& uses) : program_(program), uses_(uses) {}

  PadSums run() {
    if (!has_pads()) return {};
    found_.inside.assign(program_.nodes.size(), false);
    std::vector<bool> seen(program_.nodes.size(), false);
    for (Id i = static_cast<Id>(program_.nodes.size()); i-- > 0;) {
      if (uses_[i] == 0 || seen[i] || !is_sum(i)) continue;
      follow(i, seen);
    }
    return std::move(found_);
  }

 private:
  static constexpr std::size_t kMostLayers = 4;
  struct Step {
    Id sum, rest;
    PaddedPart part;
  };

  const Program::Node& node(Id i) const { return program_.nodes[i]; }
  bool has_pads() const {
    return std::any_of(program_.nodes.begin(), program_.nodes.end(),
                       [](const Program::Node& n) { return n.op->kind == OpClass::pad; });
  }
  bool is_sum(Id i) const {
    return node(i).op->kind == OpClass::elementwise && node(i).op->scalar == ScalarOp::add;
  }
  /// The axis and contents of a zero padding along one axis.
  std::optional<std::pair<int, PaddedPart>> part_of(Id pad) const {
    const Program::Node& n = node(pad);
    if (n.op->kind != OpClass::pad || n.input_count != 1) return {};
    const auto rank = static_cast<std::size_t>(n.shape.rank());
    if (n.attributes.size() > 3 * rank) return {};  // its place is an argument
    int axis = -1;
    for (std::size_t d = 0; d < rank; ++d) {
      if (n.attributes[2 * rank + d] != 0) return {};
      if (n.attributes[d] == 0 && n.attributes[rank + d] == 0) continue;
      if (axis >= 0) return {};
      axis = static_cast<int>(d);
    }
    if (axis < 0) return {};
    const auto at = static_cast<std::size_t>(axis);
    return std::pair{axis, PaddedPart{pad, n.attributes[at], n.shape[axis] - n.attributes[rank + at]}};
  }

  /// Walks from the last addition of a chain to its first, and notes each run of paddings along one axis.
  void follow(Id last, std::vector<bool>& seen) {
    std::vector<Step> run;
    int axis = -1;
    Id at = last;
    const auto end_run = [&] {
      if (!run.empty()) note(run, axis);
      run.clear();
      axis = -1;
    };
    while (is_sum(at) && (at == last || uses_[at] == 1)) {
      seen[at] = true;
      const auto inputs = program_.inputs_of(at);
      // The chain goes on through the operand that is a sum, or else through the first.
      const bool swap = !continues(inputs[0]) && (continues(inputs[1]) || !part_of(inputs[1]));
      const Id rest = inputs[swap ? 1 : 0], term = inputs[swap ? 0 : 1];
      const auto part = part_of(term);
      if (part && (run.empty() || part->first == axis)) {
        axis = part->first;
        run.push_back({at, rest, part->second});
      } else {
        end_run();
        if (part) {
          axis = part->first;
          run.push_back({at, rest, part->second});
        }
      }
      at = rest;
      if (!continues(at)) break;
    }
    end_run();
  }
  bool continues(Id i) const { return is_sum(i) && uses_[i] == 1; }

  /// `run`: from the last addition to the first.
  void note(const std::vector<Step>& run, int axis) {
    PadSum sum;
    sum.axis = axis;
    sum.rest = run.back().rest;
    std::vector<PaddedPart> parts;
    if (const auto first = part_of(sum.rest); first && first->first == axis) {
      parts.push_back(first->second);
      sum.rest = kNoRoot;
    }
    for (auto step = run.rbegin(); step != run.rend(); ++step) parts.push_back(step->part);
    if (parts.size() < 2) return;
    if (sum.rest == kNoRoot && share_in_pairs(parts)) {
      sum.layers = two_layers(parts);
      accept(run, parts.size(), std::move(sum));
      return;
    }
    // Each part is above all earlier ones that it overlaps.
    std::vector<Intervals> taken;
    for (const PaddedPart& part : parts) {
      if (part.begin >= part.end) continue;
      std::size_t layer = taken.size();
      while (layer > 0 && !taken[layer - 1].overlaps(part.begin, part.end)) --layer;
      if (layer == kMostLayers) return;
      if (layer == taken.size()) {
        taken.emplace_back();
        sum.layers.emplace_back();
      }
      taken[layer].add(part.begin, part.end);
      sum.layers[layer].push_back(part);
    }
    accept(run, parts.size(), std::move(sum));
  }

  /// Whether no element is in more than two of the parts: in which order those two are added is all one.
  static bool share_in_pairs(const std::vector<PaddedPart>& parts) {
    std::vector<std::pair<std::int64_t, int>> ends;  // where one begins or, before that, another ends
    for (const PaddedPart& part : parts) {
      if (part.begin >= part.end) continue;
      ends.emplace_back(part.begin, 1);
      ends.emplace_back(part.end, -1);
    }
    std::sort(ends.begin(), ends.end());
    int depth = 0;
    return std::all_of(ends.begin(), ends.end(), [&](const auto& end) { return (depth += end.second) <= 2; });
  }
  static std::vector<std::vector<PaddedPart>> two_layers(std::vector<PaddedPart> parts) {
    std::stable_sort(parts.begin(), parts.end(),
                     [](const PaddedPart& a, const PaddedPart& b) { return a.begin < b.begin; });
    std::vector<std::vector<PaddedPart>> layers;
    for (const PaddedPart& part : parts) {
      if (part.begin >= part.end) continue;
      auto layer = std::find_if(layers.begin(), layers.end(),
                                [&](const auto& placed) { return placed.back().end <= part.begin; });
      if (layer == layers.end()) layer = layers.emplace(layers.end());
      layer->push_back(part);
    }
    return layers;
  }

  void accept(const std::vector<Step>& run, std::size_t parts, PadSum sum) {
    if (sum.layers.empty() || sum.layers.size() == parts) return;
    for (auto& layer : sum.layers) {
      std::sort(layer.begin(), layer.end(),
                [](const PaddedPart& a, const PaddedPart& b) { return a.begin < b.begin; });
    }
    for (std::size_t k = 1; k < run.size(); ++k) found_.inside[run[k].sum] = true;
    found_.of.emplace(run.front().sum, std::move(sum));
  }

  const Program& program_;
  const std::vector<std::uint32_t>& uses_;
  PadSums found_;
};

}  // namespace

PadSums find_pad_sums(const Program& program, const std::vector<std::uint32_t>& uses) {
  return Finder(program, uses).run();
}

}  // namespace caldera
