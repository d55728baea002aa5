// The suite "decode": what a model's token takes, and its prompt, for each type of weights that files have.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "benches/case.h"
#include "benches/suites/decode_experts.h"
#include "benches/suites/decode_models.h"
#include "benches/suites/suites.h"
#include "engine/device/cpu_threads.h"
#include "engine/tensor/quantized_format.h"
#include "lm/formats/convert/convert.h"
#include "lm/generate/batch/batch_generator.h"
#include "lm/generate/feeder.h"

namespace caldera::bench {
namespace {

/// A row measures tokens at so many positions from its context on, over and over.
constexpr std::int64_t kWindow = 32;
constexpr std::int64_t kContexts[] = {0, 2048};
constexpr std::int64_t kBatches[] = {1, 4, 16};
constexpr std::int64_t kPrompts[] = {128, 512};

/// Positions for the longest context, and the files say no more than models of the size do.
constexpr std::int64_t kPositions = 4096;

LlamaConfig llama(std::int64_t hidden, std::int64_t intermediate, std::int64_t layers, std::int64_t heads,
                  std::int64_t kv_heads, std::int64_t vocabulary) {
  LlamaConfig config;
  config.hidden_size = hidden;
  config.intermediate_size = intermediate;
  config.num_hidden_layers = layers;
  config.num_attention_heads = heads;
  config.num_key_value_heads = kv_heads;
  config.head_dim = hidden / heads;
  config.vocab_size = vocabulary;
  config.max_position_embeddings = kPositions;
  config.tie_word_embeddings = true;
  config.bos_token_id = 1;
  config.eos_token_ids = {2};
  return config;
}

std::vector<Proportions> all_proportions() {
  return {{"stories260K", llama(64, 172, 5, 8, 4, 512)},
          {"110M", llama(768, 2048, 12, 12, 12, 32'000)},
          // Llama 3.2 1B's.
          {"1.2B", llama(2048, 8192, 16, 32, 8, 128'256), DType::bf16}};
}

/// Whether rows of the model's matrices are whole blocks of the type: else it would be measured by another's
/// name.
bool has_blocks(const Proportions& model, std::string_view type) {
  for (const QuantizedFacts& format : kQuantizedFacts)
    if (format.name == type && format.block > 0) return model.config.hidden_size % format.block == 0;
  return true;
}

bool is_float(std::string_view type) { return type == "f32" || type == "f16" || type == "bf16"; }

std::vector<std::int32_t> some_ids(std::int64_t count, std::int64_t vocabulary, std::int64_t from) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] =
        static_cast<std::int32_t>((static_cast<std::int64_t>(i) * 7919 + from * 104729 + 11) % vocabulary);
  return ids;
}

/// The model, whose caches keep keys and values so from now on.
CausalLM& with_cache(CausalLM& model, CacheType cache) {
  model.set_cache_type(cache);
  return model;
}

/// One text that is continued token by token, as generate() does it.
class TokenRun {
 public:
  TokenRun(CausalLM& model, std::int64_t context, CacheType cache)
      : feeder_(with_cache(model, cache), context + kWindow, true), context_(context) {
    if (context > 0) feeder_.feed_prompt(some_ids(context, model.config().vocab_size, 0));
  }
  /// Makes room within the window.
  void prepare() {
    if (feeder_.position() >= context_ + kWindow) feeder_.truncate(context_);
  }
  void run() {
    feeder_.feed_token(next_);
    next_ = feeder_.choice().item<std::int32_t>();
  }

 private:
  Feeder feeder_;
  std::int64_t context_;
  std::int32_t next_ = 1;
};

/// Many texts that are continued side by side, as a server does it.
class BatchRun {
 public:
  BatchRun(CausalLM& model, std::int64_t context, CacheType cache, std::int64_t batch)
      : generator_(with_cache(model, cache), limits(context, batch)) {
    // A text begins with one token at least.
    for (std::int64_t i = 0; i < batch; ++i)
      prompts_.push_back(some_ids(std::max<std::int64_t>(context, 1), model.config().vocab_size, i));
  }
  void prepare() {
    if (left_ == 0) restart();
    --left_;
  }
  void run() { generator_.step(); }

 private:
  static BatchLimits limits(std::int64_t context, std::int64_t batch) {
    const std::int64_t positions = context + 2 * kWindow;
    BatchLimits limits;
    limits.max_batch = batch;
    limits.max_context = positions;
    // So that the beginnings of all texts are kept where they end, and are not computed again.
    limits.cache_positions = batch * (positions + 2 * kWindow);
    return limits;
  }

  /// Ends the texts and begins them again; each is past its prompt then.
  void restart() {
    for (const RequestId id : running_) generator_.cancel(id);
    running_.clear();
    generator_.run();
    begun_ = 0;
    for (const std::vector<std::int32_t>& prompt : prompts_) {
      GenerateRequest request;
      request.prompt = prompt;
      request.max_tokens = 2 * kWindow - 1;
      request.on_event = [this](const TokenEvent& event) {
        if (!event.error.empty()) error_ = event.error;
        if (event.generated_tokens == 1) ++begun_;
        return true;
      };
      running_.push_back(generator_.submit(std::move(request)));
    }
    while (begun_ < prompts_.size() && error_.empty()) generator_.step();
    if (!error_.empty()) throw Error("a text of the batch failed: " + error_);
    left_ = kWindow;
  }

  BatchGenerator generator_;
  std::vector<std::vector<std::int32_t>> prompts_;
  std::vector<RequestId> running_;
  std::size_t begun_ = 0;
  std::string error_;
  std::int64_t left_ = 0;
};

/// What all rows of a model and a type have in common.
struct Source {
  std::shared_ptr<ModelStore> store;
  std::shared_ptr<Proportions> model;
  std::string type;

  Case row(const std::string& what, int threads) const {
    Case c;
    c.name = fmt::format("decode/{}/{}/{}/t{}", model->name, type, what, threads);
    c.shape = fmt::format("{} layers of {}, {} tokens", model->config.num_hidden_layers,
                          model->config.hidden_size, model->config.vocab_size);
    c.threads = threads;
    return c;
  }
};

/// All tokens of a prompt at once, and the token after it.
Case prefill_case(const Source& source, std::int64_t tokens, int threads) {
  Case c = source.row(fmt::format("prefill/{}", tokens), threads);
  const LlamaConfig& config = source.model->config;
  const auto count = static_cast<double>(tokens);
  // The head has one row. Of the attention's two products half of the scores count.
  c.flops = 2 * count * layer_parameters(config) +
            2 * static_cast<double>(config.vocab_size * config.hidden_size) +
            2 * count * count *
                static_cast<double>(config.num_hidden_layers * config.num_attention_heads * config.head_dim);
  c.tokens = count;
  c.llama_bench = {{"prompt", tokens}, {"threads", threads}};
  c.yardstick = is_float(source.type) ? Yardstick::float_products : Yardstick::integer_products;
  c.make = [=](Device device) {
    const std::shared_ptr<LoadedModel> loaded = source.store->load(*source.model, source.type, device);
    const auto feeder = std::make_shared<Feeder>(*loaded->model, tokens, true);
    const auto ids = some_ids(tokens, source.model->config.vocab_size, 0);
    Work work;
    work.model_file = loaded->file.string();
    work.run = [loaded, feeder, ids] {
      feeder->feed_prompt(ids);
      (void)feeder->choice().item<std::int32_t>();
    };
    work.scope = std::make_shared<ThreadScope>(threads);
    return work;
  };
  return c;
}

/// Rows that differ in their threads alone share the texts.
template <class Run, class... Extents>
void set_run(Work& work, const std::shared_ptr<LoadedModel>& loaded, const Extents&... extents) {
  const std::string name =
      fmt::format("{}", fmt::join(std::array{static_cast<std::int64_t>(extents)...}, "x"));
  if (loaded->kept_name != name) {
    loaded->kept_name.clear();
    loaded->kept.reset();
    loaded->kept = std::make_shared<Run>(*loaded->model, extents...);
    loaded->kept_name = name;
  }
  const auto run = std::static_pointer_cast<Run>(loaded->kept);
  work.before = [loaded, run] { run->prepare(); };
  work.run = [loaded, run] { run->run(); };
  run->prepare();  // with all threads: a long context takes a while
}

/// One token of each text.
Case token_case(const Source& source, std::int64_t context, std::int64_t batch, CacheType cache,
                int threads) {
  Case c =
      source.row(fmt::format("token/{}/x{}{}{}", context, batch, cache == CacheType::model ? "" : "/cache-",
                             cache == CacheType::model ? "" : name(cache)),
                 threads);
  c.tokens = static_cast<double>(batch);
  // It has no texts side by side.
  if (batch == 1 && cache == CacheType::model)
    c.llama_bench = {{"generate", kWindow}, {"depth", context}, {"threads", threads}};
  c.yardstick = Yardstick::read_bandwidth;
  c.make = [=](Device device) {
    const std::shared_ptr<LoadedModel> loaded = source.store->load(*source.model, source.type, device);
    Work work;
    if (batch == 1)
      set_run<TokenRun>(work, loaded, context, cache);
    else
      set_run<BatchRun>(work, loaded, context, cache, batch);
    work.bytes = loaded->weight_bytes;
    work.model_file = loaded->file.string();
    work.scope = std::make_shared<ThreadScope>(threads);
    return work;
  };
  return c;
}

/// What runs without being asked for: one model in types that differ much, of which some rows.
bool is_usual(const Source& source) {
  constexpr std::array<std::string_view, 3> kTypes{"f32", "q8_0", "q4_k"};
  return source.model->name == "110M" && std::ranges::find(kTypes, source.type) != kTypes.end();
}

}  // namespace

std::vector<Case> decode_suite() {
  std::vector<int> threads{1};
  if (cpu_threads() > 1) threads.push_back(cpu_threads());
  const auto store = std::make_shared<ModelStore>();
  std::vector<Case> cases;
  for (const Proportions& proportions : all_proportions()) {
    const auto model = std::make_shared<Proportions>(proportions);
    for (const std::string& type : weight_types(ModelFormat::gguf)) {
      if (!has_blocks(*model, type)) continue;
      const Source source{store, model, type};
      const auto add = [&](Case c, bool usual) {
        c.on_request = !usual || !is_usual(source);
        cases.push_back(std::move(c));
      };
      for (const std::int64_t tokens : kPrompts)
        for (const int count : threads)
          add(prefill_case(source, tokens, count), tokens == 512 && count == threads.back());
      for (const std::int64_t context : kContexts)
        for (const std::int64_t batch : kBatches)
          for (const int count : threads)
            add(token_case(source, context, batch, CacheType::model, count), context == 0 && batch == 1);
      for (const std::int64_t batch : kBatches)
        for (const CacheType cache : {CacheType::f16, CacheType::q8_0})
          for (const int count : threads)
            if (why_no_cache(cache, model->config.head_dim).empty())
              add(token_case(source, kContexts[1], batch, cache, count), false);
    }
  }
  for (Case& c : expert_cases(threads)) cases.push_back(std::move(c));
  return cases;
}

}  // namespace caldera::bench
