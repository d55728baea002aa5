#include "engine/device/cpu/regions/region_chain.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>

#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/regions/region_space.h"

namespace caldera::cpu {
namespace {

/// Beside those of the regions, which are at work meanwhile.
Scratch& chain_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

std::atomic<std::uint64_t> runs{0};
std::atomic<bool> is_on{true};

constexpr std::size_t kLineBytes = 64;
/// How much of the time of the thread with the most to do the threads must be at work on average.
constexpr double kBalance = 0.8;

std::size_t whole_lines(std::size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

/// Whether a step may follow others whose uses of memory these are: it reads nothing that they store but the
/// points of the first one, from where that stores them.
bool may_follow(const PreparedRegion& step, const std::vector<PreparedRegion::Use>& stored) {
  const auto reads = step.reads();
  return std::ranges::all_of(reads, [&](const PreparedRegion::Use& read) {
    return std::ranges::all_of(stored, [&](const PreparedRegion::Use& write) {
      return read.buffer != write.buffer || (read.offset && read == write);
    });
  });
}

}  // namespace

RegionChain::RegionChain(const std::vector<const PreparedRegion*>& steps) {
  std::vector<PreparedRegion::Use> stored, seen;
  for (const PreparedRegion* const step : steps) {
    if (regions_.size() == kMostSteps) break;
    const bool is_first = regions_.empty();
    const std::int64_t piece = step->piece();
    if (piece == 0 || (!is_first && (step->points() != points_ || !step->merges_pieces()))) break;
    const auto reads = step->reads();
    // It pays where something is read again.
    const bool shares = std::ranges::any_of(reads, [&](const PreparedRegion::Use& read) {
      return read.offset && std::ranges::find(seen, read) != seen.end();
    });
    if (!is_first && (!shares || !may_follow(*step, stored))) break;
    for (const auto& use : step->writes()) stored.push_back(use);
    seen.insert(seen.end(), reads.begin(), reads.end());
    for (const auto& use : step->writes()) seen.push_back(use);
    if (is_first) points_ = step->points();
    if (is_first && !step->merges_pieces()) unit_ = piece;
    if (step->merges_pieces()) {
      stretch_ = stretch_ == 0 ? piece : std::min(stretch_, piece);
      share_ = std::max(share_, piece);
    }
    nanoseconds_ += step->nanoseconds();
    regions_.push_back(step);
  }
  stretch_ = ceil_div(stretch_, unit_) * unit_;
  share_ = ceil_div(share_, unit_) * unit_;
  // Of a step alone, and of points that are one stretch, nothing is in the cache for another one.
  if (regions_.size() < 2 || points_ <= stretch_) regions_.clear();
}

/// One run, of which every thread has a part of the points.
struct RegionChain::Run {
  const RegionChain& chain;
  const RunContext& context;
  std::array<RowFunction, kMostSteps> functions{};
  std::array<std::byte*, kMostSteps> partials{};
  std::array<std::uint8_t*, kMostSteps> done{};  // of each region that merges pieces: which ones were run

  void piece(std::size_t region, std::int64_t number) const {
    const PreparedRegion& r = *chain.regions_[region];
    const std::int64_t begin = number * r.piece();
    r.run_piece(context, functions[region], begin, std::min(chain.points_, begin + r.piece()),
                partials[region]);
    done[region][number] = 1;
  }

  /// Runs points [begin, end) of what stores, and those pieces of the others that lie within them.
  void part(std::int64_t begin, std::int64_t end) const {
    const std::size_t count = chain.regions_.size();
    std::array<std::int64_t, kMostSteps> next{};
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t size = chain.regions_[i]->piece();
      next[i] = ceil_div(begin, size);
    }
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t to = std::min(end, at + chain.stretch_);
      for (std::size_t i = 0; i < count; ++i) {
        const PreparedRegion& r = *chain.regions_[i];
        if (!r.merges_pieces()) {
          r.run_piece(context, functions[i], at, to, nullptr);
          continue;
        }
        while (next[i] * r.piece() < to && std::min(chain.points_, (next[i] + 1) * r.piece()) <= to)
          piece(i, next[i]++);
      }
      at = to;
    }
  }
};

bool RegionChain::run(const RunContext& context) const {
  if (!is_on.load(std::memory_order_relaxed)) return false;
  const int threads = threads_for(nanoseconds_, ceil_div(points_, unit_));
  const std::int64_t shares = ceil_div(points_, share_), most = ceil_div(shares, threads);
  if (static_cast<double>(shares) < kBalance * static_cast<double>(most * threads)) return false;
  Run run{*this, context};
  std::size_t bytes = 0;
  const auto pieces_of = [&](const PreparedRegion& region) {
    return region.merges_pieces() ? static_cast<std::size_t>(ceil_div(points_, region.piece())) : 0;
  };
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const PreparedRegion& region = *regions_[i];
    run.functions[i] = region.piece_function(threads);
    if (!region.merges_pieces() && run.functions[i] == nullptr) return false;
    bytes += whole_lines(region.partial_bytes()) + whole_lines(pieces_of(region));
  }
  std::byte* memory = chain_scratch().get(bytes);
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const std::size_t pieces = pieces_of(*regions_[i]);
    run.partials[i] = memory;
    memory += whole_lines(regions_[i]->partial_bytes());
    run.done[i] = reinterpret_cast<std::uint8_t*>(memory);
    std::fill_n(run.done[i], pieces, std::uint8_t{0});
    memory += whole_lines(pieces);
  }
  parallel_ranges(shares, threads, [&](std::int64_t begin, std::int64_t end) {
    run.part(begin * share_, std::min(points_, end * share_));
  });
  struct Piece {
    std::size_t region;
    std::int64_t number;
  };
  std::vector<Piece> left;  // that lie across two threads' points
  for (std::size_t i = 0; i < regions_.size(); ++i)
    for (std::size_t p = 0; p < pieces_of(*regions_[i]); ++p)
      if (run.done[i][p] == 0) left.push_back({i, static_cast<std::int64_t>(p)});
  const auto count = static_cast<std::int64_t>(left.size());
  parallel_ranges(count, static_cast<int>(std::min<std::int64_t>(threads, count)),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (const Piece& p : std::span(left).subspan(static_cast<std::size_t>(begin),
                                                                  static_cast<std::size_t>(end - begin)))
                      run.piece(p.region, p.number);
                  });
  for (std::size_t i = 0; i < regions_.size(); ++i)
    if (regions_[i]->merges_pieces()) regions_[i]->finish_pieces(context, run.partials[i]);
  runs.fetch_add(1, std::memory_order_relaxed);
  return true;
}

std::uint64_t chains_run() { return runs.load(std::memory_order_relaxed); }
void set_chains_run(bool run) { is_on = run; }

}  // namespace caldera::cpu
