#include "engine/distributed/combine.h"

#include <type_traits>
#include <vector>

#include "engine/distributed/fixed_tree.h"
#include "engine/tensor/dispatch.h"

namespace caldera::distributed {
namespace {

template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Wide>(static_cast<Wide>(a) + static_cast<Wide>(b)));
  } else {
    return a + b;
  }
}

template <Combine kCombine, class T>
T combined(T a, T b) {
  if constexpr (kCombine == Combine::sum) {
    return sum_of(a, b);
  } else {
    if (a != a) return a;
    if (b != b) return b;
    return kCombine == Combine::max ? (a < b ? b : a) : (b < a ? b : a);
  }
}

/// Rows [begin, end) into row `begin`.
template <Combine kCombine, class T>
void combine_range(T* rows, std::int64_t begin, std::int64_t end, std::int64_t elements) {
  if (end - begin < 2) return;
  const std::int64_t middle = tree_middle(begin, end);
  combine_range<kCombine>(rows, begin, middle, elements);
  combine_range<kCombine>(rows, middle, end, elements);
  T* const to = rows + begin * elements;
  const T* const from = rows + middle * elements;
  for (std::int64_t i = 0; i < elements; ++i) to[i] = combined<kCombine>(to[i], from[i]);
}

template <Combine kCombine, class T>
void combine_typed(T* rows, std::int64_t count, std::int64_t elements) {
  if constexpr (kIsHalf<T>) {
    constexpr std::int64_t kPart = 4096;
    std::vector<float> wide(static_cast<std::size_t>(count * kPart));
    for (std::int64_t first = 0; first < elements; first += kPart) {
      const std::int64_t part = std::min(kPart, elements - first);
      for (std::int64_t row = 0; row < count; ++row)
        for (std::int64_t i = 0; i < part; ++i)
          wide[static_cast<std::size_t>(row * part + i)] = to_float(rows[row * elements + first + i]);
      combine_range<kCombine>(wide.data(), 0, count, part);
      for (std::int64_t i = 0; i < part; ++i)
        rows[first + i] = to_element<T>(wide[static_cast<std::size_t>(i)]);
    }
  } else {
    combine_range<kCombine>(rows, 0, count, elements);
  }
}

}  // namespace

void combine_rows(Combine combine, DType type, void* rows, std::int64_t count, std::int64_t elements) {
  dispatch(type, [&]<class T>() {
    auto* const typed = static_cast<Stored<T>*>(rows);
    switch (combine) {
      case Combine::sum:
        return combine_typed<Combine::sum>(typed, count, elements);
      case Combine::max:
        return combine_typed<Combine::max>(typed, count, elements);
      case Combine::min:
        break;
    }
    combine_typed<Combine::min>(typed, count, elements);
  });
}

}  // namespace caldera::distributed
