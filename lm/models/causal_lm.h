// CausalLM: a language model that predicts the next token, whatever its family. The trainer, the generator,
// evaluation, adapters and the program know models by this interface alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/autodiff/checkpoint/keep.h"
#include "lm/formats/config/model_config.h"
#include "lm/nn/caches/kv_cache.h"
#include "lm/nn/module.h"

namespace caldera {

class ModelFiles;
class StagedFiles;

/// A head that multiplies with one matrix: logits = finish(hidden weight^T), element by element.
struct LinearHead {
  LazyTensor weight;                                             ///< (vocabulary, hidden)
  std::function<LazyTensor(const LazyTensor& products)> finish;  ///< scales and caps; keeps the shape
};

/// When the layers of a model run as one loop: see CausalLM::set_layers_as_scan.
enum class LayersAsScan : std::uint8_t {
  never,
  checkpointed,  ///< where the model is trained, and all layers are checkpointed and keep nothing
  always,
};

/// Says what becomes of matrices that files hold as f16 or bf16, in a model that computes in f32.
enum class HalfWeights : std::uint8_t {
  converted,  ///< f32: they can be trained and changed
  as_stored,  ///< they take half the memory, are widened by the products that read them, and are frozen
  /// So, and all weights that the CPU takes as they are stay in the mapped files, which nobody may write to:
  /// a model of any size is there at once, and programs share what they read. Its tokens take a little
  /// longer, as files are in small pages.
  mapped,
};
/// Says which suits a model that is run and not trained: `mapped` on the CPU, where reading weights is most
/// of what a token takes; other devices compute in 16 bits where they are asked to.
HalfWeights halves_for_inference(Device device);

/// A family derives from it and says how ids become hidden states and those become logits. Parameter names
/// are Hugging Face's. Activations have the model's dtype: see set_dtype. One thread at a time uses a model.
class CausalLM : public Module {
 public:
  virtual const ModelConfig& config() const = 0;

  /// Maps ids (B, T) i32 to hidden states after the last norm (B, T, hidden). With a cache, positions are
  /// those that it says, and it is begun and finished: evaluate its state() together with what is made of
  /// the result. Throws ShapeError unless ids are 2-D, ValueError when the positions exceed
  /// the model's positions or the cache's capacity.
  virtual LazyTensor hidden_states(const LazyTensor& ids, AttentionCache* cache = nullptr) = 0;
  /// Maps any of the hidden states (..., hidden) to logits (..., vocabulary).
  virtual LazyTensor logits(const LazyTensor& hidden) = 0;
  /// The head as one matrix, so that losses may read some of its classes at a time (logits() multiplies with
  /// all of it); nothing where it is none that is kept as floats.
  virtual std::optional<LinearHead> linear_head() const { return std::nullopt; }
  /// Adds a trainable head that scores texts, as Hugging Face's models for sequence classification have it:
  /// `classes` scores, no bias, normal(0, initializer_range). Replaces one that is there. Throws ValueError
  /// for fewer classes than 1.
  void add_score_head(std::int64_t classes, std::uint64_t seed);
  /// Its scores; 0 where there is none.
  std::int64_t score_classes() const { return score_.tensor.defined() ? score_.shape()[0] : 0; }
  /// Maps hidden states (..., hidden), those of a text's last token, to scores (..., classes) in f32. Throws
  /// ValueError where there is no such head.
  LazyTensor scores(const LazyTensor& hidden) const;

  /// Maps ids (B, T) to logits (B, T, vocabulary).
  LazyTensor forward(const LazyTensor& ids, AttentionCache* cache = nullptr) {
    return logits(hidden_states(ids, cache));
  }
  LazyTensor operator()(const LazyTensor& ids, AttentionCache* cache = nullptr) {
    return forward(ids, cache);
  }

  /// Makes ids a (1, T) or (B, T) tensor on the model's device. Throws ValueError naming the first id outside
  /// of the vocabulary and its position, ShapeError unless batch divides their number.
  LazyTensor make_ids(std::span<const std::int32_t> ids, std::int64_t batch = 1) const;
  /// Makes an empty cache that fits this model. Throws ValueError for a capacity above
  /// config().max_positions().
  std::unique_ptr<KVCache> make_cache(std::int64_t capacity, std::int64_t batch = 1) const;

  /// The window of each layer's attention (AttentionForm::window), so that caches need not keep more; none
  /// where a layer looks at everything. By default that of ModelConfig::layers.
  virtual std::vector<std::optional<std::int64_t>> attention_windows() const;

  /// Calls `visitor` with the path ("model.layers.0.self_attn.q_proj"), the name ("q_proj") and the slot of
  /// each projection that the model's modules report, in a fixed order: what adapters may wrap. lm_head is
  /// not among them. A slot may be assigned to once the walk is over.
  using ProjectionVisitor = std::function<void(const std::string& path, const std::string& name,
                                               std::unique_ptr<Projection>& slot)>;
  void visit_projections(const ProjectionVisitor& visitor);
  /// Calls it for these and for the head, "lm_head", where the model has one: what an adapter that names it
  /// may wrap.
  void visit_adaptable(const ProjectionVisitor& visitor);

  /// Says of each layer of the model whether its inside is checkpointed
  /// (engine/autodiff/checkpoint/checkpoint.h) while the model is trained, and what is kept of it then. None,
  /// the default: nothing is checkpointed. Layers beyond the list's end are not.
  void set_checkpointing(std::vector<std::optional<Keep>> layers) { checkpointing_ = std::move(layers); }
  const std::vector<std::optional<Keep>>& checkpointing() const { return checkpointing_; }

  /// Says when layers in a row that are alike run as one loop (engine/control/chain.h): one of them is
  /// planned, however many there are. Gradients keep the inputs of the layers then, and compute their inside
  /// again; numbers of 16 bits are rounded where a layer ends. Layers that draw random numbers (dropout) are
  /// not alike. All run one behind the other with a cache that keeps what they compute, and where some layers
  /// are checkpointed and others are not, or they keep something.
  void set_layers_as_scan(LayersAsScan when) { layers_as_scan_ = when; }
  LayersAsScan layers_as_scan() const { return layers_as_scan_; }

  /// Computes in `dtype` (f32, f16 or bf16; see lm/nn/precision.h) from now on. Parameters that are not
  /// trainable are converted to it and evaluated; trainable ones keep their dtype. Throws DTypeError for
  /// another type, or where the device does not compute with it.
  void set_dtype(DType dtype);
  DType dtype() const { return dtype_; }
  /// Says whether products with quantised weights may round activations (engine/tensor/quantized_format.h),
  /// which is faster on the CPU and suits generation. Those of weights that are loaded later are exact.
  void set_activations(Activations activations);
  /// Says how caches that are made from now on keep keys and values. Throws ValueError where heads of the
  /// model's size cannot be kept so.
  void set_cache_type(CacheType type);
  CacheType cache_type() const { return cache_type_; }
  /// Returns how caches keep them: of set_cache_type(), and of dtype().
  CacheForm cache_form() const { return {cache_type_, dtype_, config().head_dim}; }
  Device device() const { return device_; }

  /// Replaces every parameter by that of a model folder or a GGUF file (see ModelFiles), and puts the model
  /// into evaluation mode. Weights and activations get `dtype`, whatever the files hold; but matrices that
  /// are quantised stay so, and are frozen, and those of 16 bits where `halves` says so. Throws FileError for
  /// a tensor that is missing, of the wrong shape, or unexpected (but for biases of zeros, which change
  /// nothing); nothing is changed then.
  void load_weights(const std::filesystem::path& path, DType dtype = DType::f32,
                    HalfWeights halves = HalfWeights::converted);
  void load_weights(const ModelFiles& files, DType dtype = DType::f32,
                    HalfWeights halves = HalfWeights::converted);
  /// Throws FileError as load_weights() would, and reads no weight.
  void check_weights(const ModelFiles& files);
  /// Writes config.json and model.safetensors, both before either is replaced; creates the folder. The
  /// weights are the base model's, quantised ones as floats of the model's dtype: an adapter is saved by
  /// save_adapter.
  void save(const std::filesystem::path& dir);
  /// Writes them together with other files: the caller commits `files`.
  void save(const std::filesystem::path& dir, StagedFiles& files);

  /// Says that files hold a larger model, of which this one is the part that reads and writes text: its
  /// parameters have names that begin with `module` ("language_model."), and other ones are passed over.
  void set_part_of_larger(const std::string& module) { module_ = module; }

 protected:
  explicit CausalLM(Device device) : device_(device) {}

  /// Returns the fields that the family's config.json has besides those of ModelConfig and those that it
  /// keeps.
  virtual ConfigFields own_fields() const { return {}; }
  /// Another name that files may have for a parameter; the same where there is none.
  virtual std::string stored_name(const std::string& parameter) const { return module_ + parameter; }
  const std::string& module_in_files() const { return module_; }
  /// Reports the head that scores texts, where there is one: for visit(), at its end.
  void visit_score_head(const std::string& prefix, ParameterVisitor& visitor);
  /// Whether a tensor of a checkpoint that is no parameter may be passed over: rotary buffers, and
  /// lm_head.weight of a model whose embeddings are tied.
  virtual bool is_harmless(const std::string& name) const;

 private:
  void check_dtype(DType dtype) const;
  /// Under which name the files have a parameter.
  std::string name_in(const ModelFiles& files, const std::string& name) const;

  Device device_;
  std::vector<std::optional<Keep>> checkpointing_;  // by layer
  LayersAsScan layers_as_scan_ = LayersAsScan::never;
  Weight score_;        // "score.weight"
  std::string module_;  // in files of a larger model
  DType dtype_ = DType::f32;
  CacheType cache_type_ = CacheType::model;
};

}  // namespace caldera
