// caldera generate: continues a prompt.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/arguments/command.h"
#include "cli/arguments/domains.h"
#include "cli/arguments/model_flags.h"
#include "cli/arguments/usage_error.h"
#include "cli/files/inputs.h"
#include "cli/files/outputs.h"
#include "cli/generation/decoding_flags.h"
#include "cli/generation/generate_batch.h"
#include "lm/base/atomic_file.h"
#include "lm/formats/model_files.h"
#include "lm/generate/generator.h"
#include "lm/tokenizers/sources/load_tokenizer.h"

namespace caldera::cli {
namespace {

// Prints a text as it comes into being. Nothing is printed before the first token, so that a prompt the model
// refuses leaves standard output empty.
class TextPrinter {
 public:
  explicit TextPrinter(std::string prompt) : pending_(std::move(prompt)) {}

  void print(std::string_view piece) {
    pending_ += piece;
    if (std::fwrite(pending_.data(), 1, pending_.size(), stdout) != pending_.size() ||
        std::fflush(stdout) != 0)
      throw FileError("cannot write to standard output; is the disk full?");
    pending_.clear();
  }

  // Standard output is exactly the text; only a terminal gets the line end that its prompt wants.
  void finish() { print(isatty(STDOUT_FILENO) == 1 ? "\n" : ""); }

 private:
  std::string pending_;
};

class GenerateCommand : public Command {
 public:
  GenerateCommand() : Command("generate", "Continue a prompt") {}

 protected:
  void add_options(Arguments& args) override {
    declare_model(args, model_);
    declare_adapter(args, adapter_);
    Arguments input = args.one_required("prompt", "One of these");
    prompt_option_ = input.option("--prompt", prompt_, "Text to go on from; may be empty").type_name("S");
    input
        .option("-f,--prompt-file", prompt_file_,
                "File with such a text, or - for standard input; its last line's end is left out")
        .type_name("FILE");
    input.option("--prompt-ids", prompt_ids_, "Token ids to go on from, taken as they are: no bos is added")
        .type_name("IDS");
    input
        .option("--batch", batch_,
                "File of prompts to continue together: a line each, or JSON strings or objects with "
                "\"prompt\" where it ends in .jsonl; - for lines of standard input")
        .type_name("FILE");
    args.option("--max-batch", max_batch_, "Prompts of --batch that are computed at once")
        .type_name("N")
        .check(integer_in(1, 1024))
        .show_default();
    args.option("-n,--max-tokens", max_tokens_, "Tokens to generate at most")
        .type_name("N")
        .check(integer_in(0))
        .show_default();
    declare_sampling(args, sampling_);
    declare_mirostat(args, sampling_.mirostat);
    declare_seed(args, sampling_.seed);
    declare_dtype_or_auto(args, dtype_);
    declare_activations(args, activations_);
    declare_cache_type(args, cache_type_);
    decoding_.declare(args);
    add_memory_limit(args);
    args.option(
            "--logits", logits_,
            "Write the logits there: little-endian f32, one row a position fed to the model, the prompt's "
            "first (the last token generated is not fed)")
        .type_name("FILE");
  }

  void run() override {
    std::vector<std::int32_t> prompt;
    decoding_.check(json());
    check_mirostat(sampling_);
    if (!batch_.empty()) return run_batch();
    if (!prompt_file_.empty()) {
      prompt_ = read_text_input(prompt_file_);
      if (prompt_.ends_with('\n')) prompt_.pop_back();
      if (prompt_.ends_with('\r')) prompt_.pop_back();
    }
    const bool prompt_is_text = prompt_option_.given() || !prompt_file_.empty();
    if (!prompt_is_text) prompt = parse_ids(prompt_ids_, "--prompt-ids");
    if (!logits_.empty()) check_output_file(logits_, "--logits");

    const Device device = open_device();
    const std::shared_ptr<const Tokenizer> tokenizer = open_tokenizer(prompt_is_text);
    const std::unique_ptr<CausalLM> model =
        load_model(model_, adapter_, device, parse_dtype(dtype_, model_, device),
                   parse_activations(activations_), parse_cache_type(cache_type_));
    if (prompt_is_text) prompt = tokenizer->encode(prompt_);
    if (prompt.empty()) {
      throw ValueError(
          "the prompt has no tokens, and this tokenizer adds none; give --prompt some text or use "
          "--prompt-ids");
    }
    for (const std::int32_t id : prompt) {
      if (id >= model->config().vocab_size)
        throw ValueError(fmt::format("token id {} of the prompt lies outside of the model's vocabulary of {}",
                                     id, model->config().vocab_size));
    }
    generate_text(*model, tokenizer, prompt);
  }

 private:
  void run_batch() {
    if (!logits_.empty()) throw UsageError("--logits: not together with --batch");
    const std::vector<std::string> prompts = read_prompts(batch_);
    const Device device = open_device();
    const std::shared_ptr<const Tokenizer> tokenizer = open_tokenizer(true);
    const std::unique_ptr<CausalLM> model =
        load_model(model_, adapter_, device, parse_dtype(dtype_, model_, device),
                   parse_activations(activations_), parse_cache_type(cache_type_));
    GenerateRequest request;
    prepare(*model, tokenizer, request);
    const nlohmann::ordered_json answer =
        generate_batch(*model, prompts, request, decoding_, {.max_batch = max_batch_});
    if (json()) return print_json(answer);
    for (std::size_t i = 0; i < prompts.size(); ++i)
      TextPrinter(prompts[i] + answer["results"][i]["text"].get<std::string>()).print("\n");
    note(fmt::format("{} prompts, {} tokens; {:.0f} tok/s", prompts.size(),
                     answer["generated_tokens"].get<std::int64_t>(),
                     answer["tokens_per_second"].get<double>()));
  }

  /// Sets what all sequences have in common.
  void prepare(const CausalLM& model, const std::shared_ptr<const Tokenizer>& tokenizer,
               DecodingOptions& options) {
    options.max_tokens = max_tokens_;
    options.sampling = sampling_;
    options.stop_ids = stop_tokens(model.config(), load_generation_config(model_),
                                   tokenizer != nullptr ? tokenizer->eos_id() : std::nullopt);
    decoding_.prepare(model, tokenizer, options);
  }

  // Ids in, ids out needs no tokenizer: a folder without one will do for --prompt-ids.
  std::unique_ptr<Tokenizer> open_tokenizer(bool required) const {
    try {
      return load_tokenizer(model_);
    } catch (const FileError&) {
      const std::filesystem::path dir = model_;
      if (required || std::filesystem::exists(dir / "tokenizer.json") ||
          (!std::filesystem::exists(dir / "config.json") && !detail::is_gguf_path(dir)))
        throw;
      return nullptr;
    }
  }

  void generate_text(CausalLM& model, const std::shared_ptr<const Tokenizer>& tokenizer,
                     const std::vector<std::int32_t>& prompt) {
    const bool prompt_is_ids = tokenizer != nullptr && !prompt_ids_.empty();
    TextPrinter printer(prompt_is_ids ? tokenizer->decode(prompt) : prompt_);
    GenerateOptions options;
    prepare(model, tokenizer, options);
    decoding_.begin(options);
    if (!json()) {
      options.on_text = [&](std::string_view piece) {
        printer.print(piece);
        return true;
      };
      options.on_token = [&](std::int32_t id) {
        printer.print(tokenizer == nullptr ? fmt::format(" {}", id) : "");
        return true;
      };
    }
    std::vector<float> rows;
    if (!logits_.empty()) {
      options.on_logits = [&](std::span<const float> row) {
        rows.insert(rows.end(), row.begin(), row.end());
      };
    }

    const Generation result = generate(model, prompt, options);
    if (!json()) printer.finish();
    if (!logits_.empty()) {
      const std::span<const std::byte> bytes = std::as_bytes(std::span(rows));
      write_file_atomically(logits_, {&bytes, 1});
    }
    report(prompt, result, model.config().max_positions(), tokenizer.get(), options.logprobs.has_value());
  }

  void report(const std::vector<std::int32_t>& prompt, const Generation& result, std::int64_t positions,
              const Tokenizer* tokenizer, bool logprobs) {
    if (result.finish_reason == FinishReason::length && std::ssize(result.ids) < max_tokens_)
      note(fmt::format("the model's {} positions are full; the text could not go on to --max-tokens {}",
                       positions, max_tokens_));
    const char* reason = result.finish_reason == FinishReason::stop ? "stop" : "length";
    if (json()) {
      nlohmann::ordered_json answer{{"prompt_ids", prompt},
                                    {"ids", result.ids},
                                    {"text", nullptr},
                                    {"prefill_tokens_per_second", result.prefill_tokens_per_second},
                                    {"decode_tokens_per_second", result.decode_tokens_per_second},
                                    {"finish_reason", reason},
                                    {"drafted_tokens", result.drafted_tokens},
                                    {"accepted_tokens", result.accepted_tokens}};
      if (tokenizer != nullptr) answer["text"] = result.text;
      if (logprobs) answer["logprobs"] = reports_json(result.reports, tokenizer);
      print_json(answer);
    } else {
      note(fmt::format("{} tokens, {}; prompt {:.0f} tok/s, generation {:.0f} tok/s", result.ids.size(),
                       reason, result.prefill_tokens_per_second, result.decode_tokens_per_second));
    }
  }

  std::string model_;
  std::string adapter_;
  std::string prompt_;
  std::string prompt_file_;
  std::string prompt_ids_;
  std::string batch_;
  std::int64_t max_batch_ = 16;
  DecodingFlags decoding_;
  std::int64_t max_tokens_ = 100;
  SamplingOptions sampling_;
  std::string dtype_ = "auto";
  std::string activations_ = "rounded";
  std::string cache_type_;
  std::string logits_;
  Option prompt_option_;
};

}  // namespace

CommandPtr make_generate_command() { return std::make_unique<GenerateCommand>(); }

}  // namespace caldera::cli
