// A kernel and what it has been decoded to so far: one program for each layout of its operands.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/device/cache_stats.h"
#include "engine/device/cpu/tiles/tile_form.h"
#include "engine/device/cpu/tiles/tile_program.h"
#include "engine/plan/kernel/kernel.h"

namespace caldera::cpu {

/// A program of tiles. Callers that lay out tiles themselves run it as a TileProgram: element-wise kernels in
/// the flat form, one pass of code with every location one a point.
class RegionProgram : public TileProgram {
 public:
  /// Throws DTypeError where the CPU cannot run the kernel.
  explicit RegionProgram(const Kernel& kernel);

  const Kernel& kernel() const { return kernel_; }
  /// The program for a form, decoded when it is asked for the first time. Only the last few are kept.
  std::shared_ptr<const TileProgram> decoded(const TileForm& form) const;
  /// That it takes, with the programs for its forms.
  std::size_t bytes() const;

  std::vector<bool> used;              // inputs that some instruction reads
  double nanoseconds_per_element = 0;  // rough, of one point on one thread

 private:
  static constexpr std::size_t kMostForms = 16;
  struct Entry {
    TileForm form;
    std::shared_ptr<const TileProgram> program;
  };
  Kernel kernel_;
  mutable std::mutex mutex_;
  mutable std::vector<Entry> entries_;
};

/// Returns the same object for the same Kernel::hash, as long as it is kept: see CacheKind::kernels.
/// `compiled` is raised by one when the kernel was new. Any thread; a kernel is decoded once for all that ask
/// for it.
std::shared_ptr<const RegionProgram> decode_cached(const Kernel& kernel, std::uint64_t& compiled);

/// Counts what decode_cached keeps.
CacheStats decoded_stats();
void set_decoded_limit(std::uint64_t bytes);

}  // namespace caldera::cpu
