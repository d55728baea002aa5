// Attention steps: the output, and the gradients, of softmax(score(q k^T)) v, without the matrix of scores.
//
// Scores exist for a block of queries and a block of keys at a time, in scratch that stays in a thread's
// cache. Tasks are the blocks of queries of each batch (of keys, for the gradients of k and v); a task walks
// along all blocks of the other side in their order, so results are the same for any number of threads. Where
// there are enough batches for the machine's cores, and all gradients are wanted, a task is all of a batch:
// scores and their gradients are then made once, not twice.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/device/cpu/attention/attention_ops.h"
#include "engine/device/cpu/attention/attention_product.h"
#include "engine/device/cpu/attention/attention_scores.h"
#include "engine/device/cpu/attention/key_rows.h"
#include "engine/device/cpu/products/packed_product.h"
#include "engine/device/cpu/regions/region_step.h"
#include "engine/plan/plan.h"

namespace caldera::cpu {

/// An attention step made ready.
class PreparedAttention {
 public:
  PreparedAttention(const Plan& plan, const Step& step, const AttentionStep& attention)
      : PreparedAttention(plan, step, attention, attention.pass) {}
  void run(const RunContext& context) const;

 private:
  /// Makes some of what the step makes ready: one of two passes instead of grad_qkv.
  PreparedAttention(const Plan& plan, const Step& step, const AttentionStep& attention, AttentionPass pass);

  /// An operand: a matrix, or a vector of one element a query, for every position of the batch.
  struct Matrix {
    std::int32_t buffer = -1;
    DType type = DType::f32;
    std::int64_t offset = 0;
    std::vector<std::int64_t> batch;
    std::int64_t rows = 0;
    std::int64_t columns = 1;
    std::int64_t row = 0;
    std::int64_t column = 1;
    bool regular = true;   // products take it as it is: f32 in an order that they know
    bool in_rows = false;  // KeyRowOps take its rows
    bool blocks = false;   // of q8_0: `row` and `offset` are in bytes
    std::int64_t table_rows = 0, table_stride = 0;  // where rows_ says which row of a table is meant
  };
  /// Which rows of tables are keys: see StoredKeys.
  struct RowNumbers {
    std::int32_t buffer = -1;
    std::int64_t offset = 0, along = 0;
    std::vector<std::int64_t> batch;
  };
  /// Holds what one thread works with.
  struct Work {
    float* scores;
    float* products;          // go v^T, then the gradients of the scores; gradient steps only
    float* raw;               // q k^T where `gradient_` reads it
    float* sum;               // of what becomes o, dq or dk
    float* sum2;              // of what becomes dv
    float* sum3;              // of what becomes dq beside them, for all queries
    float* packed[4];         // rows of q, k, v, go that products cannot take as they are
    std::byte* line;          // a row of a 16-bit type on its way there
    const PanelTiles* pairs;  // where products take all operands as they are, in bf16: of pairs
    std::uint16_t* narrowed;  // weights of a block on their way into such products
    SoftmaxRow* rows;
    std::byte* score_memory;
    std::byte* gradient_memory;
    std::optional<ScoreRunner> score;
    std::optional<ScoreRunner> gradient;
  };
  /// A matrix at one position of the batch.
  struct Located {
    const Matrix* matrix = nullptr;
    const std::byte* data = nullptr;
    const std::int32_t* numbers = nullptr;  // of rows of a table
    std::int64_t number_stride = 0;
  };
  /// The operands of one position of the batch.
  struct Place {
    Located q, k, v, go;
    const float* highest = nullptr;
    const float* total = nullptr;
    const float* delta = nullptr;
  };

  /// Rows of a matrix in bf16.
  struct HalfRows {
    const Located* of = nullptr;
    std::int64_t first = 0, count = 0;

    FloatMatrix matrix() const;
  };

  Matrix matrix(const Plan& plan, const Step& step, std::size_t operand, int row_dim, int column_dim) const;
  ScoreKernel score_kernel(const Step& step, const Kernel& kernel, std::size_t given,
                           std::size_t first_operand, std::size_t first_scalar) const;
  void set_stored(const Step& step, const StoredKeys& stored);
  /// Whether one walk makes all gradients in less time than two, which share out more evenly.
  bool joins() const;
  void choose_blocks();

  std::int64_t element(const Matrix& x, std::int64_t batch) const;
  Place place(const RunContext& context, std::int64_t batch) const;
  /// Rows [first, first + count) of a matrix as products take them, copied to `to` if need be.
  static MatrixView rows_of(const Located& whole, std::int64_t first, std::int64_t count, float* to,
                            std::byte* line);
  static MatrixView rows_for(Work& work, const Located& whole, std::int64_t first, std::int64_t count,
                             int packed);
  static MatrixView rows_of_table(const Located& whole, std::int64_t first, std::int64_t count, float* to);
  static KeyRows key_rows(const Located& whole, std::int64_t first);
  void store(const RunContext& context, const Matrix& x, std::int64_t batch, std::int64_t first,
             std::int64_t count, const float* from, std::byte* line) const;

  /// Makes a b^T of rows in bf16, exact but for its sums in f32.
  static void multiply_pairs(const Work& work, const HalfRows& a, const HalfRows& b, float* to);
  /// Makes the product of weights (queries, keys) and rows of keys, or of transposed weights and rows of
  /// queries, or adds that to `sum`. Weights are rounded to bf16, as those of a softmax in bf16 are.
  static void weigh_pairs(const Work& work, const float* weights, std::int64_t queries, const HalfRows& rows,
                          float* sum, bool add);
  static void weigh_pairs_across(const Work& work, const float* weights, std::int64_t keys,
                                 const HalfRows& rows, float* sum, bool add);

  /// Sets `work` up in `memory`, or, without memory, returns the bytes that it takes.
  std::size_t lay_out(Work& work, std::byte* memory) const;
  void run_walk(const RunContext& context) const;
  void run_tasks(const RunContext& context, std::int64_t begin, std::int64_t end) const;
  void forward(const RunContext& context, Work& work, std::int64_t batch, std::int64_t block) const;
  /// The raw products of a block of queries and keys, and what its weights make of the values.
  struct KeyBlock {
    std::int64_t query, queries, key, keys;
    bool few;      // queries, so that rows are read once as they are stored
    bool filling;  // all keys are one row of a table
    bool add;      // to what keys before have left
  };
  void raw_scores(Work& work, const Place& at, const KeyBlock& block, const MatrixView& q) const;
  void add_values(Work& work, const Place& at, const KeyBlock& block) const;
  void gradient_q(const RunContext& context, Work& work, std::int64_t batch, std::int64_t block) const;
  void gradient_kv(const RunContext& context, Work& work, std::int64_t batch, std::int64_t block) const;
  void gradient_qkv(const RunContext& context, Work& work, std::int64_t batch) const;
  /// Takes a block of queries and keys into the sums of a gradient step.
  struct Block {
    std::int64_t query, queries, key, keys;
  };
  void gradient_block(Work& work, const Place& place, const Block& block, const MatrixView& q,
                      const MatrixView& k, const MatrixView& v, const MatrixView& go) const;

  /// Says what the scores of masked keys are, and which these are, in one run.
  struct Causal {
    bool known = false;
    float fill = 0;
    std::int64_t offset = 0;  // keys n > m + offset
  };
  Causal causal(const RunContext& context) const;
  /// Holds what is the same for all keys that a block of queries walks along.
  struct Walk {
    Causal mask;
    MatrixView q;
    std::int64_t first = 0, queries = 0;  // of the block
    std::int64_t visible = 0;             // keys from here on are masked
    std::int64_t filled = 0;              // keys from here on are all one row of a table
    bool few = false;
    float share = 1;
  };
  Walk walk_of(const RunContext& context, Work& work, const Place& at, std::int64_t block) const;
  /// Whether masked keys have no weight in any row.
  static bool hides(const Walk& walk, const SoftmaxRow* rows);
  /// Takes keys [begin, end) into work.rows and work.sum.
  void take_in(Work& work, const Place& at, const Walk& walk, std::int64_t begin, std::int64_t end) const;
  void give_out(const RunContext& context, std::int64_t batch, const Walk& walk, SoftmaxRow* rows, float* sum,
                std::byte* line) const;
  /// Holds what parts of the keys leave: rows (parts, queries), their maxima, and sums (parts, queries,
  /// values).
  struct Partial {
    SoftmaxRow* rows;
    float* highest;
    float* sum;
  };
  void forward_part(const RunContext& context, Work& work, std::int64_t batch, std::int64_t part,
                    const Partial& to) const;
  void join_parts(const RunContext& context, Work& work, std::int64_t batch, const Partial& all) const;
  void run_parts(const RunContext& context, double nanoseconds) const;
  /// The keys of a part: as many for any number of threads, so that results are the same.
  static constexpr std::int64_t kKeysOfPart = 1024;
  /// The keys that some query before `query_end` may look at.
  std::int64_t visible_keys(const Causal& causal, std::int64_t query_end) const;
  /// Whether masked keys have no weight for the query, in a gradient step.
  bool hides_masked_keys(const Causal& causal, const Place& place, std::int64_t query) const;

  AttentionPass pass_;
  bool by_keys_;  // tasks own keys and walk along queries
  std::vector<std::int64_t> batch_;
  std::int64_t batches_ = 1;
  std::int64_t queries_ = 0, keys_ = 0, head_ = 0, value_ = 0;  // M, N, D, E
  std::int64_t query_block_ = 1, key_block_ = 1;
  std::int64_t blocks_ = 0;  // tasks a position of the batch
  bool pairs_ = false;       // operands of products, as matrices of their own, and results are in bf16
  int query_dim_ = 0;
  bool grouped_ = false;  // the rows are one query of several heads that share keys, not several queries
  CausalMask mask_;
  Matrix q_, k_, v_, go_, delta_;
  RowNumbers rows_;
  Matrix highest_, total_;    // outputs of the forward step, operands of the gradients
  Matrix out_, out2_, out3_;  // o; dq; dk, dv and dq
  std::optional<ScoreKernel> score_;
  std::optional<ScoreKernel> gradient_;
  std::int64_t parts_ = 1;  // of the keys, that tasks take apart from one another
  double nanoseconds_ = 0;
  std::shared_ptr<const PreparedAttention> of_queries_;  // makes dq in a walk of its own, after this one
};

}  // namespace caldera::cpu
