// The loops of the forms of a kernel: one function a form writes the statements of main().
#pragma once

#include <string>

#include "engine/device/vulkan/glsl/evaluate.h"

namespace caldera {

struct GlslForm {
  const Kernel& kernel;
  const KernelVariant& variant;
  const GlslOptions& options;
  const GlslOperands& operands;
  GlslEvaluator& evaluator;
  GlslNeighbours& neighbours;
  GlslBody& body;
  std::string shared;  // declarations of shared memory

  bool by_group() const {
    return variant.form == RegionForm::reduce_per_group || variant.form == RegionForm::rows_per_group;
  }
  /// Opens the loop over `points`, their number being `n`: an invocation a point, or a workgroup. Every
  /// workgroup takes a stretch of neighbouring ones.
  void open_points() const;
  /// Opens the walk along a row, `r` being the number of the point: all of it, or each lane its share.
  /// Declares the element numbers of the `used` operands. `close_row` closes what was opened.
  void open_row(const std::vector<bool>& used) const;
  void close_row() const;
  /// Opens the loop for one point (or group of neighbours) a lane, the lane's number `e` of the row, if there
  /// is one.
  void open_point(const std::vector<bool>& used, int e) const;
  void close_point() const { body.close(); }
};

void write_elementwise(GlslForm& form);
void write_reduction(GlslForm& form);
void write_rows(GlslForm& form);

}  // namespace caldera
