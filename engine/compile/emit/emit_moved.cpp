// Parts of tensors, of which numbers may say where they are: operands that scalar arguments move. Padding.
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "engine/base/hash.h"
#include "engine/compile/emit/emitter.h"

namespace caldera {
namespace {

/// The number in `slot` counts elements of an axis of `extent`, with `stride`, of which `taken` are covered.
void add_term(std::vector<Position::Term>& terms, std::int64_t slot, std::int64_t extent, std::int64_t taken,
              std::int64_t stride) {
  if (slot < 0 || extent <= taken) return;
  terms.push_back({static_cast<std::int32_t>(slot), extent - taken, stride});
}

/// Positions of a plan by the hash of their terms.
using PositionsByHash = std::unordered_multimap<std::uint64_t, std::int32_t>;

/// The number of `position` among those of the plan, to which it is added if it is new.
std::int32_t number_of(Position position, std::vector<Position>& positions, PositionsByHash& known) {
  Hash128 hash;
  for (const Position::Term& term : position.terms) {
    hash.mix(static_cast<std::uint64_t>(term.scalar));
    hash.mix(static_cast<std::uint64_t>(term.stride));
  }
  const auto [first, last] = known.equal_range(hash.lo);
  for (auto at = first; at != last; ++at) {
    if (positions[static_cast<std::size_t>(at->second)] == position) return at->second;
  }
  const auto number = static_cast<std::int32_t>(positions.size());
  known.emplace(hash.lo, number);
  positions.push_back(std::move(position));
  return number;
}

}  // namespace

std::int32_t Emitter::add_moved(std::int32_t buffer, std::vector<Position::Term> terms) {
  const PlanBuffer like = plan_.buffers[static_cast<std::size_t>(buffer)];
  plan_.buffers.push_back({.role = BufferRole::arena, .dtype = like.dtype, .bytes = 0});
  const auto name = static_cast<std::int32_t>(plan_.buffers.size() - 1);
  moved_.push_back({name, buffer, std::move(terms)});
  return name;
}

/// No step: what reads the slice reads the memory of what it is a slice of.
void Emitter::dynamic_slice(std::uint32_t i) {
  const Program::Node& n = node(i);
  const Source x = placement_.operand(i, 0);
  const Shape& shape = node(x.shape_of).shape;
  const Placed whole = placement_.is_moved_in_place(i) ? placed(x) : written_out(x);
  std::vector<Position::Term> terms;
  const auto rank = static_cast<std::size_t>(n.shape.rank());
  for (std::size_t d = 0; d < rank; ++d) {
    const auto axis = static_cast<int>(d);
    const std::int64_t step = n.attributes[2 * rank + d];
    const std::int64_t taken = n.shape[axis] == 0 ? 0 : (n.shape[axis] - 1) * (step < 0 ? -step : step) + 1;
    add_term(terms, n.attributes[d], shape[axis], taken, whole.view.strides[axis]);
  }
  buffer_[i] = terms.empty() ? whole.buffer : add_moved(whole.buffer, std::move(terms));
}

/// A copy of the base, which is not made where the result is given the base's memory, and the part.
void Emitter::dynamic_update(std::uint32_t i) {
  const Program::Node& n = node(i);
  const std::int32_t out = destination(i);
  const View whole = dense_view(n.shape);
  const Source update = placement_.operand(i, 1);
  const Shape& part = node(update.shape_of).shape;
  copy(placement_.operand(i, 0), n.shape, out, whole);
  std::vector<Position::Term> terms;
  for (int axis = 0; axis < n.shape.rank(); ++axis)
    add_term(terms, n.attributes[static_cast<std::size_t>(axis)], n.shape[axis], part[axis],
             whole.strides[axis]);
  copy(update, part, terms.empty() ? out : add_moved(out, std::move(terms)), whole);
}

void Emitter::pad(std::uint32_t i) {
  const Program::Node& n = node(i);
  const std::int32_t out = destination(i);
  const View whole = dense_view(n.shape);
  if (n.input_count > 1) {
    const View nowhere{0, Dims::filled(n.shape.rank(), 0)};
    copy({placement_.operand(i, 1).root, i, &nowhere}, n.shape, out, whole);
  } else {
    fill(n.dtype, 0, n.shape, out);
  }
  const Shape& inner = node(placement_.operand(i, 0).shape_of).shape;
  View window = whole;
  for (int d = 0; d < inner.rank(); ++d) {
    const auto low = static_cast<std::size_t>(d);
    const auto interior = 2 * static_cast<std::size_t>(inner.rank()) + static_cast<std::size_t>(d);
    window.offset += n.attributes[low] * whole.strides[d];
    window.strides[d] = whole.strides[d] * (n.attributes[interior] + 1);
  }
  std::vector<Position::Term> terms;
  const auto rank = static_cast<std::size_t>(inner.rank());
  for (std::size_t d = 0; d < rank && n.attributes.size() > 3 * rank; ++d) {
    const auto axis = static_cast<int>(d);
    const std::int64_t covered = (inner[axis] - 1) * (n.attributes[2 * rank + d] + 1) + 1;
    add_term(terms, n.attributes[3 * rank + d], n.shape[axis], covered, whole.strides[axis]);
  }
  copy(placement_.operand(i, 0), inner, terms.empty() ? out : add_moved(out, std::move(terms)), window);
}

/// Steps name the buffers themselves, and positions, in place of the names that were given meanwhile.
void Emitter::resolve_moved() {
  if (moved_.empty()) return;
  std::vector<std::int32_t> number(plan_.buffers.size());  // without the names
  std::vector<std::int32_t> position(plan_.buffers.size(), -1);
  std::vector<PlanBuffer> kept;
  PositionsByHash known;
  auto next = moved_.begin();
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    if (next == moved_.end() || static_cast<std::size_t>(next->name) != b) {
      number[b] = static_cast<std::int32_t>(kept.size());
      kept.push_back(plan_.buffers[b]);
      continue;
    }
    // What it names came before it, and may be a name as well.
    const auto of = static_cast<std::size_t>(next->buffer);
    number[b] = number[of];
    Position sum{std::move(next->terms)};
    if (position[of] >= 0) {
      const auto& inner = plan_.positions[static_cast<std::size_t>(position[of])].terms;
      sum.terms.insert(sum.terms.begin(), inner.begin(), inner.end());
    }
    position[b] = number_of(std::move(sum), plan_.positions, known);
    ++next;
  }
  plan_.buffers = std::move(kept);
  for (StoredValue& stored : plan_.stored_values)
    stored.value = static_cast<std::uint32_t>(number[stored.value]);
  for (Step& step : plan_.steps) {
    for (Operand& operand : step.operands) {
      if (operand.buffer < 0) continue;
      const auto b = static_cast<std::size_t>(operand.buffer);
      operand.buffer = number[b];
      operand.position = position[b];
    }
  }
}

}  // namespace caldera
