// BERT, RoBERTa and XLM-R: Hugging Face's BertModel, RobertaModel and XLMRobertaModel. Encoders with learned
// positions and types of tokens, biases on all projections, and a LayerNorm behind each sum. RoBERTa and
// XLM-R count positions from pad_token_id + 1.
#include <fmt/format.h>

#include "lm/models/decoder.h"
#include "lm/models/encoder.h"
#include "lm/models/family.h"
#include "lm/nn/feed_forward/mlp.h"
#include "lm/nn/norms/layer_norm.h"
#include "lm/nn/precision.h"

namespace caldera {
namespace {

constexpr std::uint64_t kBertPositionStream = 1'000'002;
constexpr std::uint64_t kTypeStream = 1'000'003;

class BertParts final : public DecoderParts {
 public:
  using DecoderParts::DecoderParts;

  std::unique_ptr<Layer> make_norm(std::int64_t width) const override {
    return std::make_unique<LayerNorm>(width, config().rms_norm_eps, true, device());
  }
  std::unique_ptr<Layer> make_mlp(std::int64_t /*layer*/, std::uint64_t seed) const override {
    const std::int64_t hidden = config().hidden_size, width = config().intermediate_size;
    return std::make_unique<MLP>(
        "intermediate.dense", make_projection(hidden, width, true, seed, kFirstFreeStream), "output.dense",
        make_projection(width, hidden, true, seed, kFirstFreeStream + 1), activation_of(config().hidden_act));
  }
};

/// What the tables of a BERT are besides those of its ModelConfig.
struct Tables {
  std::int64_t positions = 0;
  std::int64_t types = 0;
};

class Bert final : public Encoder {
 public:
  Bert(const ModelConfig& config, const DecoderParts& parts, const Tables& tables, const std::string& module,
       std::uint64_t seed)
      : Encoder(config, parts, seed, module),
        tables_(tables),
        positions_(tables.positions, config.hidden_size, config.initializer_range,
                   mix_seed(seed, kBertPositionStream), parts.device()),
        types_(tables.types, config.hidden_size, config.initializer_range, mix_seed(seed, kTypeStream),
               parts.device()),
        norm_(parts.make_norm(config.hidden_size)) {}

  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    Encoder::visit(prefix, visitor);
    const std::string embeddings = join_name(prefix, "embeddings");
    visitor.module(join_name(embeddings, "position_embeddings"), positions_);
    visitor.module(join_name(embeddings, "token_type_embeddings"), types_);
    visitor.module(join_name(embeddings, "LayerNorm"), *norm_);
  }

 protected:
  LazyTensor embed(const LazyTensor& ids, const TokenPositions& positions) override {
    const std::int64_t last = positions.longest == 0 ? positions.reach : positions.longest;
    const std::int64_t before = config().reserved_positions, begin = positions.first + before;
    if (last > config().max_positions())
      throw ValueError(
          fmt::format("position {} is beyond the {} positions of the model (max_position_embeddings{}); use "
                      "shorter texts",
                      last - 1, config().max_positions(),
                      before == 0 ? "" : fmt::format(" less the {} that RoBERTa keeps for padding", before)));
    // All tokens are of the first type: one text, not a pair of them.
    const LazyTensor at = (positions.rows.defined() ? positions_(positions.rows + before)
                                                    : positions_.rows(begin, begin + positions.length)) +
                          types_.rows(0, 1);
    const LazyTensor x = Encoder::embed(ids, positions);
    return norm_->forward(x + cast_like(at, x));
  }

 private:
  Tables tables_;
  Embedding positions_;
  Embedding types_;
  std::unique_ptr<Layer> norm_;
};

std::unique_ptr<CausalLM> make_bert(const detail::JsonFields& fields, ModelConfig config, bool roberta,
                                    Device device, std::uint64_t seed) {
  config.hidden_act = "gelu";
  config.max_position_embeddings = 512;
  config.intermediate_size = 3072;
  config.rms_norm_eps = detail::positive_number(fields, "layer_norm_eps", 1e-12);
  config.tie_word_embeddings = true;  // there is no head
  detail::read_config(fields, config,
                      {.own = {{"layer_norm_eps", "1e-12"},
                               {"type_vocab_size", "2"},
                               {"position_embedding_type", R"("absolute")"},
                               {"pad_token_id", roberta ? "1" : "0"}},
                       .ignored = {"directionality", "pooler_fc_size", "pooler_num_attention_heads",
                                   "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"},
                       .activations = {"gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"},
                       .rotary = false});
  if (fields.boolean("is_decoder").value_or(false))
    fields.fail("is_decoder", "is true, which is not supported: positions look at later ones too");
  if (const auto type = fields.string("position_embedding_type"); type && *type != "absolute")
    fields.fail("position_embedding_type", "is not supported (supported: absolute)");
  const Tables tables{config.max_position_embeddings, fields.integer("type_vocab_size").value_or(2)};
  if (tables.types < 1 || tables.types > 1000) fields.fail("type_vocab_size", "must lie in 1..1000");
  if (roberta) config.reserved_positions = fields.integer("pad_token_id").value_or(1) + 1;
  if (config.reserved_positions < 0 || config.reserved_positions >= tables.positions)
    fields.fail("pad_token_id", "leaves no positions");

  DecoderTraits traits;
  traits.names = {"embeddings.word_embeddings", "encoder.layer", "", "attention", ""};
  traits.names.projections.q = "self.query";
  traits.names.projections.k = "self.key";
  traits.names.projections.v = "self.value";
  traits.names.projections.o = "output.dense";
  traits.norms = {"", "attention.output.LayerNorm", "", "output.LayerNorm", /*of_sums=*/true};
  traits.biases = {true, true, true, true};
  traits.rotary = false;
  traits.attention.bidirectional = true;
  return std::make_unique<Bert>(config, BertParts(config, device, traits), tables,
                                roberta ? "roberta." : "bert.", seed);
}

template <bool kRoberta>
std::unique_ptr<CausalLM> make_named(const char* architecture, const char* model_type,
                                     const detail::JsonFields& fields, Device device, std::uint64_t seed) {
  ModelConfig config;
  config.architecture = architecture;
  config.model_type = model_type;
  return make_bert(fields, config, kRoberta, device, seed);
}

}  // namespace

detail::ModelFamily bert_family() {
  return {{"BertModel", "bert"},
          [](const detail::JsonFields& fields, Device device, std::uint64_t seed) {
            return make_named<false>("BertModel", "bert", fields, device, seed);
          },
          {"BertForMaskedLM", "BertForPreTraining"},
          detail::ModelUse::embedding};
}

detail::ModelFamily roberta_family() {
  return {{"RobertaModel", "roberta"},
          [](const detail::JsonFields& fields, Device device, std::uint64_t seed) {
            return make_named<true>("RobertaModel", "roberta", fields, device, seed);
          },
          {"RobertaForMaskedLM"},
          detail::ModelUse::embedding};
}

detail::ModelFamily xlm_roberta_family() {
  return {{"XLMRobertaModel", "xlm-roberta"},
          [](const detail::JsonFields& fields, Device device, std::uint64_t seed) {
            return make_named<true>("XLMRobertaModel", "xlm-roberta", fields, device, seed);
          },
          {"XLMRobertaForMaskedLM"},
          detail::ModelUse::embedding};
}

}  // namespace caldera
