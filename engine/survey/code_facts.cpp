#include "engine/survey/code_facts.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/survey/code_lines.h"

namespace caldera {
namespace {

/// Turns of a loop within another stretch, where the code does not show them.
constexpr double kTurns = 8;
constexpr std::int64_t kMostTurns = 4096;
/// How often what a uniform branch may skip is run.
constexpr double kTaken = 0.5;

/// The lines of a natural loop: those from which the way back can be reached without passing its head.
struct Loop {
  std::size_t head = 0;
  std::vector<bool> has;        // a line each
  std::size_t size = 0;         // lines
  std::optional<double> turns;  // none: the code does not show them

  bool contains(const Loop& other) const { return this != &other && has[other.head] && other.size < size; }
};

class Code {
 public:
  explicit Code(std::vector<CodeLine> lines) : lines_(std::move(lines)), share_(lines_.size(), 1.0) {
    std::unordered_map<std::string_view, std::size_t> labels;
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (!lines_[i].label.empty()) labels.emplace(lines_[i].label, i);
    std::vector<Branch> branches;
    std::vector<std::vector<std::size_t>> before(lines_.size());
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (i + 1 < lines_.size() && !lines_[i].ends) before[i + 1].push_back(i);
      const auto target = lines_[i].target.empty() ? labels.end() : labels.find(lines_[i].target);
      if (target == labels.end()) continue;
      before[target->second].push_back(i);
      branches.push_back({i, target->second});
    }
    for (const Branch& branch : branches)
      if (branch.to <= branch.from) add_loop(branch.to, branch.from, before);
    for (Loop& loop : loops_) loop.turns = turns_of(loop);
    // A branch into a loop or out of one skips nothing of what the loop does.
    std::erase_if(branches, [&](const Branch& branch) {
      return !lines_[branch.from].uniform || branch.to <= branch.from || !same_loops(branch.from, branch.to);
    });
    for (const Branch& branch : branches) {
      const auto has_way = [&](const Branch& end) { return is_end_of_way(branch, end); };
      const auto end = std::ranges::find_if(branches, has_way);
      if (end != branches.end()) note_ways(branch, *end);
    }
    for (const Branch& branch : branches)
      if (!lines_[branch.from].is_chosen) scale(branch.from + 1, branch.to, kTaken);
  }

  CodeFacts facts() const {
    CodeFacts facts;
    facts.whole = sum(nullptr, false);
    const CodeStretch all = sum(nullptr, true);
    // Where there are matrices they are the work, whatever loops of unknown length do besides.
    const auto work_of = [&](const CodeStretch& s) {
      return all.matrix_flops > 0 ? s.matrix_flops : s.f32_flops;
    };
    const double work = 0.9 * work_of(all);
    const Loop* product = nullptr;
    for (const Loop& loop : loops_) {
      const CodeStretch turn = sum(&loop, true);
      const bool does_most = work > 0 && work_of(turn) * times(loop.head, nullptr) >= work;
      if (does_most && turn.loads > 0 && (product == nullptr || loop.size < product->size)) {
        product = &loop;
        facts.product = turn;
      }
      const CodeStretch once = sum(&loop, false);
      const auto walks_within = [&](const Loop& other) {
        return loop.contains(other) && sum(&other, false).accesses > 0;
      };
      if (once.accesses > 0 && std::ranges::none_of(loops_, walks_within)) facts.walks.add(once, 1);
      const auto has = [&](const Loop& other) { return loop.contains(other); };
      const auto is_in = [&](const Loop& other) { return other.contains(loop); };
      if (std::ranges::none_of(loops_, has) && once.instructions > facts.turn.instructions) {
        facts.turn = once;
        facts.is_nested = std::ranges::any_of(loops_, is_in);
      }
    }
    return facts;
  }

 private:
  struct Branch {
    std::size_t from, to;
  };

  /// Whether `end` ends the first of two ways that `branch` chooses between, and skips the second.
  bool is_end_of_way(const Branch& branch, const Branch& end) const {
    return end.from > branch.from && end.from < branch.to && end.to > branch.to &&
           !lines_[branch.from].ends && lines_[end.from].ends &&
           std::all_of(lines_.begin() + static_cast<std::ptrdiff_t>(end.from) + 1,
                       lines_.begin() + static_cast<std::ptrdiff_t>(branch.to),
                       [](const CodeLine& line) { return line.stretch.instructions == 0; });
  }

  /// Takes the way with fewer accesses to memory, if both have some.
  void note_ways(const Branch& branch, const Branch& end) {
    const auto accesses = [&](std::size_t from, std::size_t to) {
      double all = 0;
      for (std::size_t i = from; i < to; ++i) all += lines_[i].stretch.accesses;
      return all;
    };
    const double first = accesses(branch.from + 1, branch.to), second = accesses(branch.to, end.to);
    if (first == 0 || second == 0 || first == second) return;
    lines_[branch.from].is_chosen = lines_[end.from].is_chosen = true;
    if (first > second)
      scale(branch.from + 1, branch.to, 0);
    else
      scale(branch.to, end.to, 0);
  }

  /// What is between the lines and in their loop is run `share` times as often.
  void scale(std::size_t from, std::size_t to, double share) {
    for (std::size_t i = from; i < to; ++i)
      if (in_loops_of(from - 1, i)) share_[i] *= share;
  }

  /// Loops with one head are one loop with several ways back.
  void add_loop(std::size_t head, std::size_t back, const std::vector<std::vector<std::size_t>>& before) {
    auto loop = std::ranges::find(loops_, head, &Loop::head);
    if (loop == loops_.end()) {
      loops_.push_back({.head = head, .has = std::vector<bool>(lines_.size()), .size = 1});
      loop = std::prev(loops_.end());
      loop->has[head] = true;
    }
    std::vector<std::size_t> open{back};
    while (!open.empty()) {
      const std::size_t line = open.back();
      open.pop_back();
      if (loop->has[line]) continue;
      loop->has[line] = true;
      ++loop->size;
      open.insert(open.end(), before[line].begin(), before[line].end());
    }
    if (head == 0 || !loop->has[0]) return;
    // It is entered in its middle, where its condition is: such code is in one piece.
    std::fill(loop->has.begin(), loop->has.end(), false);
    std::fill(loop->has.begin() + static_cast<std::ptrdiff_t>(head),
              loop->has.begin() + static_cast<std::ptrdiff_t>(back) + 1, true);
    loop->size = back + 1 - head;
  }

  bool in_loops_of(std::size_t line, std::size_t other) const {
    return std::ranges::all_of(loops_, [&](const Loop& loop) { return !loop.has[line] || loop.has[other]; });
  }
  bool same_loops(std::size_t a, std::size_t b) const { return in_loops_of(a, b) && in_loops_of(b, a); }

  /// How often a loop turns that steps a register by a constant and compares it with another, in its own
  /// lines.
  std::optional<double> turns_of(const Loop& loop) const {
    std::optional<double> least;  // registers are used again: an unrelated step would be a small one
    const auto is_own = [&](std::size_t i) { return loop.has[i] && same_loops(loop.head, i); };
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const CodeLine& end = lines_[i];
      if (end.compared.empty() || !is_own(i)) continue;
      for (std::size_t k = 0; k < lines_.size(); ++k) {
        const CodeLine& step = lines_[k];
        if (step.stepped != end.compared || step.constant <= 0 || !is_own(k)) continue;
        const std::int64_t turns = (end.constant + step.constant - 1) / step.constant;
        if (turns >= 1 && turns <= kMostTurns)
          least = std::min(least.value_or(static_cast<double>(turns)), static_cast<double>(turns));
      }
    }
    return least;
  }

  /// How often a line is run in one turn of `within` (null: of all), by the loops therein around the line.
  /// Those whose turns the code does not show count once together, however they are nested: most such nests
  /// are one loop over what a workgroup stages, with several ways back.
  double times(std::size_t line, const Loop* within) const {
    double all = 1;
    bool unknown = false;
    for (const Loop& loop : loops_) {
      if (!loop.has[line] || (within != nullptr && !within->contains(loop))) continue;
      if (loop.turns)
        all *= *loop.turns;
      else
        unknown = true;
    }
    return unknown ? all * kTurns : all;
  }

  /// Of a loop, or of all: with the turns of the loops within, or as if each turned once.
  CodeStretch sum(const Loop* loop, bool with_turns) const {
    CodeStretch all;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (loop != nullptr && !loop->has[i]) continue;
      all.add(lines_[i].stretch, (with_turns ? times(i, loop) : 1) * share_[i]);
    }
    return all;
  }

  std::vector<CodeLine> lines_;
  std::vector<double> share_;  // how often it is run beside what is around it, a line each
  std::vector<Loop> loops_;
};

}  // namespace

std::optional<CodeFacts> read_code(std::string_view name, std::string_view listing) {
  auto lines = read_lines(name, listing);
  if (!lines) return std::nullopt;
  return Code(std::move(*lines)).facts();
}

}  // namespace caldera
