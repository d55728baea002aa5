#include "engine/device/cpu/products/bf16_product.h"

#include <algorithm>
#include <vector>

#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/products/bf16_tiles.h"

namespace caldera::cpu {
namespace {

constexpr double kNanosecondsOfProduct = 0.01;  // a multiplication and addition, on one thread
constexpr double kNanosecondsOfPacking = 0.1;   // an element
/// Bytes of packed rows of A, and of packed columns of B, that are there at a time.
constexpr std::int64_t kPackedBytes = std::int64_t{8} << 20;
/// Bytes of C that a thread makes before they are handed on: half of an L2 cache.
constexpr std::int64_t kBlockBytes = std::int64_t{512} << 10;
/// Tiles, one below the other, for which a panel of B is read.
constexpr std::int64_t kFewestTiles = 3;
constexpr std::int64_t kMostTiles = 18;
/// Panels that are packed together, so that what is read of a row is a few lines of the cache.
constexpr std::int64_t kPanelsTogether = 4;
/// Columns from which rows of a block are apart from one another.
constexpr std::int64_t kFarColumns = 256;
/// Words behind a panel that packing it may write to.
constexpr std::int64_t kWordsBehind = 16;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Packed rows of A, or columns of B, of all terms: of a panel the terms are one behind the other.
struct Panels {
  std::int64_t panel_width = 0;
  std::int64_t words = 0;  // of a panel
  std::uint32_t* data = nullptr;

  std::uint32_t* panel(std::int64_t index) const { return data + index * words; }
};

enum Bf16Scratch { kPackedRows, kPackedColumns, kBlock, kBf16Scratches };

template <class T>
T* bf16_scratch(Bf16Scratch use, std::int64_t elements) {
  thread_local Scratch scratch[kBf16Scratches];
  return reinterpret_cast<T*>(scratch[use].get(static_cast<std::size_t>(elements) * sizeof(T)));
}

/// Where the words of each term begin in a panel.
struct TermPlace {
  std::int64_t pairs = 0;
  std::int64_t row_words = 0, column_words = 0;
};

class Bf16Product {
 public:
  Bf16Product(std::int64_t m, std::int64_t n, std::span<const Bf16Term> terms)
      : tiles_(*find_bf16_tiles()), m_(m), n_(n), terms_(terms) {
    const auto place = [](std::int64_t& words, std::int64_t pairs, std::int64_t width) {
      const std::int64_t begin = words;
      words += ceil_div(pairs * width + kWordsBehind, kWordsBehind) * kWordsBehind;
      return begin;
    };
    for (const Bf16Term& term : terms) {
      const std::int64_t pairs = (term.k + 1) / 2;
      const std::int64_t row_words = place(rows_.words, pairs, kPairRows);
      places_.push_back({pairs, row_words, place(columns_.words, pairs, kPairColumns)});
      k_ += term.k;
    }
    rows_.panel_width = kPairRows;
    columns_.panel_width = kPairColumns;
  }

  void run(float* c, std::int64_t c_row, bool add, const Bf16BlockDone* done) {
    const auto together = [](const Panels& panels, std::int64_t width) {
      const std::int64_t most = kPackedBytes / (panels.words * std::int64_t{sizeof(std::uint32_t)});
      return std::min(ceil_div(width, panels.panel_width), std::max(most, kMostTiles)) * panels.panel_width;
    };
    const std::int64_t rows = together(rows_, m_), columns = together(columns_, n_);
    const auto words = [](const Panels& panels, std::int64_t width) {
      return width / panels.panel_width * panels.words;
    };
    rows_.data = bf16_scratch<std::uint32_t>(kPackedRows, words(rows_, rows));
    columns_.data = bf16_scratch<std::uint32_t>(kPackedColumns, words(columns_, columns));
    for (std::int64_t j = 0; j < n_; j += columns) {
      for (std::int64_t i = 0; i < m_; i += rows) {
        Bf16Block part{c, c_row, i, std::min(rows, m_ - i), j, std::min(columns, n_ - j)};
        pack(part, j == 0 || rows < m_, i == 0);
        multiply(part, c, add, done);
      }
    }
  }

 private:
  /// Packs the rows and columns of a part of C.
  void pack(const Bf16Block& part, bool packs_rows, bool packs_columns) const {
    const auto groups = [](bool packs, std::int64_t width, const Panels& panels) {
      return packs ? ceil_div(width, panels.panel_width * kPanelsTogether) : 0;
    };
    const std::int64_t row_groups = groups(packs_rows, part.rows, rows_);
    const std::int64_t all = row_groups + groups(packs_columns, part.columns, columns_);
    const double elements = static_cast<double>(k_) * static_cast<double>((packs_rows ? part.rows : 0) +
                                                                          (packs_columns ? part.columns : 0));
    parallel_ranges(all, threads(elements * kNanosecondsOfPacking, all),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t g = begin; g < end; ++g) {
                        if (g < row_groups)
                          pack_group(g, rows_, part.row, part.rows, true);
                        else
                          pack_group(g - row_groups, columns_, part.column, part.columns, false);
                      }
                    });
  }

  void pack_group(std::int64_t group, const Panels& panels, std::int64_t first, std::int64_t width,
                  bool is_row) const {
    const std::int64_t at = group * kPanelsTogether * panels.panel_width;
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      const HalfMatrix& x = is_row ? terms_[t].a : terms_[t].b;
      PairSource source;
      source.width_stride = is_row ? x.row : x.column;
      source.depth_stride = is_row ? x.column : x.row;
      source.width = std::min(kPanelsTogether * panels.panel_width, width - at);
      source.depth = terms_[t].k;
      source.data = reinterpret_cast<const std::uint16_t*>(x.data) + (first + at) * source.width_stride;
      std::uint32_t* words =
          panels.panel(group * kPanelsTogether) + (is_row ? places_[t].row_words : places_[t].column_words);
      tiles_.pack(source, panels.panel_width, words, panels.words);
    }
  }

  /// Multiplies what is packed, in blocks that threads share.
  void multiply(const Bf16Block& part, float* c, bool add, const Bf16BlockDone* done) const {
    const std::int64_t tiles = ceil_div(part.rows, kPairRows);
    const std::int64_t panels = ceil_div(part.columns, kPairColumns);
    const double work = static_cast<double>(k_) * static_cast<double>(part.rows) *
                        static_cast<double>(part.columns) * kNanosecondsOfProduct;
    const auto workers = static_cast<std::int64_t>(threads(work, tiles * panels));
    // Blocks of whole rows, as many for each thread; of few rows, blocks of columns.
    std::int64_t column_blocks = 1;
    std::int64_t row_blocks =
        ceil_div(tiles, std::clamp(kBlockBytes / (part.columns * kPairRows * std::int64_t{sizeof(float)}),
                                   kFewestTiles, kMostTiles));
    if (tiles >= 2 * workers) {
      row_blocks = ceil_div(row_blocks, workers) * workers;
    } else {
      row_blocks = 1;
      column_blocks = std::min(panels, workers);
    }
    const std::int64_t blocks = row_blocks * column_blocks;
    parallel_ranges(blocks, static_cast<int>(std::min(workers, blocks)),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t b = begin; b < end; ++b) {
                        const std::int64_t row = b / column_blocks, column = b % column_blocks;
                        multiply_block(part, tiles * row / row_blocks, tiles * (row + 1) / row_blocks,
                                       panels * column / column_blocks, panels * (column + 1) / column_blocks,
                                       c, add, done);
                      }
                    });
  }

  void multiply_block(const Bf16Block& part, std::int64_t first_tile, std::int64_t last_tile,
                      std::int64_t first_panel, std::int64_t last_panel, float* c, bool add,
                      const Bf16BlockDone* done) const {
    Bf16Block block = part;
    block.row += first_tile * kPairRows;
    block.rows = std::min(last_tile * kPairRows, part.rows) - first_tile * kPairRows;
    block.column += first_panel * kPairColumns;
    block.columns = std::min(last_panel * kPairColumns, part.columns) - first_panel * kPairColumns;
    if (block.rows <= 0 || block.columns <= 0) return;
    float* to = nullptr;
    if (done != nullptr) {
      // Rows of a power of two would share few sets of the nearest cache.
      block.row_stride = block.columns < kFarColumns ? block.columns : block.columns + kWordsBehind;
      to = bf16_scratch<float>(kBlock, block.rows * block.row_stride);
    } else {
      to = c + block.row * block.row_stride + block.column;
    }
    block.data = to;
    PairTile tile{.c_row = block.row_stride};
    for (std::int64_t p = first_panel; p < last_panel; ++p) {
      const std::int64_t column = (p - first_panel) * kPairColumns;
      tile.columns = std::min(kPairColumns, block.columns - column);
      for (std::int64_t t = first_tile; t < last_tile; ++t) {
        const std::int64_t row = (t - first_tile) * kPairRows;
        tile.rows = std::min(kPairRows, block.rows - row);
        tile.c = to + row * block.row_stride + column;
        tile.add = add;
        for (std::size_t s = 0; s < terms_.size(); ++s) {
          tile.alpha = terms_[s].alpha;
          tiles_.multiply(places_[s].pairs, rows_.panel(t) + places_[s].row_words,
                          columns_.panel(p) + places_[s].column_words, tile);
          tile.add = true;
        }
      }
    }
    if (done != nullptr) (*done)(block);
  }

  static int threads(double nanoseconds, std::int64_t tasks) {
    return in_parallel() ? 1 : threads_for(nanoseconds, tasks);
  }

  const Bf16Tiles& tiles_;
  std::int64_t m_, n_;
  std::int64_t k_ = 0;  // of all terms
  std::span<const Bf16Term> terms_;
  std::vector<TermPlace> places_;
  Panels rows_, columns_;
};

}  // namespace

bool has_bf16_products() { return find_bf16_tiles() != nullptr; }

void multiply_bf16(std::int64_t m, std::int64_t n, std::span<const Bf16Term> terms, float* c,
                   std::int64_t c_row, bool add) {
  Bf16Product(m, n, terms).run(c, c_row, add, nullptr);
}

void multiply_bf16(std::int64_t m, std::int64_t n, std::span<const Bf16Term> terms,
                   const Bf16BlockDone& done) {
  Bf16Product(m, n, terms).run(nullptr, 0, false, &done);
}

}  // namespace caldera::cpu
