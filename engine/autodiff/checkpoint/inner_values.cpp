#include "engine/autodiff/checkpoint/inner_values.h"

#include "engine/autodiff/written_softmax.h"

namespace caldera {
namespace {

bool is_product_entry(const Snapshot::Entry& entry) {
  return entry.tensor.node().op().kind == OpClass::contract && !entry.inputs.empty();
}

/// Whether a value is what its input is but for its form, its elements and their scale: what stands between
/// the products of an attention (masks, scales, dropout).
bool is_pointwise(const Snapshot::Entry& entry) {
  switch (entry.tensor.node().op().kind) {
    case OpClass::elementwise:
    case OpClass::reshape:
    case OpClass::permute:
    case OpClass::broadcast:
    case OpClass::reduce:
    case OpClass::identity:
      return true;
    default:
      return false;
  }
}

/// Marks what is between the two products around a softmax, the first of them included, and the second ones
/// as results. Without two products it is a softmax of its own, and nothing is marked.
class AttentionMarks {
 public:
  AttentionMarks(const Snapshot& s, const std::vector<bool>& is_needed)
      : s_(s),
        is_needed_(is_needed),
        marks_(s.entries.size()),
        results_(s.entries.size()),
        reads_result_(s.entries.size()),
        readers_(s.entries.size()) {
    for (std::uint32_t i = 0; i < s.entries.size(); ++i) {
      for (const std::uint32_t input : s.entries[i].inputs) readers_[input].push_back(i);
    }
    for (std::uint32_t i = 0; i < s.entries.size(); ++i) {
      if (!s.entries[i].depends) continue;
      if (const auto softmax = read_softmax(s, i)) mark(i, softmax->x);
    }
  }
  bool is_inside(std::uint32_t i) const { return marks_[i]; }
  bool is_result(std::uint32_t i) const { return results_[i]; }
  /// The gradients of an attention read its result, too, whenever they read its inside.
  bool is_needed(std::uint32_t i) const { return is_needed_[i] || reads_result_[i]; }

 private:
  void mark(std::uint32_t result, std::uint32_t scores) {
    std::vector<std::uint32_t> inside{scores};
    if (!takes_in_product(inside)) return;
    // Everything that reads the scores, up to the products with the values.
    std::vector<std::uint32_t> open{inside};
    std::vector<bool> seen(s_.entries.size());
    std::vector<std::uint32_t> ends;
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      for (const std::uint32_t reader : readers_[at]) {
        if (seen[reader] || !s_.entries[reader].depends) continue;
        seen[reader] = true;
        if (is_product_entry(s_.entries[reader])) {
          ends.push_back(reader);
        } else if (is_pointwise(s_.entries[reader])) {
          inside.push_back(reader);
          open.push_back(reader);
        } else {
          return;
        }
      }
    }
    if (ends.empty() || !seen[result]) return;
    bool is_read = false;
    for (const std::uint32_t i : inside) {
      marks_[i] = true;
      is_read = is_read || is_needed_[i];
    }
    for (const std::uint32_t i : ends) {
      results_[i] = true;
      reads_result_[i] = reads_result_[i] || is_read;
    }
  }

  /// Adds what the scores come from, up to the product of queries and keys, and that one.
  bool takes_in_product(std::vector<std::uint32_t>& inside) const {
    for (std::uint32_t at = inside.back(); !is_product_entry(s_.entries[at]); inside.push_back(at)) {
      const Snapshot::Entry& entry = s_.entries[at];
      if (entry.is_target || !is_pointwise(entry)) return false;
      const std::uint32_t before = at;
      for (const std::uint32_t input : entry.inputs) {
        if (s_.entries[input].depends) at = input;
      }
      if (at == before) return false;
    }
    return true;
  }

  const Snapshot& s_;
  const std::vector<bool>& is_needed_;
  std::vector<bool> marks_;
  std::vector<bool> results_;
  std::vector<bool> reads_result_;
  std::vector<std::vector<std::uint32_t>> readers_;
};

}  // namespace

InnerValues inner_values(const Snapshot& s, const std::vector<bool>& is_needed) {
  const AttentionMarks attention(s, is_needed);
  InnerValues inner;
  std::vector<std::uint32_t> place(s.entries.size(), 0);
  for (std::uint32_t i = 0; i < s.entries.size(); ++i) {
    const Snapshot::Entry& entry = s.entries[i];
    if (!entry.depends || entry.is_target || entry.tensor.node().is_call()) continue;
    InnerValue value{.tensor = entry.tensor,
                     .inputs = {},
                     .is_needed = attention.is_needed(i),
                     .is_in_attention = attention.is_inside(i),
                     .is_attention_result = attention.is_result(i)};
    for (const std::uint32_t input : entry.inputs) {
      const Snapshot::Entry& from = s.entries[input];
      if (from.depends && !from.is_target && !from.tensor.node().is_call())
        value.inputs.push_back(place[input]);
    }
    place[i] = static_cast<std::uint32_t>(inner.values.size());
    inner.values.push_back(std::move(value));
    inner.entries.push_back(i);
  }
  return inner;
}

}  // namespace caldera
