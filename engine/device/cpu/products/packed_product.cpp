#include "engine/device/cpu/products/packed_product.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "engine/device/cpu/host/cpu_info.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"

namespace caldera::cpu {
namespace {

constexpr double kNanosecondsOfPacking = 0.1;  // an element
/// Bytes of packed rows of A, and of packed columns of B, that are there at a time, about.
constexpr std::int64_t kPackedBytes = std::int64_t{4} << 20;
/// Tiles, one below the other, for which a panel of B is read, and the fewest panels that they are multiplied
/// with.
constexpr std::int64_t kFewestTiles = 3;
constexpr std::int64_t kMostTiles = 18;
constexpr std::int64_t kFewestPanels = 4;
/// Strips of rows for each thread that takes one after the other.
constexpr std::int64_t kStripsOfThread = 4;
/// Words of a sum after which the tiles of a block are begun again, so that panels stay in the L2 cache.
constexpr std::int64_t kDepth = 768;
/// Panels that are packed together, so that what is read of a row is a few lines of the cache.
constexpr std::int64_t kPanelsTogether = 8;
/// Parts of the L2 cache of a thread that its tiles' panels of A take, and what it makes of C before that is
/// handed on.
std::int64_t strip_bytes() { return second_level_cache_bytes() / 8 * 3; }
std::int64_t block_bytes() { return second_level_cache_bytes() / 2; }
/// Columns from which rows of a block are apart from one another.
constexpr std::int64_t kFarColumns = 256;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Packed rows of A, or columns of B, of all terms: of a panel the terms are one behind the other.
struct Panels {
  std::int64_t panel_width = 0;
  std::int64_t words = 0;  // of a panel
  std::uint32_t* data = nullptr;

  std::uint32_t* panel(std::int64_t index) const { return data + index * words; }
};

enum PackedScratch { kPackedRows, kPackedColumns, kBlock, kPackedScratches };

template <class T>
T* packed_scratch(PackedScratch use, std::int64_t elements) {
  thread_local Scratch scratch[kPackedScratches];
  return reinterpret_cast<T*>(scratch[use].get(static_cast<std::size_t>(elements) * sizeof(T)));
}

/// Terms of one sum that are multiplied together, and where their words begin in a panel.
struct TermPart {
  std::size_t term = 0;
  std::int64_t first = 0, k = 0;  // of the term's sum
  std::int64_t depth = 0;         // in words
  std::int64_t row_words = 0, column_words = 0;
};

/// What a thread has while it multiplies.
class ThreadTiles {
 public:
  explicit ThreadTiles(const PanelTiles& tiles) : tiles_(tiles) {
    if (tiles_.take != nullptr) tiles_.take();
  }
  ~ThreadTiles() {
    if (tiles_.release != nullptr) tiles_.release();
  }
  ThreadTiles(const ThreadTiles&) = delete;
  ThreadTiles& operator=(const ThreadTiles&) = delete;

 private:
  const PanelTiles& tiles_;
};

class PackedProduct {
 public:
  PackedProduct(const PanelTiles& tiles, std::int64_t m, std::int64_t n, std::span<const ProductTerm> terms)
      : tiles_(tiles), m_(m), n_(n), terms_(terms) {
    const auto place = [](std::int64_t& words, std::int64_t depth, std::int64_t width) {
      const std::int64_t begin = words;
      words += ceil_div(depth * width + kWordsBehind, kWordsBehind) * kWordsBehind;
      return begin;
    };
    for (std::size_t t = 0; t < terms.size(); ++t) {
      const std::int64_t step = tiles.depth_step;
      const std::int64_t steps = ceil_div(ceil_div(terms[t].k, tiles.terms_of_word), step);
      const std::int64_t words = steps * step, count = ceil_div(words, kDepth);
      const std::int64_t most = ceil_div(steps, count) * step;
      for (std::int64_t first = 0; first < words; first += most) {
        TermPart part{
            .term = t, .first = first * tiles.terms_of_word, .depth = std::min(most, words - first)};
        part.k = std::min(part.depth * tiles.terms_of_word, terms[t].k - part.first);
        part.row_words = place(row_words_, part.depth, tiles.rows);
        part.column_words = place(column_words_, part.depth, tiles.columns);
        parts_.push_back(part);
      }
      depth_ += words;
    }
  }

  /// Each thread packs what it multiplies: what another packs would be far from its caches.
  void run(float* c, std::int64_t c_row, bool add, const ProductBlockDone* done) {
    if (m_ == 0 || n_ == 0) return;
    const std::int64_t tiles = ceil_div(m_, tiles_.rows), panels = ceil_div(n_, tiles_.columns);
    const double work = cost(m_, n_);
    const std::int64_t workers = in_parallel() ? 1 : threads_for(work, tiles * panels);
    std::int64_t across = 1;
    const auto slowest = [&](std::int64_t columns) {
      return cost(ceil_div(tiles, workers / columns) * tiles_.rows,
                  ceil_div(panels, columns) * tiles_.columns);
    };
    for (std::int64_t columns = 2; columns <= workers; ++columns)
      if (workers % columns == 0 && slowest(columns) < slowest(across)) across = columns;
    const Shares shares = shares_of(tiles, panels, workers / across, across);
    std::vector<std::atomic<std::int64_t>> taken(static_cast<std::size_t>(across * shares.parts));
    parallel_ranges(workers, static_cast<int>(workers), [&](std::int64_t begin, std::int64_t end) {
      const ThreadTiles own(tiles_);
      for (std::int64_t w = begin; w < end; ++w) {
        const std::int64_t j = w % across;
        ProductBlock block{c, c_row, 0, m_, panels * j / across * tiles_.columns, 0};
        block.columns = std::min(panels * (j + 1) / across * tiles_.columns, n_) - block.column;
        run_columns(block, shares, w / across, &taken[static_cast<std::size_t>(j * shares.parts)], add, done);
      }
    });
  }

 private:
  /// Estimates the nanoseconds of a rectangle of C.
  double cost(std::int64_t rows, std::int64_t columns) const {
    const auto depth = static_cast<double>(depth_), m = static_cast<double>(rows),
               n = static_cast<double>(columns);
    return depth * (m * n * tiles_.nanoseconds_of_word + (m + n) * kNanosecondsOfPacking);
  }

  /// How threads that have the same columns share out the rows.
  struct Shares {
    std::int64_t strips = 1;         // of all rows
    std::int64_t panels_packed = 1;  // at a time
    std::int64_t parts = 1;          // of the columns, at most, that are packed at a time
    bool is_fixed = true;            // each thread has one strip, or else takes the next one when it is done
  };

  /// A core that other programs use too, or a slower one, holds nobody up where its thread takes fewer
  /// strips.
  Shares shares_of(std::int64_t tiles, std::int64_t panels, std::int64_t down, std::int64_t across) const {
    Shares shares;
    shares.strips = std::max(down, ceil_div(tiles, at_once(tiles, row_words_, kPackedBytes)));
    if (down > 1 && tiles >= down * kStripsOfThread * kFewestTiles)
      shares.strips = std::max(shares.strips, down * kStripsOfThread);
    shares.is_fixed = shares.strips == down;
    // Columns that meet all rows of a thread at once are multiplied while they are in the L2 cache.
    const bool is_one_strip = shares.is_fixed && ceil_div(tiles, down) <= strip_tiles();
    const std::int64_t columns = ceil_div(panels, across);
    shares.panels_packed = at_once(columns, column_words_, is_one_strip ? block_bytes() / 2 : kPackedBytes);
    shares.parts = ceil_div(columns, shares.panels_packed);
    return shares;
  }

  /// Panels of some words that are packed at a time: equal parts of about so many bytes, as for a few that
  /// remain the other operand would be walked once more.
  static std::int64_t at_once(std::int64_t panels, std::int64_t words, std::int64_t bytes) {
    const std::int64_t most = std::max(bytes / (words * std::int64_t{sizeof(std::uint32_t)}), kFewestPanels);
    return ceil_div(panels, std::max((panels + most / 2) / most, std::int64_t{1}));
  }

  /// Packs and multiplies a thread's strips of some columns, as many columns at a time as are packed. `taken`
  /// counts the strips of each part of the columns that threads have begun.
  void run_columns(const ProductBlock& block, const Shares& shares, std::int64_t own,
                   std::atomic<std::int64_t>* taken, bool add, const ProductBlockDone* done) const {
    const std::int64_t tiles = ceil_div(m_, tiles_.rows);
    Panels rows{tiles_.rows, row_words_}, columns{tiles_.columns, column_words_};
    rows.data = packed_scratch<std::uint32_t>(kPackedRows, ceil_div(tiles, shares.strips) * row_words_);
    columns.data = packed_scratch<std::uint32_t>(kPackedColumns, shares.panels_packed * column_words_);
    const std::int64_t width = shares.panels_packed * tiles_.columns;
    for (std::int64_t j = 0; j < block.columns; j += width, ++taken) {
      ProductBlock packed = block;
      packed.column += j;
      packed.columns = std::min(width, block.columns - j);
      bool has_columns = false;
      const auto run_strip = [&](std::int64_t strip) {
        if (!has_columns) pack(columns, packed.column, packed.columns, false);
        has_columns = true;
        packed.row = tiles * strip / shares.strips * tiles_.rows;
        packed.rows = std::min(tiles * (strip + 1) / shares.strips * tiles_.rows, m_) - packed.row;
        if (j == 0 || !shares.is_fixed) pack(rows, packed.row, packed.rows, true);
        multiply(rows, columns, packed, add, done);
      };
      if (shares.is_fixed)
        run_strip(own);
      else
        for (std::int64_t strip; (strip = taken->fetch_add(1, std::memory_order_relaxed)) < shares.strips;)
          run_strip(strip);
    }
  }

  /// Packs `width` rows of A, or columns of B, from `first` on.
  void pack(const Panels& panels, std::int64_t first, std::int64_t width, bool is_row) const {
    const std::int64_t together = kPanelsTogether * panels.panel_width;
    for (std::int64_t at = 0; at < width; at += together) {
      for (const TermPart& part : parts_) {
        const FloatMatrix& x = is_row ? terms_[part.term].a : terms_[part.term].b;
        PanelSource source{.type = x.type};
        source.width_stride = is_row ? x.row : x.column;
        source.depth_stride = is_row ? x.column : x.row;
        source.width = std::min(together, width - at);
        source.depth = part.k;
        source.data = x.data + ((first + at) * source.width_stride + part.first * source.depth_stride) *
                                   static_cast<std::int64_t>(size_of(x.type));
        std::uint32_t* words =
            panels.panel(at / panels.panel_width) + (is_row ? part.row_words : part.column_words);
        (is_row ? tiles_.pack_rows : tiles_.pack_columns)(source, panels.panel_width, words, panels.words);
      }
    }
  }

  /// Tiles, one below the other, whose panels of A stay in an L2 cache.
  std::int64_t strip_tiles() const {
    const std::int64_t bytes = std::min(depth_, kDepth) * tiles_.rows * std::int64_t{sizeof(float)};
    return std::clamp(strip_bytes() / bytes, kFewestTiles, kMostTiles);
  }

  /// Multiplies what is packed, a few rows of tiles at a time, and as many panels of B as their part of C
  /// stays in an L2 cache with.
  void multiply(const Panels& rows, const Panels& columns, const ProductBlock& packed, bool add,
                const ProductBlockDone* done) const {
    const std::int64_t strip = strip_tiles();
    const std::int64_t tiles = ceil_div(packed.rows, tiles_.rows), strips = ceil_div(tiles, strip);
    const std::int64_t panels = ceil_div(packed.columns, tiles_.columns);
    for (std::int64_t s = 0; s < strips; ++s) {
      const std::int64_t first_tile = tiles * s / strips, row = first_tile * tiles_.rows;
      const std::int64_t height = std::min(tiles * (s + 1) / strips * tiles_.rows, packed.rows) - row;
      const std::int64_t most = block_bytes() / (height * tiles_.columns * std::int64_t{sizeof(float)});
      const std::int64_t chunks = ceil_div(panels, std::max(most, kFewestPanels));
      for (std::int64_t t = 0; t < chunks; ++t) {
        const std::int64_t first_panel = panels * t / chunks, column = first_panel * tiles_.columns;
        ProductBlock block = packed;
        block.row += row;
        block.rows = height;
        block.column += column;
        block.columns = std::min(panels * (t + 1) / chunks * tiles_.columns, packed.columns) - column;
        multiply_block(rows, first_tile, columns, first_panel, block, add, done);
      }
    }
  }

  void multiply_block(const Panels& rows, std::int64_t first_tile, const Panels& columns,
                      std::int64_t first_panel, ProductBlock& block, bool add,
                      const ProductBlockDone* done) const {
    float* to = nullptr;
    if (done != nullptr) {
      // Rows of a power of two would share few sets of the nearest cache.
      block.row_stride = block.columns < kFarColumns ? block.columns : block.columns + kWordsBehind;
      to = packed_scratch<float>(kBlock, block.rows * block.row_stride);
    } else {
      to = const_cast<float*>(block.data) + block.row * block.row_stride + block.column;
    }
    block.data = to;
    for (std::size_t begin = 0, end = 0; begin < parts_.size(); begin = end) {
      // Parts that are multiplied tile by tile, one after the other: together no more than kDepth.
      std::int64_t depth = 0;
      do depth += parts_[end++].depth;
      while (end < parts_.size() && depth + parts_[end].depth <= kDepth);
      const std::span<const TermPart> run = std::span(parts_).subspan(begin, end - begin);
      for (std::int64_t j = 0; j < block.columns; j += tiles_.columns)
        for (std::int64_t i = 0; i < block.rows; i += tiles_.rows)
          multiply_tile(run, block, to, i, rows.panel(first_tile + i / tiles_.rows), j,
                        columns.panel(first_panel + j / tiles_.columns), add || begin > 0);
    }
    if (done != nullptr) (*done)(block);
  }

  /// Adds a run of parts to the tile at a row and a column of a block.
  void multiply_tile(std::span<const TermPart> run, const ProductBlock& block, float* to, std::int64_t row,
                     const std::uint32_t* a, std::int64_t column, const std::uint32_t* b, bool add) const {
    PanelTile tile{.c = to + row * block.row_stride + column,
                   .c_row = block.row_stride,
                   .rows = std::min(tiles_.rows, block.rows - row),
                   .columns = std::min(tiles_.columns, block.columns - column),
                   .add = add};
    for (const TermPart& part : run) {
      tile.alpha = terms_[part.term].alpha;
      tiles_.multiply(part.depth, a + part.row_words, b + part.column_words, tile);
      tile.add = true;
    }
  }

  const PanelTiles& tiles_;
  std::int64_t m_, n_;
  std::int64_t depth_ = 0;                         // of all terms, in words
  std::int64_t row_words_ = 0, column_words_ = 0;  // of a panel
  std::span<const ProductTerm> terms_;
  std::vector<TermPart> parts_;
};

}  // namespace

void multiply_packed(const PanelTiles& tiles, std::int64_t m, std::int64_t n,
                     std::span<const ProductTerm> terms, float* c, std::int64_t c_row, bool add) {
  PackedProduct(tiles, m, n, terms).run(c, c_row, add, nullptr);
}

void multiply_packed(const PanelTiles& tiles, std::int64_t m, std::int64_t n,
                     std::span<const ProductTerm> terms, const ProductBlockDone& done) {
  PackedProduct(tiles, m, n, terms).run(nullptr, 0, false, &done);
}

}  // namespace caldera::cpu
