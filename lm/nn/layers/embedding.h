// Embedding: rows of a table, by token id.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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
  Device device() const { return weight_.device(); }
  std::int64_t count() const { return weight_.shape()[0]; }
  std::int64_t dim() const { return weight_.shape()[1]; }

 private:
  Weight weight_;
};

/// The head of a model whose embedding is its head, too: hidden (..., dim) to logits (..., count). The table
/// is the embedding's parameter, and none of its own.
class TiedHead final : public Projection {
 public:
  /// Keeps a reference to the embedding.
  explicit TiedHead(const Embedding& table) : table_(table) {}

  LazyTensor forward(const LazyTensor& hidden) override { return table_.project(hidden); }
  std::int64_t in_features() const override { return table_.dim(); }
  std::int64_t out_features() const override { return table_.count(); }
  Device device() override { return table_.device(); }
  std::optional<LazyTensor> matrix() override;
  void visit(const std::string& /*prefix*/, ParameterVisitor& /*visitor*/) override {}

 private:
  const Embedding& table_;
};

}  // namespace caldera
