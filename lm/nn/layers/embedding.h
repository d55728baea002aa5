// Embedding: rows of a table, by token id.
#pragma once

#include "lm/nn/module.h"

namespace caldera {

/// ids (...) i32 to (..., dim). Parameter "weight" (count, dim), which may be quantised. Ids are not checked
/// here, because they may not have been computed: one outside of the table gives a row of NaN.
class Embedding final : public Layer {
 public:
  /// Throws ShapeError unless weight is 2-D.
  explicit Embedding(LazyTensor weight);
  /// Makes one like torch.nn.Embedding: normal(0, 1) of the global generator (manual_seed()), on
  /// default_device(), evaluated. Throws ValueError unless both extents are positive.
  Embedding(std::int64_t count, std::int64_t dim);
  /// normal(0, std) from Philox seeded with `seed`; not evaluated.
  Embedding(std::int64_t count, std::int64_t dim, double std, std::uint64_t seed, Device device);

  LazyTensor forward(const LazyTensor& ids) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;
  /// Rows `begin` to `end` of the table: (end - begin, dim).
  LazyTensor rows(std::int64_t begin, std::int64_t end) const;
  /// hidden (..., dim) times the transposed table: (..., count), the logits of tied embeddings.
  LazyTensor project(const LazyTensor& hidden) const;
  /// Undefined where the table is quantised.
  const LazyTensor& weight() const { return weight_.tensor; }

 private:
  Weight weight_;
};

}  // namespace caldera
