#include "engine/graph/lineage_walk.h"

#include <algorithm>

namespace caldera {
namespace {

bool is_on_path(const Node& input) { return is_floating(input.dtype()) && !input.is_scalar_leaf(); }

/// Whether it leaves a mark at all times, evaluated or not.
bool is_always_origin(const Node& node) {
  if (node.op().kind == OpClass::identity || node.op().zero_gradient) return true;
  const auto inputs = node.inputs();
  return node.lineage() == nullptr &&
         std::none_of(inputs.begin(), inputs.end(), [](const NodePtr& input) { return is_on_path(*input); });
}

constexpr std::uint64_t kNever = ~std::uint64_t{0};
std::uint64_t evaluations = 0;  // under graph_mutex()

/// Above this many outputs of one evaluation, a walk for each would cost more than it is worth.
constexpr std::size_t kWalkedApart = 8;

/// The walk from `roots` through what was not evaluated before. `outputs` get their values in this
/// evaluation. One at a time, under graph_mutex(): the next one uses the same memory.
class LineageWalk {
 public:
  void run(std::span<Node* const> roots, std::span<Node* const> outputs, std::uint64_t evaluation,
           Lineage& into) {
    evaluation_ = evaluation;
    output_walk_ = next_walk();
    seen_output_walk_ = next_walk();
    seen_walk_ = next_walk();
    for (Node* output : outputs) output->walk = output_walk_;
    for (Node* root : roots) root->walk = seen_output_walk_;
    found_.clear();
    parents_.clear();
    stack_.assign(roots.begin(), roots.end());
    while (!stack_.empty()) {
      const Node* node = stack_.back();
      stack_.pop_back();
      visit(*node);
    }
    gather(roots.size() == 1, into);
  }

  static LineageWalk& shared() {
    static auto* walk = new LineageWalk;  // outlives every static tensor
    return *walk;
  }

 private:
  using Mark = Lineage::Mark;

  void visit(const Node& node) {
    const Lineage* known = node.lineage();
    const bool is_origin = is_always_origin(node);
    if (is_origin || known != nullptr) {
      found_.push_back(
          {.id = node.id(), .evaluation = known ? known->evaluation : 0, .is_origin = is_origin});
    }
    if (node.op().zero_gradient) return;
    if (known != nullptr) {
      parents_.push_back(known);
      return;
    }
    for (const NodePtr& input : node.inputs()) {
      if (!is_on_path(*input)) continue;
      const bool is_output = input->walk == output_walk_ || input->walk == seen_output_walk_;
      if (is_output) found_.push_back({.id = input->id(), .evaluation = evaluation_, .is_origin = false});
      if (input->walk == seen_walk_ || input->walk == seen_output_walk_) continue;
      input->walk = is_output ? seen_output_walk_ : seen_walk_;
      stack_.push_back(input.get());
    }
  }

  /// The marks that were found, and those of what was evaluated before.
  void gather(bool are_sure, Lineage& into) {
    unknown_ = 0;
    marks_.clear();
    std::sort(found_.begin(), found_.end(), [](const Mark& a, const Mark& b) { return a.id > b.id; });
    add(found_);
    std::sort(parents_.begin(), parents_.end());
    parents_.erase(std::unique(parents_.begin(), parents_.end()), parents_.end());
    for (const Lineage* parent : parents_) {
      add(parent->marks);
      unknown_ = std::max(unknown_, parent->unknown);
    }
    into.marks.assign(marks_.begin(), marks_.end());
    for (Mark& mark : into.marks) mark.is_origin = mark.is_origin && are_sure;
    into.unknown = unknown_;
    into.evaluation = evaluation_;
  }

  /// Adds marks to marks_. Both are sorted, the youngest node first.
  void add(std::span<const Mark> more) {
    both_.clear();
    auto a = marks_.begin();
    auto b = more.begin();
    while (a != marks_.end() || b != more.end()) {
      const bool is_own = b == more.end() || (a != marks_.end() && a->id >= b->id);
      const Mark& mark = is_own ? *a++ : *b++;
      if (!both_.empty() && both_.back().id == mark.id) {
        both_.back().evaluation = std::max(both_.back().evaluation, mark.evaluation);
        both_.back().is_origin = both_.back().is_origin || mark.is_origin;
      } else if (both_.size() < Lineage::kMost) {
        both_.push_back(mark);
      } else {
        unknown_ = std::max(unknown_, mark.id);
        break;
      }
    }
    marks_.swap(both_);
  }

  std::uint64_t output_walk_ = 0, seen_output_walk_ = 0, seen_walk_ = 0;
  std::uint64_t evaluation_ = 0;
  std::uint64_t unknown_ = 0;
  std::vector<Node*> stack_;
  std::vector<Mark> found_, marks_, both_;
  std::vector<const Lineage*> parents_;
};

}  // namespace

void append_lineages(std::span<Node* const> outputs, std::vector<LineagePtr>& to) {
  const std::uint64_t evaluation = ++evaluations;
  const auto walked = [&](std::span<Node* const> roots) {
    auto* lineage = new Lineage;
    LineagePtr owned(lineage);
    LineageWalk::shared().run(roots, outputs, evaluation, *lineage);
    return owned;
  };
  to.reserve(to.size() + outputs.size());
  if (outputs.size() > kWalkedApart) {
    to.insert(to.end(), outputs.size(), walked(outputs));
  } else {
    for (std::size_t i = 0; i < outputs.size(); ++i) to.push_back(walked(outputs.subspan(i, 1)));
  }
}

Origin::Origin(Node& x) : id_(x.id()), is_number_(x.is_scalar_leaf()), is_origin_(is_always_origin(x)) {
  if (is_number_ || is_origin_) return;
  Node* const root = &x;
  Lineage walked;
  if (x.lineage() == nullptr) LineageWalk::shared().run({&root, 1}, {}, kNever, walked);
  const Lineage& own = x.lineage() != nullptr ? *x.lineage() : walked;
  evaluation_ = own.evaluation;
  for (const Lineage::Mark& mark : own.marks) {
    if (mark.is_origin) origins_.push_back(mark.id);
  }
}

bool Origin::may_be_of(const Node& value) const {
  if (value.id() <= id_) return false;  // a node is younger than what it is computed of
  const Lineage* lineage = value.lineage();
  if (lineage == nullptr || is_number_ || lineage->may_name(id_)) return true;
  if (is_origin_) return false;
  const bool was_lazy =
      evaluation_ > lineage->evaluation ||
      std::any_of(lineage->marks.begin(), lineage->marks.end(), [&](const Lineage::Mark& mark) {
        return mark.id > id_ && mark.evaluation != 0 && mark.evaluation < evaluation_;
      });
  return was_lazy && std::all_of(origins_.begin(), origins_.end(),
                                 [&](std::uint64_t id) { return lineage->may_name(id); });
}

}  // namespace caldera
