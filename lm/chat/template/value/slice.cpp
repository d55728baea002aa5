// Slices of texts and sequences: x[from:to:stride].
#include <algorithm>
#include <limits>

#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/operators.h"

namespace caldera::chat {
namespace {

struct Bounds {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t stride = 1;
};

std::int64_t bound(const Value& value, std::int64_t open, std::int64_t length, std::int64_t stride) {
  if (value.is_none()) return open;
  if (!value.is_integral()) fail("slice indices must be integers or None or have an __index__ method");
  std::int64_t at = value.integral();
  if (at < 0) at = at < -length ? -1 : at + length;
  const std::int64_t low = stride < 0 ? -1 : 0;
  return std::clamp(at, low, stride < 0 ? length - 1 : length);
}

Bounds bounds_of(const Value& from, const Value& to, const Value& stride, std::int64_t length) {
  Bounds bounds;
  if (!stride.is_none()) {
    if (!stride.is_integral()) fail("slice indices must be integers or None or have an __index__ method");
    // Further than any sequence is long is as good as any larger stride, and can be added without overflow.
    bounds.stride =
        std::clamp<std::int64_t>(stride.integral(), -(std::int64_t{1} << 40), std::int64_t{1} << 40);
  }
  if (bounds.stride == 0) fail("slice step cannot be zero");
  const bool backwards = bounds.stride < 0;
  bounds.from = bound(from, backwards ? length - 1 : 0, length, bounds.stride);
  bounds.to = bound(to, backwards ? -1 : length, length, bounds.stride);
  return bounds;
}

template <class Take>
void each_place(const Bounds& bounds, Take take) {
  for (std::int64_t i = bounds.from; bounds.stride > 0 ? i < bounds.to : i > bounds.to; i += bounds.stride) {
    take(static_cast<std::size_t>(i));
  }
}

Value slice_text(const Text& text, const Bounds& bounds) {
  const std::string_view bytes = text.bytes;
  if (bounds.stride == 1) {
    const std::size_t begin = byte_offset(bytes, static_cast<std::size_t>(bounds.from));
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, bounds.to - bounds.from));
    return bytes.substr(begin, byte_offset(bytes.substr(begin), count));
  }
  std::vector<std::size_t> begins;
  Charge charge((text.length + 1) * sizeof(std::size_t));
  step(text.length);
  begins.reserve(text.length + 1);
  for (std::size_t at = 0; at < bytes.size(); at += first_character(bytes.substr(at)).bytes)
    begins.push_back(at);
  begins.push_back(bytes.size());
  TextBuilder out;
  each_place(bounds, [&](std::size_t i) { out.add(bytes.substr(begins[i], begins[i + 1] - begins[i])); });
  return out.finish();
}

}  // namespace

Value slice_of(const Value& value, const Value& from, const Value& to, const Value& stride) {
  if (value.is_text()) {
    return slice_text(value.text(),
                      bounds_of(from, to, stride, static_cast<std::int64_t>(value.text().length)));
  }
  require_defined(value);
  const bool sliced = value.is_list() || value.is_tuple() || value.is_sequence(SequenceKind::range);
  if (!sliced) fail("'{}' object has no slices", type_name(value));
  const auto& items = value.items();
  const Bounds bounds = bounds_of(from, to, stride, static_cast<std::int64_t>(items.size()));
  ListBuilder list;
  each_place(bounds, [&](std::size_t i) { list.add(items[i]); });
  if (!value.is_sequence(SequenceKind::range)) {
    return list.finish(value.is_list() ? SequenceKind::list : SequenceKind::tuple);
  }
  auto range =
      std::make_shared<Sequence>(Sequence{SequenceKind::range, 1, std::move(list.items()), 0, 0, 1, {}});
  const Sequence& old = value.sequence();
  // Bounds that no item reaches may be beyond 64 bits; they wrap.
  const auto product = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
  };
  const auto start = static_cast<std::uint64_t>(old.start);
  range->start = static_cast<std::int64_t>(start + product(bounds.from, old.stride));
  range->stop = static_cast<std::int64_t>(start + product(bounds.to, old.stride));
  range->stride = static_cast<std::int64_t>(product(old.stride, bounds.stride));
  return {std::shared_ptr<const Sequence>(std::move(range))};
}

}  // namespace caldera::chat
