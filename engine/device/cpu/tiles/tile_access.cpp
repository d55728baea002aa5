#include "engine/device/cpu/tiles/tile_access.h"

#include <algorithm>
#include <cstring>

#include "engine/device/cpu/tiles/strided_runs.h"
#include "engine/device/cpu/tiles/turned_copy.h"
#include "engine/tensor/dispatch.h"

namespace caldera::cpu {
namespace {

constexpr std::int64_t kShortCopy = 32;   // below this a loop beats a call of memcpy
constexpr std::int64_t kCopiedRow = 256;  // elements of rows that are copied several at a time

/// Whole innermost runs that the next n elements contain, where memory runs along the dim outside of them:
/// such a block is copied in the order of memory. 0 where that does not help.
std::int64_t transposed_rows(const Access& access, const Cursor& cursor, std::int64_t n) {
  if (access.rank < 2 || access.inner_stride() == 1 || access.inner_stride() == 0) return 0;
  const auto row = static_cast<std::size_t>(access.rank - 2);
  if (access.strides[row] != 1 || cursor.at[row + 1] != 0) return 0;
  const std::int64_t rows = std::min(n / access.inner_dim(), access.dims[row] - cursor.at[row]);
  return rows > 1 ? rows : 0;
}

/// Whole innermost runs that the next n elements contain, where these are short and their elements
/// neighbours. 0 where there is no more than one.
std::int64_t short_rows(const Access& access, const Cursor& cursor, std::int64_t n) {
  if (access.rank < 2 || access.inner_stride() != 1 || access.inner_dim() > kCopiedRow) return 0;
  const auto row = static_cast<std::size_t>(access.rank - 2);
  if (cursor.at[row + 1] != 0) return 0;
  const std::int64_t rows = std::min(n / access.inner_dim(), access.dims[row] - cursor.at[row]);
  return rows > 1 ? rows : 0;
}

/// to[i * to_row + j] = from[j * from_row + i] for i in [0, rows), j in [0, columns).
template <class T>
void transpose(T* to, std::int64_t to_row, const T* from, std::int64_t from_row, std::int64_t rows,
               std::int64_t columns, bool past_caches = false) {
  turn_block(reinterpret_cast<const std::byte*>(from), from_row, reinterpret_cast<std::byte*>(to), to_row,
             rows, columns, sizeof(T), past_caches);
}

template <class T>
void gather_typed(const Access& access, Cursor& cursor, const std::byte* base, std::byte* out,
                  std::int64_t n) {
  const auto* from = reinterpret_cast<const T*>(base);
  auto* to = reinterpret_cast<T*>(out);
  const std::int64_t stride = access.inner_stride();
  while (n > 0) {
    const T* p = from + cursor.element;
    if (const std::int64_t rows = transposed_rows(access, cursor, n); rows > 0) {
      const std::int64_t columns = access.inner_dim();
      // The next rows, which are read behind what is computed of these.
      for (std::int64_t k = 0; k < columns; ++k) __builtin_prefetch(p + k * stride + rows, 0, 2);
      transpose(to, columns, p, stride, rows, columns);
      to += rows * columns;
      n -= rows * columns;
      cursor.step_rows(access, rows);
      continue;
    }
    if (const std::int64_t rows = short_rows(access, cursor, n); rows > 0) {
      const std::int64_t columns = access.inner_dim();
      constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
      const std::int64_t apart = access.strides[static_cast<std::size_t>(access.rank - 2)];
      copy_rows({reinterpret_cast<const std::byte*>(p), apart * kSize, reinterpret_cast<std::byte*>(to),
                 columns * kSize, rows, columns * kSize});
      to += rows * columns;
      n -= rows * columns;
      cursor.step_rows(access, rows);
      continue;
    }
    const std::int64_t run = std::min(n, cursor.run_left(access));
    if (stride == 1 && run >= kShortCopy)
      std::memcpy(to, p, static_cast<std::size_t>(run) * sizeof(T));
    else if (stride == 0 && run >= kShortCopy)
      repeat_element(reinterpret_cast<const std::byte*>(p), reinterpret_cast<std::byte*>(to), run, sizeof(T));
    else if (stride == 2 && run >= kShortCopy)
      gather_every_other(reinterpret_cast<const std::byte*>(p), reinterpret_cast<std::byte*>(to), run,
                         sizeof(T));
    else
      for (std::int64_t i = 0; i < run; ++i) to[i] = p[i * stride];
    to += run;
    n -= run;
    cursor.step(access, run);
  }
}

template <class T>
void scatter_typed(const Access& access, Cursor& cursor, std::byte* base, const std::byte* in,
                   std::int64_t n) {
  auto* to = reinterpret_cast<T*>(base);
  const auto* from = reinterpret_cast<const T*>(in);
  const std::int64_t stride = access.inner_stride();
  while (n > 0) {
    T* p = to + cursor.element;
    if (const std::int64_t rows = transposed_rows(access, cursor, n); rows > 0) {
      const std::int64_t columns = access.inner_dim();
      transpose(p, stride, from, columns, columns, rows, access.past_caches);
      from += rows * columns;
      n -= rows * columns;
      cursor.step_rows(access, rows);
      continue;
    }
    if (const std::int64_t rows = short_rows(access, cursor, n); rows > 0) {
      const std::int64_t columns = access.inner_dim();
      constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
      const std::int64_t apart = access.strides[static_cast<std::size_t>(access.rank - 2)];
      copy_rows({reinterpret_cast<const std::byte*>(from), columns * kSize, reinterpret_cast<std::byte*>(p),
                 apart * kSize, rows, columns * kSize, access.past_caches});
      from += rows * columns;
      n -= rows * columns;
      cursor.step_rows(access, rows);
      continue;
    }
    const std::int64_t run = std::min(n, cursor.run_left(access));
    if (stride == 1 && run >= kShortCopy)
      std::memcpy(p, from, static_cast<std::size_t>(run) * sizeof(T));
    else
      for (std::int64_t i = 0; i < run; ++i) p[i * stride] = from[i];
    from += run;
    n -= run;
    cursor.step(access, run);
  }
}

/// out[0..n) = the next n values of an index operand: its element offsets themselves.
template <class T>
void generate(const Access& access, Cursor& cursor, T* out, std::int64_t n) {
  const std::int64_t stride = access.inner_stride();
  while (n > 0) {
    const std::int64_t run = std::min(n, cursor.run_left(access));
    const std::int64_t first = cursor.element;
    if (run >= kShortCopy)
      write_coordinates(dtype_of<T>(), first, stride, reinterpret_cast<std::byte*>(out), run);
    else
      for (std::int64_t i = 0; i < run; ++i) out[i] = static_cast<T>(first + i * stride);
    out += run;
    n -= run;
    cursor.step(access, run);
  }
}

}  // namespace

Access make_access(std::span<const std::int64_t> dims, std::span<const std::int64_t> strides,
                   std::int64_t offset) {
  Access a;
  a.offset = offset;
  // Of an empty space no element is asked for.
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return a;
  a.rank = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    const auto last = static_cast<std::size_t>(a.rank - 1);
    if (a.rank > 0 && a.strides[last] == strides[i] * dims[i]) {
      a.dims[last] *= dims[i];
      a.strides[last] = strides[i];
      continue;
    }
    a.dims[static_cast<std::size_t>(a.rank)] = dims[i];
    a.strides[static_cast<std::size_t>(a.rank)] = strides[i];
    ++a.rank;
  }
  if (a.rank == 0) {  // one element
    a.rank = 1;
    a.dims[0] = 1;
    a.strides[0] = 1;
  }
  return a;
}

void Cursor::seek(const Access& access, std::int64_t position) {
  element = access.offset;
  for (int i = access.rank - 1; i > 0; --i) {
    const auto d = static_cast<std::size_t>(i);
    const std::int64_t quotient = position / access.dims[d];
    at[d] = position - quotient * access.dims[d];
    element += at[d] * access.strides[d];
    position = quotient;
  }
  at[0] = position;
  element += position * access.strides[0];
}

void Cursor::carry(const Access& access, std::size_t from) {
  for (std::size_t d = from; d > 0 && at[d] == access.dims[d]; --d) {
    at[d] = 0;
    element += access.strides[d - 1] - access.dims[d] * access.strides[d];
    ++at[d - 1];
  }
}

void gather_tile(const Access& access, Cursor& cursor, const std::byte* base, std::size_t size,
                 std::byte* out, std::int64_t n) {
  switch (size) {
    case 1:
      return gather_typed<std::uint8_t>(access, cursor, base, out, n);
    case 2:
      return gather_typed<std::uint16_t>(access, cursor, base, out, n);
    case 4:
      return gather_typed<std::uint32_t>(access, cursor, base, out, n);
    default:
      return gather_typed<std::uint64_t>(access, cursor, base, out, n);
  }
}

void scatter_tile(const Access& access, Cursor& cursor, std::byte* base, std::size_t size,
                  const std::byte* in, std::int64_t n) {
  switch (size) {
    case 1:
      return scatter_typed<std::uint8_t>(access, cursor, base, in, n);
    case 2:
      return scatter_typed<std::uint16_t>(access, cursor, base, in, n);
    case 4:
      return scatter_typed<std::uint32_t>(access, cursor, base, in, n);
    default:
      return scatter_typed<std::uint64_t>(access, cursor, base, in, n);
  }
}

void generate_tile(const Access& access, Cursor& cursor, DType type, std::byte* out, std::int64_t n) {
  dispatch<is_compute_number>(type,
                              [&]<class T>() { generate(access, cursor, reinterpret_cast<T*>(out), n); });
}

void fill_tile(std::byte* out, const std::byte* value, std::size_t size, std::int64_t n) {
  switch (size) {
    case 1:
      std::memset(out, static_cast<int>(value[0]), static_cast<std::size_t>(n));
      return;
    case 2:
      std::fill_n(reinterpret_cast<std::uint16_t*>(out), n, *reinterpret_cast<const std::uint16_t*>(value));
      return;
    case 4:
      std::fill_n(reinterpret_cast<std::uint32_t*>(out), n, *reinterpret_cast<const std::uint32_t*>(value));
      return;
    default:
      std::fill_n(reinterpret_cast<std::uint64_t*>(out), n, *reinterpret_cast<const std::uint64_t*>(value));
      return;
  }
}

}  // namespace caldera::cpu
