// SamplingOptions: how the next token is chosen.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace caldera {

/// "Don't repeat yourself" (DRY, text-generation-webui's and llama.cpp's): a token that would make the text's
/// end as long a repetition as m tokens, m at least `allowed_length`, loses multiplier * base^(m -
/// allowed_length) of its logit. m is counted up to 50.
struct RepeatPenalty {
  double multiplier = 0;            ///< 0: off
  double base = 1.75;               ///< at least 1
  std::int64_t allowed_length = 2;  ///< at least 1
  std::int64_t last = -1;           ///< tokens that are looked at, from the end; -1: all
  /// Tokens that no repetition goes across, and that are never penalised.
  std::vector<std::int32_t> breakers;
};

/// Mirostat 2.0 (Basu et al. 2021, "Mirostat: A Neural Text Decoding Algorithm that Directly Controls
/// Perplexity"): tokens are kept whose surprise, -log2 of their probability, is at most mu, or else the most
/// likely one. mu is 2 * tau for the first token; behind each it falls by eta * (s - tau), where s is the
/// surprise of the token drawn among those that were kept.
struct Mirostat {
  bool on = false;
  double tau = 5;    ///< bits that tokens are to surprise by
  double eta = 0.1;  ///< how fast mu follows
};

/// Says how the next token is chosen. What changes logits comes first, in the order of vLLM: the tokens that
/// a constraint rules out, logit bias, repetition penalty, frequency penalty, presence penalty; then the
/// penalty on repeats. The filters follow in the order of Hugging Face's `generate`: temperature, top-k,
/// top-p, min-p, typical, and XTC; each sees the probabilities that the ones before it left, normalised. With
/// mirostat temperature is followed by that alone. Then one token is drawn from what is left.
struct SamplingOptions {
  double temperature = 0;  ///< 0 takes the most likely token (the lowest id of equals)
  std::int64_t top_k = 0;  ///< keep the k most likely; 0 keeps all
  double top_p = 1;        ///< keep the smallest set of at least this probability; 1 keeps all
  double min_p = 0;        ///< keep what has at least this share of the best token's probability
  /// Keskar et al. 2019: positive logits are divided, negative ones multiplied by it, once per distinct token
  /// of the prompt and of what was generated; 1 changes nothing.
  double repetition_penalty = 1;
  std::uint64_t seed = 0;
  /// Meister et al. 2022 (locally typical sampling): keep the smallest set of at least this probability,
  /// those first whose information -log p is nearest to the entropy; 1 keeps all.
  double typical_p = 1;
  /// OpenAI's: taken off the logit of each token that was generated, prompt excluded; -2 to 2 there.
  double presence_penalty = 0;
  /// OpenAI's: taken off the logit of a token as often as it was generated, prompt excluded.
  double frequency_penalty = 0;
  /// Numbers added to the logits of tokens. -infinity rules a token out; OpenAI's -100 and 100 are plain
  /// numbers here. Ids outside of the logits are passed over; one that is given twice counts twice.
  std::vector<std::pair<std::int32_t, float>> logit_bias;
  RepeatPenalty repeats;
  /// XTC ("exclude top choices", text-generation-webui's and llama.cpp's): with this probability all tokens
  /// but the least likely of those that have at least `xtc_threshold` are left out. Of a temperature of 0
  /// nothing is drawn, and nothing left out.
  double xtc_probability = 0;
  double xtc_threshold = 0.1;
  /// Stands in place of top-k, top-p, min-p, typical and XTC, as in llama.cpp.
  Mirostat mirostat;

  /// Whether the logits are drawn from as the model gives them.
  bool keeps_logits() const {
    return repetition_penalty == 1 && presence_penalty == 0 && frequency_penalty == 0 && logit_bias.empty() &&
           repeats.multiplier == 0;
  }
  /// Whether the choice is most_likely() of the logits.
  bool is_greedy() const { return temperature == 0 && keeps_logits(); }
  /// Throws ValueError naming the option that is outside of its domain.
  void validate() const;
};

}  // namespace caldera
